"""No verb replaces a file that it did not write for the same workdir, unless `--overwrite` is set."""

import shutil

import pytest

from tests.conftest import ROOT
from tests.fixtures.encoder_folders import write_folder

OWN = "a file of the user\n"


@pytest.fixture
def commands(translator_workdir, tmp_path):
    """For each verb its arguments, the first file that it writes, and the input."""
    write_folder(tmp_path / "bert")
    (tmp_path / "corpus").write_text("a b c\nd e f g\nh i\na a\nj k l m n\n")
    calibrate = ["calibrate", tmp_path / "corpus", f"--encoder={tmp_path / 'bert'}", "--num_pairs=5"]
    workdir = f"--workdir={translator_workdir}"
    length = [f"--source={tmp_path / 'corpus'}", f"--reference={tmp_path / 'corpus'}"]
    return {
        "corpus": (
            [
                "corpus",
                f"--config={ROOT}/configs/quickstart.py:smoke=true",
                "--lines=1",
                f"--output={tmp_path / 'out'}",
            ],
            tmp_path / "out.de",
        ),
        "idf": ([*calibrate[:3], f"--idf={tmp_path / 'idf.json'}"], tmp_path / "idf.json"),
        "baseline": ([*calibrate, f"--baseline={tmp_path / 'base.csv'}"], tmp_path / "base.csv"),
        "curves": (["plot", workdir, f"--output={tmp_path / 'curves.svg'}"], tmp_path / "curves.svg"),
        "length": (["plot", "--kind=length", tmp_path / "corpus", *length], tmp_path / "length.png"),
        "report": (["report", workdir, "--lines=1", f"--output={tmp_path / 'r.html'}"], tmp_path / "r.html"),
        "translate": (["translate", workdir, f"--output={tmp_path / 'hypothesis'}"], tmp_path / "hypothesis"),
    }


@pytest.mark.parametrize("name", ["corpus", "idf", "baseline", "curves", "length", "report", "translate"])
def test_a_file_is_replaced_only_with_overwrite(name, commands, nmt_jax, mistake, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    arguments, output = commands[name]
    output.write_text(OWN)
    error = mistake(*arguments, stdin="the dog .\n")
    assert output.name in error
    assert "--overwrite" in error
    assert output.read_text() == OWN
    assert nmt_jax(*arguments, "--overwrite", stdin="the dog .\n").code == 0
    assert output.read_bytes() != OWN.encode()


@pytest.mark.slow
def test_a_default_file_of_the_workdir_is_replaced(translator_workdir, nmt_jax, tmp_path):
    pytest.importorskip("matplotlib")
    workdir = shutil.copytree(translator_workdir, tmp_path / "w")
    for verb, name, *flags in (("plot", "curves.png"), ("report", "report.html", "--lines=1")):
        (workdir / name).write_text("of the last week")
        assert nmt_jax(verb, f"--workdir={workdir}", *flags).code == 0
        assert (workdir / name).stat().st_size > 1000


def test_a_translation_that_fails_at_once_leaves_the_file_to_be_overwritten(translator_workdir, mistake, tmp_path):
    output = tmp_path / "out"
    output.write_text(OWN)
    flags = (f"--workdir={tmp_path}", f"--output={output}", "--overwrite")
    mistake("translate", *flags, stdin="the dog .\n")
    assert output.read_text() == OWN
    mistake("translate", f"--workdir={translator_workdir}", *flags[1:], stdin=b"\xff\n")
    assert [path.read_text() for path in tmp_path.iterdir()] == [OWN]
