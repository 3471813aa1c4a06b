"""Results of work, kept in files so that the next start need not repeat it: a key, a checksum and the content.

Nothing depends on these files but time. What was kept for another key is not used, a damaged file is one warning, and
where nothing can be written, nothing is kept.
"""

import contextlib
import hashlib
import json
import pathlib
import warnings
import zlib
from typing import Any

from nmt_jax.storage.files import whole_file


def digest(key: Any) -> str:
    """The SHA-256 of a key: a tree of lists, dicts, strings and numbers."""
    return hashlib.sha256(json.dumps(key).encode()).hexdigest()


def read(path: pathlib.Path, key: str) -> bytes | None:
    """Return what was kept in the file `path` for this key, or None."""
    try:
        with path.open("rb") as file:
            header = json.loads(file.readline())
            if header["key"] != key:
                return None
            content = file.read()
        if zlib.crc32(content) != header["checksum"]:
            raise ValueError("its checksum is wrong")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        warnings.warn(f"{path}: damaged, and made again ({error})", stacklevel=2)
        return None
    return content


def keep(path: pathlib.Path, key: str, content: bytes) -> None:
    """Replace what the file `path` keeps; nothing happens if it cannot be written."""
    header = json.dumps({"key": key, "checksum": zlib.crc32(content)})
    with contextlib.suppress(OSError), whole_file(path) as file:
        file.write(header.encode() + b"\n")
        file.write(content)
