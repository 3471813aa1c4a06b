"""Several references per segment: each is scored separately, and the best one is used."""

import itertools
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from metrics_jax.api import References, check_texts

Text = TypeVar("Text")


def flatten(hypotheses: Sequence[str], references: References) -> tuple[list[str], np.ndarray]:
    """Put N hypotheses and their R references into one list; owner int64[R] is the segment of each reference.

    Raises errors as `api.check_texts`.
    """
    grouped = check_texts(hypotheses, references)
    owner = np.repeat(np.arange(len(grouped)), [len(group) for group in grouped])
    return [*hypotheses, *itertools.chain.from_iterable(grouped)], owner


def pair(texts: Sequence[Text], owner: np.ndarray) -> tuple[list[Text], list[Text]]:
    """Split N hypotheses followed by R references into the hypothesis of each reference, and the references."""
    hypotheses, references = texts[: owner[-1] + 1], texts[owner[-1] + 1 :]
    return [hypotheses[i] for i in owner.tolist()], list(references)


def starts(owner: np.ndarray) -> np.ndarray:
    """Index int64[N] of the first reference of each segment."""
    return np.flatnonzero(np.diff(owner, prepend=-1))


def best(scores: np.ndarray, owner: np.ndarray, *ties: np.ndarray) -> np.ndarray:
    """Index int64[N] of the reference of each segment with the highest of the scores float[R].

    Among equal scores, the reference with the smallest value in the first of `ties` (float[R] each) is used, then in
    the second, and so on; then the first reference.
    """
    return np.lexsort((*reversed(ties), -scores, owner))[starts(owner)]
