"""Sources that are not text: files of features, and what is said about bad ones."""

import pathlib

import numpy as np
import pytest
from ml_collections import ConfigDict

from nmt_jax.data.readers.parallel_text import open_text
from nmt_jax.data.readers.rows import FeatureFiles, fill, read_line, row_reader
from nmt_jax.data.readers.source_reader import SourceReader
from nmt_jax.errors import UserError

ROWS = np.arange(6.0).reshape(2, 3)
READER = FeatureFiles(3)


def test_rows_are_read_from_npy_and_npz_in_any_type_of_number(tmp_path):
    np.save(tmp_path / "a.npy", ROWS.astype(np.float16))
    np.savez_compressed(tmp_path / "b.npz", ROWS.astype(np.int32))
    np.savez(tmp_path / "c.npz", names=np.array(["x"]), rows=ROWS)
    for name in ("a.npy", "b.npz", "c.npz"):
        stored = READER.read(str(tmp_path / name))
        assert stored.dtype == np.float32
        np.testing.assert_array_equal(READER.features(stored), ROWS)
    assert read_line(READER, " ").shape == (0, 3)


def write_bad_file(name: str, path: pathlib.Path) -> None:
    arrays = {
        "width": np.ones((2, 4)),
        "rows": np.ones((0, 3)),
        "vector": np.ones(3),
        "words": np.array([["a", "b", "c"]]),
        "nan": np.array([[1, 2, 3], [1, np.nan, 3]]),
        "large": np.full((1, 3), 1e300),
        "objects": np.array([[None, 1, 2]], object),
    }
    if name in arrays:
        np.save(path, arrays[name])
    elif name == "folder":
        path.mkdir()
    elif name == "several":
        with path.open("wb") as file:
            np.savez(file, a=ROWS, b=ROWS)
    elif name == "no arrays":
        with path.open("wb") as file:
            np.savez(file)
    elif name != "missing":
        np.save(path, ROWS)
        whole = path.read_bytes()
        path.write_bytes(
            {"empty": b"", "text": b"one two three\n", "truncated": whole[:-5], "header": whole[:20]}[name]
        )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("width", "rows of 4 features, but config.data.feature_width=3; all files need the same width"),
        ("rows", "the array has no rows; remove the file from the list"),
        ("vector", r"an array float64\[3\]; rows of numbers \[S, F\] are needed"),
        ("words", "an array <U1"),
        ("nan", "row 1 has NaN or infinity; rows must be finite in float32"),
        ("large", "row 0 has NaN or infinity"),
        ("several", "has the arrays a, b; name the one to read `rows`"),
        ("missing", "no such file"),
        ("folder", "cannot read the file: Is a directory"),
        *((name, "empty, damaged, or not an array") for name in ("empty", "text", "truncated", "header", "objects")),
        ("no arrays", "empty, damaged, or not an array"),
    ],
)
def test_a_bad_file_is_one_clear_line(name, message, tmp_path):
    path = tmp_path / "bad.npy"
    write_bad_file(name, path)
    with pytest.raises(UserError, match=f"^{path}: {message}"):
        READER.read(str(path))


def test_a_batch_has_explicit_lengths():
    batch = fill([np.zeros((2, 3)), np.ones((1, 3))], (3, 4), 3)
    assert batch["source"].shape == (3, 4, 3)
    assert batch["source_lengths"].tolist() == [2, 1, 0]  # rows of zeros are rows
    assert batch["source"].sum(axis=(1, 2)).tolist() == [0, 3, 0]


def data(folder: pathlib.Path) -> ConfigDict:
    names = {"corpus": "text", "directory": str(folder), "source": "paths", "target": "en", "train": "train"}
    return ConfigDict({**names, "kind": "features", "feature_width": 3})


def test_paths_begin_at_the_folder_of_the_list(tmp_path):
    (tmp_path / "train.paths").write_text("a.npy\n/b.npy\n\n")
    (tmp_path / "train.en").write_text("one\ntwo\nthree\n")
    corpus = open_text(data(tmp_path), "train")
    expected = [(f"{tmp_path}/a.npy", "one"), ("/b.npy", "two"), ("", "three")]
    assert list(corpus) == expected
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    assert [pair for part in corpus.slices(2, scratch) for pair in part] == expected
    with pytest.raises(UserError, match=rf"^{tmp_path}/train.paths:1: {tmp_path}/a.npy: No such file"):
        corpus.fingerprint()
    (tmp_path / "train.paths").write_text("a\0b.npy\n\n\n")
    with pytest.raises(UserError, match=rf"^{tmp_path}/train.paths:1: .*embedded null byte"):
        open_text(data(tmp_path), "train").fingerprint()


def test_a_changed_file_changes_the_fingerprint(tmp_path):
    (tmp_path / "train.paths").write_text("a.npy\n")
    (tmp_path / "train.en").write_text("one\n")
    np.save(tmp_path / "a.npy", ROWS)
    before = open_text(data(tmp_path), "train").fingerprint()
    assert open_text(data(tmp_path), "train").fingerprint() == before
    np.save(tmp_path / "a.npy", np.ones((3, 3)))
    assert open_text(data(tmp_path), "train").fingerprint() != before


def test_a_config_of_an_older_version_reads_text():
    assert row_reader("text", ConfigDict({"corpus": "grammar"})) is None
    assert SourceReader.of(ConfigDict({"source": "en,fr"})).readers == (None, None)  # as old workdirs
