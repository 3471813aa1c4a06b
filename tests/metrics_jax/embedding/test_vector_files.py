"""Writing word2vec's formats: exact when read back by our reader and by gensim."""

import re

import numpy as np
import pytest

from metrics_jax.embedding import vector_files
from metrics_jax.embedding.vectors import Vectors

WORDS = ("the", "größe", "e\u0301", "\u2028", "a+b", "日本", "</s>")


@pytest.fixture
def vectors() -> Vectors:
    matrix = np.random.default_rng(0).standard_normal((len(WORDS), 5)).astype(np.float32)
    matrix[1, 0], matrix[2, 1], matrix[3, 2] = 1e-30, 3.0, 1.0000001
    return Vectors(WORDS, matrix)


@pytest.mark.parametrize("name", [vector_files.TEXT, vector_files.BINARY])
def test_write_and_load(name, vectors, tmp_path):
    vector_files.write(vectors.words, vectors.matrix, tmp_path)
    assert Vectors.load(tmp_path / name) == vectors
    assert (tmp_path / name).read_bytes().startswith(b"7 5\nthe ")


def test_the_binary_layout_by_hand(vectors, tmp_path):
    vector_files.write(vectors.words, vectors.matrix, tmp_path)
    rows = b"".join(
        f"{word} ".encode() + row.tobytes() + b"\n" for word, row in zip(WORDS, vectors.matrix, strict=True)
    )
    assert (tmp_path / vector_files.BINARY).read_bytes() == b"7 5\n" + rows
    assert re.fullmatch(r"the( -?\d[\d.e-]*){5}", (tmp_path / vector_files.TEXT).read_text().split("\n")[1])


@pytest.mark.parametrize("name", [vector_files.TEXT, vector_files.BINARY])
def test_gensim_reads_it(name, vectors, tmp_path):
    models = pytest.importorskip("gensim.models", reason="gensim is not installed: its reader is not tried")
    vector_files.write(vectors.words, vectors.matrix, tmp_path)
    read = models.KeyedVectors.load_word2vec_format(str(tmp_path / name), binary=name == vector_files.BINARY)
    assert read.index_to_key == list(WORDS)
    np.testing.assert_array_equal(read.vectors, vectors.matrix)


def test_a_row_of_another_length_raises_an_error_with_its_line(vectors, tmp_path):
    vector_files.write(vectors.words, vectors.matrix, tmp_path)
    lines = (tmp_path / vector_files.TEXT).read_text().split("\n")
    lines[5] = lines[5].rpartition(" ")[0]
    (tmp_path / "ragged.txt").write_text("\n".join(lines))
    with pytest.raises(ValueError, match=r"ragged\.txt:6: 4 numbers after the word, but 5 in the first row"):
        Vectors.load(tmp_path / "ragged.txt")
