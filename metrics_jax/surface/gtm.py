"""GTM, the General Text Matcher (Turian, Shen and Melamed, 2003): words are matched in runs, the longest first."""

import dataclasses
import heapq
from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from metrics_jax.api import AdditiveMetric, References, best, check_range, flatten, pair
from metrics_jax.surface.error_rates import Words
from metrics_jax.surface.tokenizers import check_tokenizer, tokenize

Run = tuple[int, int, int]


@dataclasses.dataclass(frozen=True)
class GTM(AdditiveMetric):
    """F-score of the maximum match size (MMS) of two texts, 0 to 1 (Melamed, Green and Turian, 2003).

    MMS = (sum over the runs of a matching of length^exponent)^(1 / exponent), precision = MMS / words of the
    hypothesis, recall = MMS / words of the reference. exponent: 1 counts words in any order, more rewards long runs.
    Finding the best matching is intractable then; as in the papers, the longest run that is left is taken first. Sizes
    and lengths are summed over segments. Of several references, the first one with the best F-score is used. An empty
    text scores 0.
    """

    exponent: float = 1.0
    tokenize: str = "none"
    lowercase: bool = False

    name: ClassVar[str] = "gtm"

    def __post_init__(self) -> None:
        check_tokenizer(self.tokenize)
        check_range("exponent", self.exponent, 1, 100)

    def statistics(self, hypotheses: Sequence[str], references: References) -> np.ndarray:
        """Statistics float[N, 3]: maximum match size, words of the hypothesis, words of the reference."""
        texts, owner = flatten(hypotheses, references)
        pairs = zip(*pair(tokenize(texts, self.tokenize, self.lowercase), owner), strict=True)
        rows = np.array([(self.match_size(mine, others), len(mine), len(others)) for mine, others in pairs], np.float64)
        return rows[best(self.score(rows), owner)]

    def match_size(self, hypothesis: Words, reference: Words) -> float:
        """The maximum match size of two texts; symmetric but for ties between runs of equal length."""
        if self.exponent == 1:
            return (Counter(hypothesis) & Counter(reference)).total()
        lengths = [length for _, _, length in runs(hypothesis, reference)]
        if not lengths:
            return 0.0
        # Relative to the longest run, which comes first, so that powers of long runs are finite.
        return lengths[0] * sum((length / lengths[0]) ** self.exponent for length in lengths) ** (1 / self.exponent)

    def score(self, statistics: np.ndarray) -> np.ndarray:
        size, hypothesis, reference = np.moveaxis(statistics, -1, 0)
        words = hypothesis + reference  # 2 P R / (P + R) = 2 MMS / words
        return 2 * size / np.where(words > 0, words, 1.0)

    def parts(self, statistics: np.ndarray) -> dict[str, float | np.ndarray]:
        """Precision, recall and f1 of the sums, 0 to 1, and match_size, sys_len and ref_len."""
        size, hypothesis, reference = (float(value) for value in statistics)
        return {
            "precision": size / max(hypothesis, 1.0),
            "recall": size / max(reference, 1.0),
            "f1": float(self.score(statistics)),
            "match_size": size,
            "sys_len": hypothesis,
            "ref_len": reference,
        }


def runs(hypothesis: Words, reference: Words) -> list[Run]:
    """The runs of equal words of the greedy matching, as positions in both texts and length, the longest first.

    Every word is matched at most once. Among runs of equal length, the leftmost of the hypothesis is taken, then the
    leftmost of the reference.
    """
    queue = [(-length, i, j) for i, j, length in _all_runs(hypothesis, reference)]
    heapq.heapify(queue)
    used_hypothesis, used_reference, found = 0, 0, []
    while queue:
        minus, i, j = heapq.heappop(queue)
        block = (1 << -minus) - 1
        used = (used_hypothesis >> i | used_reference >> j) & block
        if not used:
            used_hypothesis, used_reference = used_hypothesis | block << i, used_reference | block << j
            found.append((i, j, -minus))
        elif used != block:
            for start, length in _gaps(used, -minus):
                heapq.heappush(queue, (-length, i + start, j + start))
    return found


def _all_runs(hypothesis: Words, reference: Words) -> list[Run]:
    """All runs of equal words that cannot be extended, whether or not they share words."""
    places: dict[object, list[int]] = {}
    for j, word in enumerate(reference):
        places.setdefault(word, []).append(j)
    found, behind = [], dict[int, int]()  # behind: place in the reference -> length of the run that begins at i + 1
    for i in range(len(hypothesis) - 1, -2, -1):
        here = {j: behind.get(j + 1, 0) + 1 for j in places.get(hypothesis[i], ())} if i >= 0 else {}
        found += [(i + 1, j, length) for j, length in behind.items() if j - 1 not in here]
        behind = here
    return found


def _gaps(used: int, length: int) -> list[tuple[int, int]]:
    """Start and length of each run of zeros among the first bits of `used`."""
    bits = f"{used:0{length}b}"[::-1]
    gaps, start = [], 0
    for part in bits.split("1"):
        if part:
            gaps.append((start, len(part)))
        start += len(part) + 1
    return gaps
