import signal

import pytest

from nmt_jax import __main__ as cli
from nmt_jax import config as configs
from nmt_jax.errors import UserError
from nmt_jax.interrupts import Interrupted
from nmt_jax.sweeps import train_sweep
from nmt_jax.sweeps.runs import Run, name
from nmt_jax.workdir import Workdir
from tests.conftest import ROOT
from tests.fixtures import config_modules
from tests.fixtures.sweep_folders import changed, make_run

CONFIGS = ROOT / "configs"
LUONG = str(CONFIGS / "rnn_luong.py")


def test_the_points_of_a_sweep_are_those_the_config_file_adds():
    points = configs.load_sweep(LUONG)
    assert len(points) == 38
    assert {"model.score": "dot", "model.attention": "local-p", "model.input_feeding": "false"} in points
    assert len(train_sweep.select(points, {"model.attention": "global"})) == 14
    assert len({name(point) for point in points}) == 38


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([f"--config={LUONG}"], "needs --config=FILE with a sweep(add) and --workdir=FOLDER"),
        (
            [f"--config={CONFIGS / 'quickstart.py'}", "--workdir=w"],
            "quickstart.py: the config file has no sweep; define sweep(add)",
        ),
        (
            [f"--config={LUONG}", "--workdir=w", "--only=model.d_hidden=3"],
            "the sweep does not vary this key, but ",
        ),
        ([f"--config={LUONG}", "--workdir=w", "--only=model.score=x"], "no point of the sweep is left"),
        ([f"--config={LUONG}", "--workdir=w", "--config.model.d_hiden=3"], "unknown config key 'model.d_hiden'"),
        (["--workdir=w", f"--config={LUONG}", "x"], "unexpected argument 'x'"),
        (
            [f"--config={LUONG}", "--workdir=w", "--seeds=2", "--config.seed=7"],
            "--config.seed cannot be used together",
        ),
        (["--workdir=w", "--collect"], "w: no such folder"),
    ],
)
def test_errors_are_reported_before_anything_runs(arguments, line, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["sweep", *arguments]) == 2
    assert line in capsys.readouterr().err
    assert not (tmp_path / "w").exists()


def test_a_repeated_point_is_an_error(tmp_path):
    page = tmp_path / "page.py"
    page.write_text("def sweep(add):\n    add({'seed': 1})\n    add({'seed': 1})\n")
    with pytest.raises(UserError, match=r"page\.py:3: .*twice"):
        configs.load_sweep(str(page))


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        (
            [{"eval.beam_size": 4}, {"decode.beam_size": 5}],
            "changes both eval.beam_size and decode.beam_size, whose last parts must differ",
        ),
        ([{"data.directory": "a/b"}, {"data.directory": "a-b"}], "would both be trained in"),
    ],
)
def test_two_points_with_the_same_name_are_an_error(tmp_path, mistake, points, expected):
    points = "def sweep(add):\n" + "".join(f"    add({point})\n" for point in points)
    page = tmp_path / "page.py"
    page.write_text(f"import quickstart\nget_config = quickstart.get_config\n{points}")
    (tmp_path / "quickstart.py").symlink_to(ROOT / "configs" / "quickstart.py")
    (tmp_path / "common.py").symlink_to(ROOT / "configs" / "common.py")
    error = mistake("sweep", f"--config={page}:smoke=true", f"--workdir={tmp_path / 'runs'}")
    assert expected in error
    assert not (tmp_path / "runs").exists()


def test_a_sweep_with_two_parameters_receives_the_argument_of_the_config_file(tmp_path):
    page = tmp_path / "page.py"
    page.write_text("def sweep(add, arg):\n    add({'data.name': f'<{arg}>'})\n")
    assert configs.load_sweep(f"{page}:size=paper") == [{"data.name": "<size=paper>"}]
    assert configs.load_sweep(str(page)) == [{"data.name": "<>"}]
    page.write_text("def sweep(add):\n    add({'seed': 1})\n")
    assert configs.load_sweep(f"{page}:size=paper") == [{"seed": "1"}]


def test_a_dry_run_prints_commands_and_runs_nothing(capsys, tmp_path):
    arguments = ["sweep", f"--config={LUONG}", f"--workdir={tmp_path / 'w'}", "--dry_run", "--config.seed=7"]
    assert cli.main([*arguments, "--only=model.score=general", "--only=model.attention=global"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert all(
        line.startswith(f"nmt-jax train --config={LUONG} --workdir={tmp_path}/w/score=general,") for line in lines
    )
    assert all("--config.seed=7" in line for line in lines)
    assert not (tmp_path / "w").exists()


def test_every_point_has_every_seed(tmp_path):
    points = train_sweep.points(LUONG, {"model.attention": "global"}, 2)
    assert len(points) == 28
    assert [point["seed"] for point in points[:4]] == ["0", "1", "0", "1"]
    first = train_sweep.points(LUONG, {"model.attention": "global"})[0]
    assert name(points[1]) == name({**first, "seed": "1"}) == name(first) + ",seed=1"
    arguments = train_sweep.training_command(LUONG, tmp_path, {"train.steps": "5"}, points[1])
    assert arguments[:3] == ["train", f"--config={LUONG}", f"--workdir={tmp_path}/{name(points[1])}"]
    assert {"--config.train.steps=5", "--config.seed=1"} <= set(arguments)


def test_a_sweep_that_varies_the_seed_takes_no_seeds(tmp_path):
    page = tmp_path / "page.py"
    page.write_text("def sweep(add):\n    add({'seed': 1})\n")
    with pytest.raises(UserError, match="varies the seed itself"):
        train_sweep.points(str(page), seeds=2)


def started(monkeypatch, runs, points, **changes):
    """Returns which of the runs with these configs `train_runs` starts."""
    names: list[str] = []
    monkeypatch.setattr(train_sweep, "run_jobs", lambda jobs, parallel, ended: names.extend(job.name for job in jobs))
    settings = [configs.ConfigDict(changed(point | changes)) for point in points]
    assert train_sweep.train_runs(runs, settings, [["train"]] * len(runs)) == {}
    return names


def test_finished_runs_are_not_started_again(tmp_path, monkeypatch, capsys):
    points = [{"model.d_model": width} for width in (8, 16, 32, 64)]
    runs = [
        make_run(tmp_path, points[0], [5.0]),
        make_run(tmp_path, points[1], [5.0], steps=10),
        make_run(tmp_path, points[2]),
        Run({"model.d_model": "64"}, Workdir(tmp_path / "d_model=64")),
    ]
    assert started(monkeypatch, runs, points) == ["d_model=16", "d_model=32", "d_model=64"]
    assert capsys.readouterr().err == "1 of 4 runs have already finished\n"
    # More steps, and a different model, which training itself reports.
    assert "d_model=8" in started(monkeypatch, runs, points, **{"train.steps": 30})
    assert "d_model=8" in started(monkeypatch, runs, points, **{"model.num_layers": 3})
    capsys.readouterr()
    assert "d_model=8" not in started(monkeypatch, runs, points, **{"optimizer.learning_rate": 0.5})
    assert "d_model=8: was trained with optimizer.learning_rate=0.001, not 0.5" in capsys.readouterr().err


def test_the_exit_code_of_an_interrupted_sweep(tmp_path, monkeypatch):
    def interrupted(jobs, parallel, ended):
        raise Interrupted(signal.SIGTERM)

    monkeypatch.setattr(train_sweep, "run_jobs", interrupted)
    assert cli.main(["sweep", f"--config={LUONG}", f"--workdir={tmp_path / 'w'}"]) == 128 + signal.SIGTERM


def test_collect_needs_no_config_file_and_trains_nothing(tmp_path, monkeypatch, capsys):
    for seed in range(2):
        make_run(tmp_path, {"model.d_model": 8, "seed": seed}, [5.0 + seed])
    make_run(tmp_path, {"model.d_model": 16, "seed": 0})
    monkeypatch.setattr(train_sweep, "run_jobs", None)
    arguments = ["sweep", f"--workdir={tmp_path}", "--collect", "--measures=dev/perplexity,steps", "--format=csv"]
    assert cli.main(arguments) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[1].startswith("8,2,5.5,0.70710")
    assert err == "nmt-jax: 1 of 3 runs have not finished: d_model=16,seed=0\n"


def test_a_failed_run_is_reported_with_the_last_line_of_its_log(tmp_path, capsys):
    run = Run({"model.d_model": "8"}, Workdir(tmp_path / "d_model=8"))
    failed = train_sweep.train_runs([run], [configs.ConfigDict(changed(run.point))], [["train"]])
    assert list(failed) == ["d_model=8"]
    assert failed["d_model=8"].startswith("nmt-jax train needs --workdir=")
    assert failed["d_model=8"].endswith(f"(exit code 2; {run.log})")
    assert "[1/1] d_model=8: failed; 0:00:00 left" in capsys.readouterr().err


def test_a_damaged_file_of_a_run_does_not_stop_the_sweep(tmp_path, monkeypatch, capsys):
    run = make_run(tmp_path, {"model.d_model": 8}, [5.0], steps=10)
    run.workdir.metrics_file.write_text("damaged\n")
    monkeypatch.setattr(train_sweep, "run_jobs", lambda jobs, parallel, ended: ended(jobs[0], 0))
    assert train_sweep.train_runs([run], [configs.ConfigDict(changed({"model.d_model": 8}))], [["train"]]) == {}
    assert f"[1/1] d_model=8: {run.workdir.metrics_file}:1: " in capsys.readouterr().err


@pytest.mark.slow
def test_a_run_that_fails_does_not_stop_the_others(tmp_path, capfd):
    config_modules.copy_to(tmp_path)
    page = tmp_path / "page.py"
    page.write_text(
        "import common\n"
        "def get_config():\n    return common.smoke(common.base('rnn'))\n"
        "def sweep(add):\n    for width in (7, 8):\n        add({'model.d_hidden': width})\n"
    )
    assert cli.main(["sweep", f"--config={page}", f"--workdir={tmp_path / 'w'}"]) == 2
    out, err = capfd.readouterr()
    header, _, failed, done = out.splitlines()
    assert header == "| model.d_hidden | steps | dev/bleu | tokens/s | minutes |"
    assert failed == "| 7 | 0 |  |  |  |"
    assert done.startswith("| 8 | 1 | ")
    assert "d_hidden=7 must be even" in err
    assert "[1/2] d_hidden=7: failed; " in err
    assert "[2/2] d_hidden=8: dev/bleu " in err
    assert "nmt-jax: d_hidden=7: config.model: d_hidden=7 must be even" in err
    assert "1 of 2 runs failed: d_hidden=7;" in err
    assert "dev/bleu" in (tmp_path / "w" / "d_hidden=8" / "log.txt").read_text()
    assert cli.main(["sweep", f"--config={page}", f"--workdir={tmp_path / 'w'}", "--parallel=2"]) == 2
    again, err = capfd.readouterr()
    assert again == out
    assert err.startswith(
        "1 of 2 runs have already finished\n[1/1] d_hidden=7: failed; 0:00:00 left\nnmt-jax: d_hidden=7:"
    )
