"""Several references a segment: each is compared by itself, and the best one counts."""

import itertools
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from metrics_jax.api import References, check_texts

Text = TypeVar("Text")


def flatten(hypotheses: Sequence[str], references: References) -> tuple[list[str], np.ndarray]:
    """-> N hypotheses and then R references as one list, and owner int64[R], the segment of each reference.

    Errors as `api.check_texts`.
    """
    grouped = check_texts(hypotheses, references)
    owner = np.repeat(np.arange(len(grouped)), [len(group) for group in grouped])
    return [*hypotheses, *itertools.chain.from_iterable(grouped)], owner


def pair(texts: Sequence[Text], owner: np.ndarray) -> tuple[list[Text], list[Text]]:
    """N hypotheses, then R references -> for each reference its hypothesis, the references."""
    hypotheses, references = texts[: owner[-1] + 1], texts[owner[-1] + 1 :]
    return [hypotheses[i] for i in owner.tolist()], list(references)


def starts(owner: np.ndarray) -> np.ndarray:
    """-> int64[N]: each segment's first reference."""
    return np.flatnonzero(np.diff(owner, prepend=-1))


def best(scores: np.ndarray, owner: np.ndarray, *ties: np.ndarray) -> np.ndarray:
    """Scores float[R] -> int64[N]: which reference of each segment scores highest.

    Of equals that with the least in the first of `ties` (float[R] each), then in the second ..., then the first of all.
    """
    return np.lexsort((*reversed(ties), -scores, owner))[starts(owner)]
