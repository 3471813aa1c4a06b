"""EED, the extended edit distance (Stanchev, Wang and Ney, 2019): edits of characters, and jumps at blanks."""

import dataclasses
import itertools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from metrics_jax.api import AdditiveMetric, References, best, check_range, flatten, pair

LANGUAGES = ("en", "ja")
_BLOCK = 2**16  # cells of the tables of the pairs that are compared at a time; a row of each fits into the cache
# The rules of the authors' program for English, in this order. The last point of the title rule stands for any
# character there, too: `Mr Smith` becomes `Mr.mith`.
_RULES = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"([.!?,])", r" \1"),
        (r"\s+", " "),
        (r"(\d) ([.,]) (\d)", r"\1\2\3"),
        (r"(Dr|Jr|Prof|Rev|Gen|Mr|Mt|Mrs|Ms) .", r"\1."),
        (r"e \. g \.", "e.g."),
        (r"i \. e \.", "i.e."),
        (r"U \. S \.", "U.S."),
    )
)


@dataclasses.dataclass(frozen=True)
class EED(AdditiveMetric):
    """Cost of edits and jumps, and of characters covered more or less than once, per reference character; 0 to 1.

    (distance + c) / (characters of the reference + c), at most 1, where c = rho * the sum over the positions i of the
    hypothesis of |v(i) - 1|, and v(i) is the number of reference characters at which position i is the cheapest
    (Stanchev et al., 2019, as in the authors' program). A substitution costs 1, an unmatched character of the reference
    `insertion`, a skipped character of the hypothesis `deletion`, a jump after a blank `alpha`. language: "en"
    separates punctuation and adds a blank at both ends; "ja" applies NFKC. Equal texts do not quite score 0, since the
    position before the hypothesis is not covered. The best of several references is used; a corpus scores the mean over
    segments.
    """

    language: str = "en"
    alpha: float = 2.0
    rho: float = 0.3
    deletion: float = 0.2
    insertion: float = 1.0

    name: ClassVar[str] = "eed"
    higher_is_better: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.language not in LANGUAGES:
            raise ValueError(f"language={self.language!r}: choose one of {', '.join(map(repr, LANGUAGES))}")
        for option in ("alpha", "rho", "deletion", "insertion"):
            check_range(option, getattr(self, option), 0, 1000)

    def statistics(self, hypotheses: Sequence[str], references: References) -> np.ndarray:
        """Statistics float[N, 5]: rate, distance, cost of coverage, characters of the reference, 1."""
        texts, owner = flatten(hypotheses, references)
        distances, visits, lengths = self._align(*pair([_points(self.characters(text)) for text in texts], owner))
        coverage = self.rho * visits
        cost, length = distances + coverage, lengths + coverage
        rates = np.minimum(np.where(length > 0, cost, cost > 0) / np.where(length > 0, length, 1), 1.0)
        rows = np.stack([rates, distances, coverage, lengths, np.ones_like(rates)], axis=-1)
        return rows[best(-rates, owner, distances, lengths)]

    def score(self, statistics: np.ndarray) -> np.ndarray:
        return statistics[..., 0] / statistics[..., 4]

    def parts(self, statistics: np.ndarray) -> dict[str, float | np.ndarray]:
        """Sums over the segments: distance, coverage (its cost), and ref_length in characters."""
        names = ("distance", "coverage", "ref_length")
        return {name: float(value) for name, value in zip(names, statistics[1:4], strict=True)}

    def characters(self, text: str) -> str:
        """The text as it is compared."""
        text = text.rstrip()
        if self.language == "ja":
            return unicodedata.normalize("NFKC", text)
        for pattern, replacement in _RULES:
            text = pattern.sub(replacement, text)
        return f" {text} "

    def _align(
        self, hypotheses: list[np.ndarray], references: list[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Distances, sums of |v(i) - 1| and reference lengths, float[P] each, of P pairs of texts."""
        sizes = np.array([[len(text) for text in side] for side in (hypotheses, references)])
        distances, visits = np.zeros((2, len(hypotheses)))
        for block in _blocks(*sizes):
            distances[block], visits[block] = self._align_block(
                [hypotheses[k] for k in block], [references[k] for k in block]
            )
        return distances, visits, sizes[1].astype(np.float64)

    def _align_block(self, hypotheses: list[np.ndarray], references: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Distances and sums of |v(i) - 1| of pairs in descending order of the length of the reference.

        Costs are added in the order of the authors' program, since rounding decides which position is the cheapest.
        """
        hypothesis, reference = _padded(hypotheses), _padded(references)  # [position, pair], as all tables here
        ends = np.array([len(text) for text in hypotheses])
        sizes = np.array([len(text) for text in references])
        outside = np.arange(len(hypothesis) + 1)[:, None] > ends
        walls = np.where(outside, np.inf, 0)
        rows = np.ones(outside.shape)
        rows[0] = 0
        visits = np.zeros(outside.shape)
        for position, characters in enumerate(reference):
            active = int((sizes > position).sum())  # the first pairs; the others have no character here
            above, characters, pairs = rows[:, :active], characters[:active], np.arange(active)
            row = above + self.insertion
            row[0] = above[0] + 1
            np.minimum(row[1:], above[:-1] + (hypothesis[:, :active] != characters), out=row[1:])
            skipped = np.empty(active)
            for before, cell in itertools.pairwise(row):  # each cell depends on the one before
                np.minimum(cell, np.add(before, self.deletion, out=skipped), out=cell)
            np.maximum(row, walls[:, :active], out=row)
            cheapest = row.argmin(axis=0)
            visits[cheapest, pairs] += 1
            jump = np.where(characters == ord(" "), row[cheapest, pairs] + self.alpha, np.inf)
            np.minimum(row, jump, out=above)
        covered = np.where(outside, 0, np.abs(visits - 1)).sum(axis=0)
        return rows[ends, np.arange(len(ends))], covered


def _blocks(widths: np.ndarray, heights: np.ndarray) -> Iterator[np.ndarray]:
    """Groups of pairs whose tables have about `_BLOCK` cells in a row, the highest tables first."""
    order = np.argsort(widths, kind="stable")
    numbers = np.cumsum(widths[order] + 1) // _BLOCK
    for block in np.split(order, np.flatnonzero(np.diff(numbers)) + 1):
        yield block[np.argsort(-heights[block], kind="stable")]


def _points(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.int32)


def _padded(texts: list[np.ndarray]) -> np.ndarray:
    """The texts as columns, with -1 after their ends."""
    table = np.full((max(map(len, texts)), len(texts)), -1, np.int32)
    for column, text in zip(table.T, texts, strict=True):
        column[: len(text)] = text
    return table
