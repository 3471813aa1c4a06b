"""From the posteriors of both directions to links."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from nmt_jax.alignment.links import Alignment, Link
from nmt_jax.alignment.symmetrization import METHODS

Item = TypeVar("Item")
EQUAL = 1e-5  # a larger difference than that of rounding errors, which depend on the number of devices


class Posteriors(NamedTuple):
    """Probabilities that source word i generated target word j, links float32[B, T, S], and that NULL did, null[B, T].

    Padding has probabilities of 0.
    """

    links: np.ndarray
    null: np.ndarray


def alignments(forward: Posteriors, reverse: Posteriors, method: str) -> list[Alignment]:
    """Returns the alignment of each sentence pair; the posterior of a link is the mean of both directions.

    In each direction a word is linked to the word that most probably generated it, unless NULL is more probable.
    method: combines both directions, one of `symmetrization.METHODS`. reverse: source and target are exchanged.
    """
    combine = METHODS[method]
    target_words = ({(i, j) for j, i in some} for some in most_probable(forward))
    both = zip(target_words, map(set, most_probable(reverse)), strict=True)
    links = [sorted(combine(one, other)) for one, other in both]
    numbers = [len(some) for some in links]
    row = np.repeat(np.arange(len(links)), numbers)
    i, j = np.array([*itertools.chain.from_iterable(links)], int).reshape(-1, 2).T
    mean = (forward.links[row, j, i] + reverse.links[row, i, j]) / 2
    return [Alignment(some, [*p]) for some, p in zip(links, _parts(mean.tolist(), numbers), strict=True)]


def most_probable(posteriors: Posteriors) -> Iterator[Sequence[Link]]:
    """Yields for each sentence pair (j, i) of each target word j whose most probable source word is i.

    Of equal ones it is the first. Target words for which NULL is more probable are left out.
    """
    largest = posteriors.links.max(-1)
    best = (posteriors.links >= largest[..., None] - EQUAL).argmax(-1)
    row, target = np.nonzero((largest > 0) & (largest >= posteriors.null - EQUAL))
    pairs = [*zip(target.tolist(), best[row, target].tolist(), strict=True)]
    yield from _parts(pairs, np.bincount(row, minlength=len(best)))


def _parts(items: Sequence[Item], numbers: Iterable[int]) -> Iterator[Sequence[Item]]:
    """Yields consecutive parts with these numbers of items."""
    bounds = itertools.accumulate(numbers, initial=0)
    return (items[start:stop] for start, stop in itertools.pairwise(bounds))
