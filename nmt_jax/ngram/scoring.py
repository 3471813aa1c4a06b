"""Scoring of many lines with an n-gram model, in chunks."""

import math
from collections.abc import Iterable, Iterator

import numpy as np

from nmt_jax.data.lines import chunks
from nmt_jax.errors import UserError
from nmt_jax.ngram.model import NgramModel

CHUNK = 1 << 13  # lines that are scored together
LN10 = math.log(10)
ROUNDING = 1e-3  # of log-probabilities and backoffs in a file


def score_lines(model: NgramModel, lines: Iterable[str]) -> Iterator[tuple[str, tuple[np.ndarray, np.ndarray]]]:
    """Yield each line with log-probabilities, base 10, of its words and its end, and which of them are unknown.

    Raises UserError if a probability is above 1, or not a number.
    """
    for group in chunks(lines, CHUNK):
        scores = model.score(group)
        if not (scores.log_probabilities <= ROUNDING).all():
            raise UserError("the n-gram model gives probabilities above 1; it is damaged: obtain or estimate it again")
        scores = scores._replace(log_probabilities=np.minimum(scores.log_probabilities, 0))
        yield from zip(group, scores.by_line(), strict=True)
