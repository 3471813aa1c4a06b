"""`nmt-jax neighbours` with a file of word vectors and with a workdir."""

import pytest

from tests.fixtures.command_line import Finished, error_line

VECTORS = "6 2\nman 1 0\nwoman 0 1\nking 2 0.5\nqueen 0.5 2\nUS 1 1\nus -1 0.2\n"


@pytest.fixture
def neighbours(tmp_path, nmt_jax):
    """Find the neighbours of the lines of a text among VECTORS."""
    (tmp_path / "vectors.txt").write_text(VECTORS)

    def run(text: str, *flags: str) -> Finished:
        return nmt_jax("neighbours", f"--vectors={tmp_path / 'vectors.txt'}", *flags, stdin=text)

    return run


def test_one_line_of_neighbours_per_line(neighbours):
    code, lines, stderr = neighbours("king\n\nking - man + woman\nzebra\nUS\n", "--count=2")
    assert code == 0
    assert lines == ["man 0.970\tUS 0.857", "", "queen 0.964\tUS 0.690", "", "king 0.857\tqueen 0.857"]
    warning = "stdin:4: 'zebra' has no vector; it is not among the 6 known words"
    assert stderr == f"nmt-jax: warning: {warning}\n"


def test_lower_case_input(neighbours):
    plain = neighbours("US\n", "--count=6").lines
    assert plain != neighbours("US\n", "--count=6", "--lower_case").lines == neighbours("us\n", "--count=6").lines


def test_lines_before_a_bad_one_are_answered(neighbours):
    finished = neighbours("king\nking - - man\nqueen\n")
    assert (finished.code, len(finished.lines)) == (2, 1)
    assert error_line(finished).startswith("stdin:2: 'king - - man' is neither a word nor a sum of words")


def test_flags_that_exclude_each_other(neighbours, mistake, tmp_path):
    words = "needs --workdir=FOLDER of trained word vectors or --vectors=FILE"
    assert words in error_line(neighbours("king\n", "--workdir=x"))
    assert words in mistake("neighbours")
    assert "--checkpoint needs --workdir" in error_line(neighbours("king\n", "--checkpoint=last"))
    assert "no such workdir" in mistake("neighbours", f"--workdir={tmp_path / 'nowhere'}", stdin="king\n")


def test_a_damaged_file_is_named_with_its_line(mistake, tmp_path):
    path = tmp_path / "ragged.txt"
    path.write_text(VECTORS.replace("queen 0.5 2", "queen 0.5"))
    assert mistake("neighbours", f"--vectors={path}").startswith(
        f"{path}:5: 1 numbers after the word, but 2 in the first row"
    )


def test_vectors_with_character_n_grams_answer_for_unknown_words(nmt_jax, word_vectors_workdir):
    command = ("neighbours", f"--workdir={word_vectors_workdir}", "--count=3")
    code, lines, stderr = nmt_jax(*command, stdin="Zebrastreifen\nthe\n\n")
    assert code == 0
    assert [line.count("\t") for line in lines] == [2, 2, 0]
    assert "warning" not in stderr
    assert nmt_jax(*command, stdin="zebrastreifen\n").lines == lines[:1]
