import functools
import gzip
import struct

import numpy as np
import pytest

from metrics_jax import BERTScore, MoverScore, YiSi1
from metrics_jax.embedding import vector_files
from metrics_jax.embedding.encoder import encode
from metrics_jax.embedding.vectors import Vectors

WORDS = ("the", "über", "日本", ".")
MATRIX = np.array([[0.5, -1.25, 3.0], [1e-3, 0.0, 2.0], [-0.0, 1.0, 1.0], [7.0, 8.0, 9.0]], np.float32)
ROWS = [f"{word} {' '.join(map(str, row))}" for word, row in zip(WORDS, MATRIX.tolist(), strict=True)]
GLOVE = "\n".join(ROWS).encode() + b"\n"


def binary(end: bytes = b"\n", header: str = "4 3") -> bytes:
    rows = [word.encode() + b" " + struct.pack("<3f", *row) for word, row in zip(WORDS, MATRIX.tolist(), strict=True)]
    return header.encode() + b"\n" + end.join([*rows, b""])


FORMS = {
    "glove": GLOVE,
    "no last line end": GLOVE[:-1],
    "carriage returns": GLOVE.replace(b"\n", b"\r\n"),
    "byte-order mark": b"\xef\xbb\xbf" + GLOVE,
    "blanks at line ends": GLOVE.replace(b"\n", b" \n"),
    "word2vec": b"4 3\n" + GLOVE,
    "byte-order mark and counts": b"\xef\xbb\xbf4 3\n" + GLOVE,
    "binary": binary(),
    "binary without line ends": binary(b""),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_all_file_formats(tmp_path, monkeypatch, form, packed):
    path = tmp_path / "vectors.any"
    path.write_bytes(gzip.compress(FORMS[form]) if packed else FORMS[form])
    for block in (vector_files._BLOCK, 16):  # in one block and in many
        monkeypatch.setattr(vector_files, "_BLOCK", block)
        loaded = Vectors.load(path)
        assert loaded.words == WORDS
        assert loaded.matrix.dtype == np.float32
        np.testing.assert_array_equal(loaded.matrix, MATRIX)
        assert loaded == Vectors(WORDS, MATRIX)
    assert loaded.rows(["日本", "Über", "the"]).tolist() == [2, -1, 0]
    assert loaded.rows([]).tolist() == []


def test_words_with_spaces(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_text("a 1 2\n. . . 3 4\nat name@domain.com 5 6\n")
    loaded = Vectors.load(path)
    assert loaded.words == ("a", ". . .", "at name@domain.com")
    np.testing.assert_array_equal(loaded.matrix, [[1, 2], [3, 4], [5, 6]])


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", "the file contains no vectors"),
        (b"a 1 2\nb 1\n", r"v:2: 1 numbers after the word, but 2 in the first row"),
        (b"a 1 2\nb 1 2 3\n", r"v:2: 3 numbers after the word, but 2 in the first row"),
        (b"a 1 2\n\nb 1 2\n", r"v:2: 0 numbers after the word"),
        (b"a\nb\n", r"v:1: 0 numbers after the word"),
        (b"a 1 2\nb 1 x\n", r"v:2: 'x' is not a number"),
        (b"a 1 2\nb 1  2\n", r"v:2: 3 numbers after the word"),
        (b"a 1 2\nb nan 2\n", r"v:2: the vector of 'b' contains NaN or infinity"),
        (b"a 1 2\nb 1 1e99\n", r"v:2: the vector of 'b' contains NaN or infinity"),
        (b"a 1 2\nb 1 2\na 3 4\n", r"v:3: 'a' occurs twice, also 2 rows before"),
        (b"2 2\na 1 2\na 3 4\n", r"v:3: 'a' occurs twice, also 1 rows before"),
        (b"3 2\na 1 2\nb 3 4\n", r"v:1: the header says 3 words of 2 numbers, but the file has 2 words of 2 numbers"),
        (b"a 1 2\n\xff\xfe 1 2\n", r"v:2: the word is not UTF-8"),
        (binary()[:-9], r"v: truncated in row 4 of 4"),
        (binary(header="5 3"), r"v: truncated in row 5 of 5"),
        (binary().replace("über".encode(), b"\xff\xff\xffx"), r"v: row 2: the word is not UTF-8"),
        (binary().replace("über".encode(), b"the"), r"v: row 2: 'the' occurs twice"),
        (
            binary().replace(struct.pack("<f", 7.0), struct.pack("<f", np.nan)),
            r"v: row 4: the vector of '\.' contains NaN",
        ),
        (gzip.compress(GLOVE, mtime=0)[:-12], "damaged gzip file"),
    ],
)
def test_damaged_files_raise_errors(tmp_path, content, line):
    (tmp_path / "v").write_bytes(content)
    with pytest.raises(ValueError, match=line):
        Vectors.load(tmp_path / "v")


def test_a_missing_file_raises_an_error(tmp_path):
    with pytest.raises(ValueError, match="none: cannot be read: No such file"):
        Vectors.load(tmp_path / "none")


def test_invalid_vectors_raise_errors():
    with pytest.raises(ValueError, match=r"2 words need a matrix of shape \(2, D\), not \(1, 2\)"):
        Vectors(("a", "b"), np.ones((1, 2)))
    with pytest.raises(ValueError, match="'b' contains NaN"):
        Vectors(("a", "b"), np.array([[1.0], [np.nan]]))
    with pytest.raises(ValueError, match="rows 0 and 2 are both for 'a'"):
        Vectors(("a", "b", "a"), np.ones((3, 1)))


def test_immutability_and_fingerprint():
    matrix = np.array([[1.0, 2.0], [3.0, 4.0]])
    frozen = Vectors(("a", "b"), matrix)
    matrix[0] = 9.0
    assert frozen.matrix[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        frozen.matrix[0, 0] = 5.0
    same = Vectors(["a", "b"], np.array([[1.0, 2.0], [3.0, 4.0]]))
    others = [
        Vectors(("a", "b"), matrix),
        Vectors(("b", "a"), frozen.matrix),
        Vectors(("a", "b"), frozen.matrix.astype("f4")),
    ]
    assert (same, hash(same)) == (frozen, hash(frozen))
    assert len({each.fingerprint for each in (frozen, *others)}) == 4
    assert frozen not in others
    assert Vectors(("a",), [[1]]).matrix.dtype == np.float64
    assert "2 words, 2 numbers each" in repr(frozen)


def test_word_vectors_as_encoder():
    given = Vectors(WORDS, MATRIX)
    encoder = given.encoder()
    texts = ["The unknown über", "", "日本 .", "unknown", "the"]
    encoded = encode(encoder, texts, normalize=False)
    for text, rows in zip(range(len(texts)), [[0, 1], [], [2, 3], [], [0]], strict=True):
        vectors, ids, special = encoded[text]
        np.testing.assert_array_equal(vectors, MATRIX[rows])
        assert encoder.pieces(ids.tolist()) == [WORDS[row] for row in rows]
        assert not special.any()
    assert encode(encoder, ["the " * 5000])[0][0].shape == (5000, 3)
    assert len({one.fingerprint for one in (encoder, given.encoder(lowercase=False), given.encoder("none"))}) == 3
    assert given.encoder().fingerprint == encoder.fingerprint
    with pytest.raises(ValueError, match="tokenize='words'"):
        given.encoder("words")


@pytest.mark.parametrize("kind", [BERTScore, YiSi1, functools.partial(MoverScore, layers=(-1,))])
def test_unknown_words_are_skipped(kind):
    metric = kind(Vectors(WORDS, MATRIX).encoder(), idf="uniform")
    segments = metric(["the unknown über", "unknown", ""], ["the über", "the", "the"]).segments
    np.testing.assert_allclose(segments, [1, 0, 0], atol=1e-6)
