import pathlib
import shutil

import pytest

from nmt_jax import __main__ as cli
from nmt_jax import config as configs
from nmt_jax import sweep
from nmt_jax.errors import UserError
from tests.toy import ENVIRONMENT

CONFIGS = pathlib.Path(__file__).parent.parent / "configs"
LUONG = str(CONFIGS / "rnn_luong.py")


def test_the_points_of_a_page_are_those_it_adds():
    points = configs.load_sweep(LUONG)
    assert len(points) == 36
    assert {"model.score": "dot", "model.attention": "local-p", "model.input_feeding": "false"} in points
    assert len(sweep.select(points, {"model.attention": "global"})) == 12
    assert len({sweep.name(point) for point in points}) == 36


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([f"--config={LUONG}"], "needs --config=FILE with a sweep(add) and --workdir=FOLDER"),
        ([f"--config={CONFIGS / 'quickstart.py'}", "--workdir=w"], "quickstart.py: no sweep: define sweep(add)"),
        ([f"--config={LUONG}", "--workdir=w", "--only=model.d_hidden=3"], "--only=model.d_hidden: the sweep varies"),
        ([f"--config={LUONG}", "--workdir=w", "--only=model.score=x"], "no point of the sweep is left"),
        ([f"--config={LUONG}", "--workdir=w", "--config.model.d_hiden=3"], "unknown config key 'model.d_hiden'"),
        (["--workdir=w", f"--config={LUONG}", "x"], "takes no 'x'"),
    ],
)
def test_mistakes_are_told_before_anything_runs(arguments, line, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["sweep", *arguments]) == 2
    assert line in capsys.readouterr().err
    assert not (tmp_path / "w").exists()


def test_a_point_that_stands_there_twice_is_an_error(tmp_path):
    page = tmp_path / "page.py"
    page.write_text("def sweep(add):\n    add({'seed': 1})\n    add({'seed': 1})\n")
    with pytest.raises(UserError, match=r"page\.py:3: .*twice"):
        configs.load_sweep(str(page))


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


def test_a_run_that_fails_does_not_stop_the_others(tmp_path, capfd, monkeypatch):
    for name, value in {**ENVIRONMENT, "NMT_JAX_CACHE": str(tmp_path / "cache")}.items():
        monkeypatch.setenv(name, value)
    shutil.copy(CONFIGS / "common.py", tmp_path)
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
    assert "d_hidden=7 is odd" in err
    assert "1 of 2 runs failed: d_hidden=7;" in err
