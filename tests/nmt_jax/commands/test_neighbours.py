"""`nmt-jax neighbours`: line N of the answers belongs to line N of the questions, from a file and from a workdir."""

import io
import sys

import pytest

from nmt_jax import __main__ as cli
from nmt_jax.training.run import train
from tests.conftest import ROOT

VECTORS = "6 2\nman 1 0\nwoman 0 1\nking 2 0.5\nqueen 0.5 2\nUS 1 1\nus -1 0.2\n"


@pytest.fixture
def ask(tmp_path, monkeypatch, capsysbinary):
    """Asks questions -> exit code, lines of the answer, stderr."""
    (tmp_path / "vectors.txt").write_text(VECTORS)

    def run(questions: str, *flags: str) -> tuple[int, list[str], str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(questions.encode())))
        where = [] if any("workdir" in flag for flag in flags) else [f"--vectors={tmp_path / 'vectors.txt'}"]
        code = cli.main(["neighbours", *where, *flags])
        out, err = capsysbinary.readouterr()
        return code, out.decode().split("\n")[:-1], err.decode()

    return run


def test_lines_are_answered_by_lines(ask):
    code, lines, err = ask("king\n\nking - man + woman\nzebra\nUS\n", "--count=2")
    assert code == 0
    assert lines == ["man 0.970\tUS 0.857", "", "queen 0.964\tUS 0.690", "", "king 0.857\tqueen 0.857"]
    assert err == "nmt-jax: warning: stdin:4: 'zebra' has no vector; it is not among the 6 known words\n"


def test_lower_case_is_asked_for(ask):
    assert ask("US\n", "--count=6")[1] != ask("US\n", "--count=6", "--lower_case")[1] == ask("us\n", "--count=6")[1]


def test_mistakes_are_one_line(ask, tmp_path):
    code, lines, err = ask("king\nking - - man\nqueen\n")
    assert (code, len(lines)) == (2, 1)
    assert err.startswith("nmt-jax: error: stdin:2: 'king - - man' is neither a word nor a sum of words")
    (tmp_path / "ragged.txt").write_text(VECTORS.replace("queen 0.5 2", "queen 0.5"))
    assert cli.main(["neighbours", f"--vectors={tmp_path / 'ragged.txt'}"]) == 2
    code, _, err = ask("king\n", "--workdir=x", f"--vectors={tmp_path / 'vectors.txt'}")
    assert code == 2
    assert "needs --workdir=FOLDER of trained word vectors or --vectors=FILE" in err
    code, _, err = ask("king\n", f"--workdir={tmp_path / 'nowhere'}")
    assert code == 2
    assert "no such workdir" in err


def test_a_ragged_row_is_told_with_file_and_line(tmp_path, capsys):
    (tmp_path / "ragged.txt").write_text(VECTORS.replace("queen 0.5 2", "queen 0.5"))
    assert cli.main(["neighbours", f"--vectors={tmp_path / 'ragged.txt'}"]) == 2
    expected = f"nmt-jax: error: {tmp_path / 'ragged.txt'}:5: 1 numbers after the word, but 2 in the first row"
    assert capsys.readouterr().err.startswith(expected)


def test_a_workdir_with_n_grams_answers_for_words_never_seen(ask, tmp_path, monkeypatch):
    monkeypatch.setenv("NMT_JAX_CACHE", str(tmp_path / "cache"))
    train(f"{ROOT}/configs/fasttext.py:smoke=true", tmp_path / "w")
    code, lines, err = ask("Zebrastreifen\nthe\n\n", f"--workdir={tmp_path / 'w'}", "--count=3")
    assert code == 0
    assert [line.count("\t") for line in lines] == [2, 2, 0]
    assert "warning" not in err
    assert ask("zebrastreifen\n", f"--workdir={tmp_path / 'w'}", "--count=3")[1] == lines[:1]
