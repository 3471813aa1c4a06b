"""Binary files of n-gram models: arrays that are mapped into memory and read where a query needs them.

The first line of a file is `FIRST_LINE`, the second JSON that lists the arrays. Then follow the arrays, each at a
multiple of 64 bytes: the words, the keys of each order from 2, the log-probabilities of each order, and the backoffs of
each order below the highest.
"""

import json
import os
from typing import Any, BinaryIO

import numpy as np

from nmt_jax.errors import UserError
from nmt_jax.ngram.model import NgramModel
from nmt_jax.ngram.trie import Trie
from nmt_jax.ngram.vocabulary import SPECIAL, Vocabulary
from nmt_jax.storage.files import whole_file
from nmt_jax.storage.paths import local_path_of, path_of

NAME = b"nmt-jax n-gram model"
FIRST_LINE = NAME + b", version 1\n"
ALIGNMENT = 64
LONGEST_HEADER = 1 << 16
DTYPES = {"words": "|u1", "keys": "<i8", "log_probabilities": "<f4", "backoffs": "<f4"}


def write_binary(model: NgramModel, path: str | os.PathLike[str]) -> None:
    """Writes a model; log-probabilities and backoffs are rounded to float32."""
    words = np.frombuffer("\n".join(model.vocabulary.words).encode(), np.uint8)
    arrays = [("words", words), *(("keys", keys) for keys in model.trie.keys)]
    arrays += [("log_probabilities", one) for one in model.log_probabilities]
    arrays += [("backoffs", one) for one in model.backoffs]
    header = json.dumps({"order": model.order, "arrays": [[name, len(one)] for name, one in arrays]})
    with whole_file(path_of(path)) as file:
        file.write(FIRST_LINE + header.encode() + b"\n")
        for name, one in arrays:
            file.write(b"\0" * (-file.tell() % ALIGNMENT))
            file.write(np.ascontiguousarray(one, DTYPES[name]).data)


def is_binary(file: BinaryIO) -> bool:
    """Returns whether a file begins like a binary model of any version."""
    return file.read(len(NAME)) == NAME


def read_binary(path: str | os.PathLike[str]) -> NgramModel:
    """Maps a file that `write_binary` wrote; only its words are read at once.

    Raises UserError for a path in an object store, and for a file that is truncated or not of this format.
    """
    path = local_path_of(path)
    with path.open("rb") as file:
        if file.read(len(FIRST_LINE)) != FIRST_LINE:
            raise UserError(f"{path}:1: a binary n-gram model of another version; estimate the model again")
        header = file.readline(LONGEST_HEADER)
        offset = file.tell()
    try:
        read = json.loads(header)
        order, listed = int(read["order"]), [(str(name), int(length)) for name, length in read["arrays"]]
        if order < 1 or len(listed) != 3 * order - 1 or any(length < 0 for _, length in listed):
            raise ValueError
        names = ["words"] + ["keys"] * (order - 1) + ["log_probabilities"] * order + ["backoffs"] * (order - 1)
        if [name for name, _ in listed] != names:
            raise ValueError
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise UserError(f"{path}:2: damaged list of arrays; copy the file again, or estimate the model again") from None
    places = []
    for name, length in listed:
        offset += -offset % ALIGNMENT
        places.append((DTYPES[name], length, offset))
        offset += length * np.dtype(DTYPES[name]).itemsize
    size = path.stat().st_size
    if size != offset:
        what = f"{size:,} bytes, but the arrays need {offset:,}: truncated or changed"
        raise UserError(f"{path}: {what}; copy the file again, or estimate the model again")
    content = np.memmap(path, np.uint8, "r")
    arrays: list[Any] = [_view(content, *place) for place in places]
    try:
        vocabulary = Vocabulary(arrays[0].tobytes().decode().split("\n"))
    except UnicodeDecodeError:
        raise UserError(f"{path}: damaged words; copy the file again, or estimate the model again") from None
    keys, log_probabilities, backoffs = arrays[1:order], arrays[order : 2 * order], arrays[2 * order :]
    lengths = [len(vocabulary), *map(len, keys)]
    if (
        tuple(vocabulary.words[: len(SPECIAL)]) != SPECIAL
        or lengths != [len(one) for one in log_probabilities]
        or lengths[:-1] != [len(one) for one in backoffs]
    ):
        raise UserError(f"{path}:2: arrays of different lengths; copy the file again, or estimate the model again")
    return NgramModel(vocabulary, Trie(len(vocabulary), tuple(keys)), tuple(log_probabilities), tuple(backoffs))


def _view(content: np.ndarray, dtype: str, length: int, offset: int) -> np.ndarray:
    stop = offset + length * np.dtype(dtype).itemsize
    return np.asarray(content[offset:stop]).view(dtype)
