"""Files of n-gram models: the format is chosen by the name when writing, by the content when reading."""

import os
from collections.abc import Callable

from nmt_jax.data.lines import find
from nmt_jax.errors import UserError
from nmt_jax.ngram.arpa import read_arpa, write_arpa
from nmt_jax.ngram.binary import is_binary, read_binary, write_binary
from nmt_jax.ngram.model import NgramModel

WRITERS = {".arpa": write_arpa, ".arpa.gz": write_arpa, ".ngram": write_binary}


def writer_of(path: str | os.PathLike[str]) -> Callable[[NgramModel, str | os.PathLike[str]], None]:
    """Returns the function that writes a model to a file of this name. Raises UserError for another ending."""
    for ending, write in WRITERS.items():
        if os.fspath(path).endswith(ending):
            return write
    raise UserError(f"{path}: the name must end in .arpa or .arpa.gz, for text, or in .ngram, for a fast binary file")


def read_model(path: str | os.PathLike[str]) -> NgramModel:
    """Reads an ARPA file, plain, .gz or a pipe, or a binary file. Raises UserError for a missing or damaged file."""
    place = find(path)
    binary = False
    if place.is_file():  # a pipe can be read only once
        with place.open("rb") as file:
            binary = is_binary(file)
    return read_binary(place) if binary else read_arpa(place)
