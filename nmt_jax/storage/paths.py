"""Paths of files: of this machine, or of an object store (`s3://BUCKET/KEY`, `gs://BUCKET/KEY`).

`path_of` decides which of the two a text names. The paths of object stores have those methods of `pathlib.Path` that
this project uses. An object is always written as a whole, so that readers see the old object or the new one. A folder
is the common start of keys: it exists as soon as something is in it, and it cannot be renamed.
"""

import contextlib
import datetime
import errno
import fnmatch
import functools
import io
import os
import pathlib
from collections.abc import Iterator
from typing import IO, Any, NamedTuple, cast

from nmt_jax.errors import UserError

PACKAGES = {"s3": "s3fs", "gs": "gcsfs"}  # by scheme, which is also the name of the extra that installs the package
CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or `aws configure`",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS, or `gcloud auth application-default login`",
}
ERRORS = {errno.ENOENT: FileNotFoundError, errno.EACCES: PermissionError, errno.EEXIST: FileExistsError}


def path_of(place: str | os.PathLike[str]) -> pathlib.Path:
    """Returns the path that a text or another path names; paths of object stores have the methods used here.

    Raises UserError for a path of an object store without a bucket.
    """
    if is_remote(place):
        path = RemotePath(os.fspath(place))
        if len(path.parts) < 2:
            raise UserError(f"{os.fspath(place)}: names no bucket; expected {path.scheme}://BUCKET/KEY")
        return cast(pathlib.Path, path)
    return pathlib.Path(place)


def is_remote(place: str | os.PathLike[str]) -> bool:
    """Returns whether a text or a path names a place in an object store."""
    return os.fspath(place).startswith(tuple(f"{scheme}://" for scheme in PACKAGES))


def local_path_of(place: str | os.PathLike[str]) -> pathlib.Path:
    """Returns the path that a text names. Raises UserError if it is in an object store."""
    if is_remote(place):
        raise UserError(f"{os.fspath(place)}: this must be a local path; copy files from or to the object store")
    return pathlib.Path(place)


class Status(NamedTuple):
    """What is known about an object, named as in `os.stat_result`."""

    st_size: int
    st_mtime_ns: int

    @property
    def st_mtime(self) -> float:
        return self.st_mtime_ns / 1e9


class RemotePath(pathlib.PurePosixPath):
    """A path in an object store.

    Its methods raise OSError with this path as `filename`: FileNotFoundError and PermissionError as for files, and
    OSError for missing credentials and for an object store that does not answer. Raises UserError if the package for
    this object store is not installed.
    """

    __slots__ = ()

    def __str__(self) -> str:
        text = super().__str__()  # "s3:/BUCKET/KEY", since repeated slashes are one slash in a path
        scheme, found, rest = text.partition(":/")
        return f"{scheme}://{rest}" if found else text

    def __fspath__(self) -> str:
        return str(self)

    @property
    def scheme(self) -> str:
        """The scheme of the URL, such as "s3"."""
        return self.parts[0].removesuffix(":")

    @contextlib.contextmanager
    def store(self) -> Iterator[Any]:
        """Yields the fsspec file system of this path; its errors are raised as those of this path."""
        try:
            yield _file_system(self.scheme)
        except ImportError as error:
            raise UserError(
                f"{self}: {self.scheme}:// paths need {PACKAGES[self.scheme]} ({error}); install it with: "
                f"pip install 'nmt-jax[{self.scheme}]'"
            ) from None
        except OSError as error:
            if error.filename:  # of a local file
                raise
            kind = next((code for code, type_ in ERRORS.items() if isinstance(error, type_)), error.errno or errno.EIO)
            reason = str(error) if " " in str(error) else os.strerror(kind)  # some consist of the path only
            raise OSError(kind, reason, str(self)) from error
        except (UserError, MemoryError):
            raise
        except Exception as error:  # of the clients and of what they are built on: dozens of types
            reason = " ".join(str(error).split()) or type(error).__name__
            advice = f"check the network, the endpoint and the credentials ({CREDENTIALS[self.scheme]})"
            raise OSError(errno.EIO, f"{reason[:240]}; {advice}", str(self)) from error

    # Pure paths

    def is_absolute(self) -> bool:
        return True

    def absolute(self) -> "RemotePath":
        return self

    def expanduser(self) -> "RemotePath":
        return self

    # Looking

    def _info(self) -> dict[str, Any] | None:
        """What the store knows about this object or folder; None if there is none."""
        with self.store() as store, contextlib.suppress(FileNotFoundError):
            info: dict[str, Any] = store.info(str(self))
            return info
        return None

    def exists(self) -> bool:
        return self._info() is not None

    def is_file(self) -> bool:
        return (self._info() or {}).get("type") == "file"

    def is_dir(self) -> bool:
        return (self._info() or {}).get("type") == "directory"

    def is_symlink(self) -> bool:
        return False

    def stat(self) -> Status:
        with self.store() as store:
            info = store.info(str(self))
            changed = info.get("LastModified") or info.get("updated") or info.get("mtime") or 0
            if isinstance(changed, str):
                changed = datetime.datetime.fromisoformat(changed)
            seconds = changed.timestamp() if isinstance(changed, datetime.datetime) else float(changed)
            return Status(info["size"] or 0, round(seconds * 1e9))

    def iterdir(self) -> "Iterator[RemotePath]":
        """Yields what is in this folder; nothing if it does not exist, as a folder without files does not."""
        names: list[str] = []
        with self.store() as store, contextlib.suppress(FileNotFoundError):
            names = [entry["name"].rstrip("/") for entry in store.ls(str(self), detail=True)]
        own = str(self).partition("://")[2]  # listed too if there is an object of this name
        yield from (self / name.rpartition("/")[2] for name in names if name != own)

    def glob(self, pattern: str) -> "Iterator[RemotePath]":
        """Yields what matches the pattern, which has no `**`."""
        *folders, last = pattern.split("/")
        if folders:
            rest = "/".join([*folders[1:], last])
            yield from (match for folder in self.glob(folders[0]) for match in folder.glob(rest))
            return
        yield from sorted(path for path in self.iterdir() if fnmatch.fnmatchcase(path.name, last))

    def rglob(self, pattern: str) -> "Iterator[RemotePath]":
        """Yields the files at any depth whose name matches the pattern; no folders."""
        names: list[str] = []
        with self.store() as store, contextlib.suppress(FileNotFoundError):
            names = sorted(store.find(str(self)))
        own = str(self).partition("://")[2]
        paths = (self / name.removeprefix(f"{own}/") for name in names)
        yield from (path for path in paths if fnmatch.fnmatchcase(path.name, pattern))

    # Reading and writing

    def open(self, mode: str = "r", encoding: str | None = None, **options: Any) -> IO[Any]:
        """Opens the object for reading; objects are written by `write_bytes` and `files.whole_file`."""
        if mode not in ("r", "rb"):
            raise io.UnsupportedOperation(f"{self}: objects are written as a whole, not opened as {mode!r}")
        with self.store() as store:
            binary = io.BufferedReader(_Reader(self, store.open(str(self), "rb")), 1 << 20)
        return binary if mode == "rb" else io.TextIOWrapper(binary, encoding or "utf-8", **options)

    def read_bytes(self) -> bytes:
        with self.store() as store:
            content: bytes = store.cat_file(str(self))
            return content

    def read_text(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return self.read_bytes().decode(encoding, errors)

    def write_bytes(self, data: bytes) -> int:
        with self.store() as store:
            store.pipe_file(str(self), bytes(data))
        return len(data)

    def write_text(self, data: str, encoding: str = "utf-8") -> int:
        return self.write_bytes(data.encode(encoding))

    def touch(self, mode: int = 0o666, exist_ok: bool = True) -> None:
        """Writes an empty object if there is none; who may read it is a setting of the bucket, not of the object."""
        if not self.exists():
            self.write_bytes(b"")

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        """Does nothing: a folder exists as soon as something is in it. Buckets are not created."""

    def rmdir(self) -> None:
        """Does nothing, as `mkdir`."""

    def unlink(self, missing_ok: bool = False) -> None:
        with self.store() as store, contextlib.suppress(*[FileNotFoundError] if missing_ok else []):
            store.rm_file(str(self))


class _Reader(io.RawIOBase):
    """An open object whose errors name its path."""

    def __init__(self, path: RemotePath, file: Any):
        self._path, self._file = path, file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return int(self._file.seek(offset, whence))

    def readinto(self, buffer: Any) -> int:
        with self._path.store():
            data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


@functools.cache
def _file_system(scheme: str) -> Any:
    """The fsspec file system of a scheme; listings are not cached, since other processes write too."""
    import fsspec  # imported late: local paths do not need it

    return fsspec.filesystem(scheme, use_listings_cache=False)
