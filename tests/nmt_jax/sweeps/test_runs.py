import pytest

from nmt_jax.errors import UserError
from nmt_jax.sweeps.runs import base_values, by_setting, find_runs, name
from tests.fixtures.sweep_folders import make_run


def test_runs_are_found_by_their_names_with_the_values_of_their_configs(tmp_path):
    points = [
        {"model.d_model": 8},
        {"model.d_model": 16},
        {"model.num_layers": 1, "seed": 1},
        {"model.num_layers": 7},  # the value of encoder.num_layers, too, which no run changes
        {"model.score": "local/dot", "model.tied": False},
        {"optimizer.learning_rate": 0.0001},
        {},
    ]
    for point in points:
        make_run(tmp_path, point)
    (tmp_path / "notes").mkdir()
    (tmp_path / "d_model=1").mkdir()  # empty
    found = {run.workdir.path.name: dict(run.point) for run in find_runs(tmp_path)}
    assert found == {
        "base": {},
        "d_model=8": {"model.d_model": "8"},
        "d_model=16": {"model.d_model": "16"},
        "learning_rate=0.0001": {"optimizer.learning_rate": "0.0001"},
        "num_layers=7": {"model.num_layers": "7"},
        "num_layers=1,seed=1": {"model.num_layers": "1", "seed": "1"},
        "score=local-dot,tied=false": {"model.score": "local/dot", "model.tied": "false"},
    }
    assert list(found)[1:3] == ["d_model=8", "d_model=16"]


def test_the_keys_of_a_run_without_a_config_are_taken_from_its_name(tmp_path):
    make_run(tmp_path, {"model.d_model": 8})
    (tmp_path / "d_model=7").mkdir()
    (tmp_path / "d_model=7" / "log.txt").write_text("odd\n")
    assert [dict(run.point) for run in find_runs(tmp_path)] == [{"model.d_model": "7"}, {"model.d_model": "8"}]


@pytest.mark.parametrize("there", [True, False])
def test_a_folder_without_runs_is_an_error(tmp_path, there):
    folder = tmp_path if there else tmp_path / "x"
    with pytest.raises(UserError, match=r"not the folder of a sweep|no such folder"):
        find_runs(folder)


def test_values_of_keys_in_runs_that_do_not_change_them(tmp_path):
    runs = [make_run(tmp_path, point) for point in ({"model.d_model": 8}, {"model.tied": False}, {"model.tied": True})]
    assert base_values(runs) == {"model.d_model": "32", "model.tied": "true"}
    assert base_values(runs[:1]) == {}


def test_runs_that_differ_only_in_the_seed_are_one_group(tmp_path):
    points = [{"model.d_model": width, "seed": seed} for width in (8, 16) for seed in range(3)]
    groups = by_setting([make_run(tmp_path, point) for point in points])
    assert {key: [run.point["seed"] for run in runs] for key, runs in groups.items()} == {
        "d_model=8": ["0", "1", "2"],
        "d_model=16": ["0", "1", "2"],
    }


def test_names():
    assert name({"model.score": "dot", "seed": "1"}) == "score=dot,seed=1"
    assert name({"data.directory": "a/b"}) == "directory=a-b"
    assert name({}) == "base"
