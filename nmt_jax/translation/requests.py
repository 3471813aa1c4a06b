"""What a translator reads and returns: lines with constraints from files, hypotheses with scores."""

import itertools
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from nmt_jax.data.lines import read_lines
from nmt_jax.errors import UserError


class Line(NamedTuple):
    """A line to translate, and the constraints on its translation."""

    text: str
    prefix: str = ""  # beginning of the translation
    phrases: tuple[str, ...] = ()  # phrases that the translation contains
    location: str = ""  # of the constraints, "FILE:LINE: ", for error messages
    translation: str = ""  # a complete translation, to be scored
    source_location: str = ""  # of the text, "FILE:LINE: ", for error messages


def as_lines(lines: Iterable[str | Line]) -> list[Line]:
    """Return lines without constraints for texts, and others as they are."""
    return [line if isinstance(line, Line) else Line(line) for line in lines]


class Scored(NamedTuple):
    """A translation as the models see it."""

    source_pieces: list[str]  # S of them, with an end of sentence after each source
    pieces: list[str]  # T of them; the last is the end of sentence
    log_probs: list[float]  # T of them
    attention: np.ndarray  # float32[T, S], the mean over the models; S = 0 without attention


class Hypothesis(NamedTuple):
    """One translation: its text, its score (of a sample: its log-probability), and its pieces."""

    text: str
    score: float
    pieces: list[str]
    ids: list[int]
    scored: Scored | None = None


def read_requests(
    lines: Iterable[str],
    name: str,
    prefixes: str | None = None,
    constraints: str | None = None,
    given: str | None = None,
) -> Iterator[Line]:
    """Yield each line of the input `name` with line N of the other files.

    prefixes: beginnings of the translations. constraints: phrases that the translations must contain, separated by
    tabs. given: complete translations, to be scored. Raises UserError if a file has fewer or more lines than the input.
    """
    paths = (prefixes, constraints, given)
    files = [(path, read_lines(path) if path else itertools.repeat("")) for path in paths]
    names = " and ".join(path for path in paths if path)
    for number, line in enumerate(lines, start=1):
        texts = []
        for path, rows in files:
            text = next(iter(rows), None)
            if text is None:
                raise UserError(f"{path}:{number}: no such line, but {name} has more")
            texts.append(text)
        prefix, phrases, translation = texts
        origin = f"{names}:{number}: " if names else ""
        required = tuple(filter(None, phrases.split("\t")))
        yield Line(line, prefix, required, origin, translation, f"{name}:{number}: ")
    for path, rows in files:
        if path and next(iter(rows), None) is not None:
            raise UserError(f"{path}: has more lines than {name}")
