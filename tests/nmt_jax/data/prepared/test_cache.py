"""The cache of prepared data: one entry per key, complete or absent, whatever happens while it is written."""

import errno
import os
import pathlib
import shutil
import time

import pytest
from ml_collections import ConfigDict

from nmt_jax.data.prepared.cache import cache_directory, cached_file, cached_folder
from nmt_jax.errors import UserError


def full_disk(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_location(monkeypatch):
    monkeypatch.setenv("NMT_JAX_CACHE", "/from/environment")
    assert cache_directory(ConfigDict({"cache": "/given"})) == pathlib.Path("/given/corpora")
    assert cache_directory(ConfigDict({"cache": ""})) == pathlib.Path("/from/environment/corpora")
    monkeypatch.delenv("NMT_JAX_CACHE")
    assert cache_directory(ConfigDict({"cache": ""})) == pathlib.Path.home() / ".cache" / "nmt-jax" / "corpora"


def test_names_stay_the_same_between_versions(tmp_path):
    path = cached_file(tmp_path, "train", [1, "abc"], ".int32", lambda file: None)
    assert path.name == "train-880658476facff1a375c12513452e2f0.int32"


def test_an_entry_is_written_once_per_key(tmp_path):
    written = []

    def write(target):
        written.append(target)
        (target / "a").write_text("a") if isinstance(target, pathlib.Path) else target.write(b"a")

    for _ in range(2):
        assert cached_file(tmp_path / "new", "x", [1], ".txt", write).read_bytes() == b"a"
        assert (cached_folder(tmp_path / "new", "x", [1], write) / "a").read_text() == "a"
    assert len(written) == 2
    cached_file(tmp_path / "new", "x", [2], ".txt", write)
    cached_folder(tmp_path / "new", "x", [2], write)
    assert len(written) == 4
    assert len(os.listdir(tmp_path / "new")) == 4
    assert (cached_folder(tmp_path / "new", "x", [1], write).stat().st_mode & 0o777) == 0o755


@pytest.mark.parametrize("error", [UserError("text.de:3: not UTF-8"), KeyboardInterrupt()])
def test_an_interrupted_write_leaves_nothing_behind(error, tmp_path):
    def write(target):
        (target / "a").write_text("a") if isinstance(target, pathlib.Path) else target.write(b"a")
        raise error

    with pytest.raises(type(error)):
        cached_file(tmp_path, "x", [1], "", write)
    with pytest.raises(type(error)):
        cached_folder(tmp_path, "x", [1], write)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("function", ["write", "rename"])
def test_a_full_disk_is_a_clear_error_and_leaves_nothing_behind(function, tmp_path, monkeypatch):
    if function == "rename":
        monkeypatch.setattr(os, "replace", full_disk)
        monkeypatch.setattr(pathlib.Path, "rename", full_disk)
    write = full_disk if function == "write" else lambda target: None
    message = r"No space left on device; free some space or set config\.data\.cache to another folder"
    with pytest.raises(UserError, match=message):
        cached_file(tmp_path, "x", [1], "", write)
    with pytest.raises(UserError, match=message):
        cached_folder(tmp_path, "x", [1], write)
    assert os.listdir(tmp_path) == []


def test_two_processes_may_write_the_same_folder(tmp_path):
    def write(folder):
        (folder / "a").write_text("late")
        faster = cached_folder(tmp_path, "x", [1], lambda folder: (folder / "a").write_text("early"))
        assert (faster / "a").read_text() == "early"

    assert (cached_folder(tmp_path, "x", [1], write) / "a").read_text() == "early"
    assert len(os.listdir(tmp_path)) == 1


@pytest.mark.parametrize("damage", ["cut", "altered", "removed", "emptied", "a file", "sums"])
def test_a_damaged_folder_is_made_again(damage, tmp_path):
    def write(folder):
        (folder / "part").mkdir()
        (folder / "part" / "a").write_text("content")

    path = cached_folder(tmp_path, "x", [1], write)
    file = path / "part" / "a"
    if damage in ("cut", "altered"):
        file.write_text("con" if damage == "cut" else "CONTENT")
        os.utime(file, (time.time() + 1,) * 2)
    elif damage == "removed":
        file.unlink()
    elif damage == "sums":
        (path / "sums.json").write_text('{"part/a": 1}')
    else:
        shutil.rmtree(path)
        path.mkdir() if damage == "emptied" else path.touch()
    with pytest.warns(UserWarning, match=r"x-\w+: the prepared data is damaged \(.*\); it is made again"):
        assert cached_folder(tmp_path, "x", [1], write) == path
    assert file.read_text() == "content"
    assert os.listdir(tmp_path) == [path.name]
    assert cached_folder(tmp_path, "x", [1], lambda folder: pytest.fail("made again")) == path


def test_a_folder_of_an_older_version_has_no_sums(tmp_path):
    path = cached_folder(tmp_path, "x", [1], lambda folder: (folder / "a").touch())
    (path / "sums.json").unlink()
    assert cached_folder(tmp_path, "x", [1], lambda folder: pytest.fail("made again")) == path
