"""Files of translation candidates: n-best lists or samples, one list for each line of the source."""

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from nmt_jax.errors import UserError

Own = TypeVar("Own")  # the candidates of a line, with or without others


class Candidates(NamedTuple):
    """The candidates of one line: texts, scores (NaN if unknown), and features by name, if the file has them."""

    texts: list[str]
    scores: list[float]
    features: Sequence[Mapping[str, float]] = ()


def read_candidates(lines: Iterable[str], name: str) -> Iterator[Candidates]:
    """Yield the candidates of each line of the source.

    lines: tab-separated LINE, SCORE, TEXT, or JSON objects with "line" and "hypotheses", as written by
    `nmt-jax translate`. Raises UserError `name:LINE` for a row in neither format, and if the rows do not belong to
    lines 1, 2, 3 … in this order, since the output would not match the source.
    """
    groups = itertools.groupby(_rows(lines, name), key=lambda row: row[1])
    for expected, (line, group) in enumerate(groups, start=1):
        numbers, _, found = zip(*group, strict=True)
        origin = f"{name}:{numbers[0]}"
        if line != expected:
            raise UserError(f"{origin}: candidates of line {line}, expected line {expected}: sort them and omit none")
        texts = [text for one in found for text in one.texts]
        if not texts:
            raise UserError(f"{origin}: no candidates for line {line}")
        yield Candidates(
            texts, [score for one in found for score in one.scores], [row for one in found for row in one.features]
        )


def _rows(lines: Iterable[str], name: str) -> Iterator[tuple[int, int, Candidates]]:
    """Parse the input; yields the number of each row, the line of the source that it belongs to, and its candidates."""
    for number, text in enumerate(lines, start=1):
        try:
            if text.startswith("{"):
                entry = json.loads(text)
                found = entry["hypotheses"]
                texts, scores = [one["text"] for one in found], [float(one.get("score", np.nan)) for one in found]
                if not all(isinstance(one, str) for one in texts):
                    raise ValueError
                features = [{name: float(value) for name, value in one.get("features", {}).items()} for one in found]
                row = number, int(entry["line"]), Candidates(texts, scores, features)
            else:
                line, score, single = text.split("\t", 2)
                row = number, int(line), Candidates([single], [float(score)], [{}])
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            raise UserError(
                f'{name}:{number}: neither tab-separated LINE, SCORE, TEXT nor a JSON object with "line" and '
                '"hypotheses": use the output of nmt-jax translate --nbest=N'
            ) from None
        yield row


def beside(candidates: Iterable[Own], name: str, lines: Iterable[str], path: str) -> Iterator[tuple[str, Own]]:
    """Yield each line of the file `path` with its candidates, those of the file `name`.

    Raises UserError `path:LINE` if there are more candidates than lines, or fewer.
    """
    for number, (line, own) in enumerate(itertools.zip_longest(lines, candidates), start=1):
        if line is None:
            raise UserError(f"{path}:{number}: no such line, but {name} has candidates of line {number}")
        if own is None:
            raise UserError(f"{path}:{number}: {name} has no candidates of this line; both need the same lines")
        yield line, own
