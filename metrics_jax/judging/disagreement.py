"""Pairs of texts that two metrics order differently: those that people should compare to tell the metrics apart."""

import collections
import dataclasses
import itertools
from collections.abc import Hashable, Sequence

import numpy as np

from metrics_jax.judging.coefficient import checked
from metrics_jax.judging.judgements import Judgements


@dataclasses.dataclass(frozen=True)
class Disagreements:
    """P pairs of texts of one item: the first metric prefers text `first`, the second metric text `second`.

    first, second: int[P], numbers of texts. strengths: float[P], how much the less decided metric prefers its text, in
    standard deviations of its scores. num_pairs: number of all pairs of different texts of one item.
    """

    first: np.ndarray
    second: np.ndarray
    strengths: np.ndarray
    num_pairs: int

    @property
    def rate(self) -> float:
        """The fraction of pairs that the metrics order differently."""
        return len(self.first) / self.num_pairs if self.num_pairs else 0.0


def find_disagreements(
    scores: np.ndarray, texts: Sequence[str], systems: Sequence[Hashable], items: Sequence[Hashable]
) -> Disagreements:
    """The pairs that two metrics with scores float[2, N] of N texts order differently; a tie is no order.

    Two systems with the same text are not a pair. Raises ValueError as `Judgements`, for a score that is not finite,
    and if a metric gives all texts one score.
    """
    judged = Judgements(np.zeros(len(texts)), systems, items)
    scores = checked(scores, judged)
    spread = scores.std(axis=1)
    if not (spread > 0).all():
        raise ValueError("a metric gives all texts the same score, so it prefers none")
    order, labels = judged.table(np.arange(len(texts))), np.unique(np.asarray(texts), return_inverse=True)[1]
    found, num_pairs = [], 0
    for one, other in itertools.combinations(order, 2):
        both = ~np.isnan(one + other)
        pairs = np.stack([one[both], other[both]]).astype(int)
        pairs = pairs[:, labels[pairs[0]] != labels[pairs[1]]]
        num_pairs += pairs.shape[1]
        differences = (scores[:, pairs[0]] - scores[:, pairs[1]]) / spread[:, None]
        strengths = np.abs(differences).min(axis=0)
        apart = differences[0] * differences[1] < 0
        pairs = np.where(differences[0] > 0, pairs, pairs[::-1])
        found.append(np.concatenate([pairs, strengths[None]])[:, apart])
    first, second, strengths = np.concatenate(found, axis=1) if found else np.empty((3, 0))
    return Disagreements(first.astype(int), second.astype(int), strengths, num_pairs)


def choose_pairs(
    pairs: Disagreements, systems: Sequence[Hashable], items: Sequence[Hashable], count: int
) -> np.ndarray:
    """Numbers of up to `count` of the P pairs, int[K]: the strongest of many items and systems.

    Every item and every two systems are a stratum. Pairs are taken in the order of their strength if none is taken yet
    from their strata; when none is left, a second one may be taken from each stratum, and so on.
    """
    strata = [
        (items[one], frozenset((systems[one], systems[other])))
        for one, other in zip(pairs.first, pairs.second, strict=True)
    ]
    used: collections.Counter[Hashable] = collections.Counter()
    chosen: list[int] = []
    waiting = np.argsort(-pairs.strengths, kind="stable").tolist()
    limit = 0  # how often a stratum may be used
    while waiting and len(chosen) < count:
        limit += 1
        left = []
        for number in waiting:
            if len(chosen) < count and all(used[stratum] < limit for stratum in strata[number]):
                chosen.append(number)
                used.update(strata[number])
            else:
                left.append(number)
        waiting = left
    return np.array(chosen, int)
