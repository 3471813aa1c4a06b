"""Finished runs of benchmarks are not repeated, and not taken for runs with other options."""

import pathlib

import pytest

from benchmarks import runs

KEYS = {"data.directory": pathlib.Path("data"), "train.steps": 20, "seed": 0}


@pytest.fixture
def started(monkeypatch):
    """The workdirs in which `nmt-jax` was started; it only makes them."""
    found = []

    def nmt_jax(verb, config, workdir, *flags):
        found.append(pathlib.Path(workdir.partition("=")[2]))
        found[-1].mkdir(parents=True, exist_ok=True)

    monkeypatch.setattr(runs, "nmt_jax", nmt_jax)
    return found


def test_a_finished_run_is_not_repeated(started, tmp_path):
    for steps in (20, "20"):  # as in a script, and as in --change
        runs.train(tmp_path / "a", "glue.py", KEYS | {"train.steps": steps})
    assert started == [tmp_path / "a"]


def test_a_finished_run_with_other_keys_is_an_error(started, tmp_path):
    runs.train(tmp_path / "a", "glue.py", KEYS)
    with pytest.raises(SystemExit, match=r"a: made with other values of page, train\.steps, model\.score; use another"):
        runs.train(tmp_path / "a", "squad.py", KEYS | {"train.steps": 30, "model.score": "dot"})
    with pytest.raises(SystemExit, match="values of seed; "):
        runs.train(tmp_path / "a", "glue.py", {key: KEYS[key] for key in KEYS if key != "seed"})
    assert len(started) == 1


def test_a_run_of_an_older_version_is_finished(started, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "done").touch()
    runs.train(tmp_path / "a", "glue.py", KEYS)
    assert started == []


def test_a_moved_folder_has_the_same_keys(started, tmp_path):
    for folder in (tmp_path / "before", tmp_path / "after"):
        runs.train(folder / "a", "glue.py", KEYS | {"data.directory": folder / "data"})
        if folder.name == "before":
            folder.rename(tmp_path / "after")
    assert len(started) == 1


def test_stages_have_keys_of_their_own(started, tmp_path):
    for _ in range(2):
        for stage in range(2):
            runs.train(tmp_path / "a", "glue.py", KEYS | {"train.steps": 20 + stage}, marker=f"stage{stage}")
    assert len(started) == 2


def test_data_of_other_options_are_an_error(tmp_path):
    runs.keep_options(tmp_path / "new", pairs=100)
    runs.keep_options(tmp_path / "new", pairs=100)
    with pytest.raises(SystemExit, match="new: made with other values of pairs; use another folder"):
        runs.keep_options(tmp_path / "new", pairs=200)
