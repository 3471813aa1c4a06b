"""The interface of metrics: options, additive statistics, a score, and a signature that names every option."""

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from metrics_jax.signature import sign

References = Sequence[str | Sequence[str]]
Text = TypeVar("Text")


@dataclasses.dataclass(frozen=True)
class Result:
    """The score of a corpus on the reference program's scale, and its ingredients.

    segments: float[N], the score of each segment. signature: every option that changes the score. parts: named
    ingredients, such as precisions or the brevity penalty.
    """

    score: float
    segments: np.ndarray
    signature: str
    parts: Mapping[str, float | np.ndarray]


class AdditiveMetric:
    """Base class of metrics: a subclass is a frozen dataclass that defines `name`, `statistics`, `score` and `parts`.

    The fields are the metric's options, named as in the reference program. `higher_is_better` is False for error rates.
    A metric whose corpus score is the mean over segments has statistics (value, ..., 1).
    """

    name: ClassVar[str]  # short name, such as "bleu"
    higher_is_better: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = ("hypotheses", "references")  # what `statistics` takes
    segments_per_call: ClassVar[int] = 200  # how many segments callers should pass to `statistics` per call

    def statistics(self, hypotheses: Sequence[str], references: References) -> np.ndarray:
        """Statistics float[N, K] of N segments, additive over segments.

        Raises ValueError for unequal lengths, no segments, or a segment without a reference, and TypeError for anything
        that is not text.
        """
        raise NotImplementedError

    def score(self, statistics: np.ndarray) -> np.ndarray:
        """Summed statistics float[..., K] -> scores float[...]."""
        raise NotImplementedError

    def parts(self, statistics: np.ndarray) -> dict[str, float | np.ndarray]:
        """Named ingredients of the score of summed statistics float[K]."""
        raise NotImplementedError

    @property
    def signature(self) -> str:
        """Every option, as `key:value` joined by `|`; `metrics_jax.load` reads it."""
        return sign(self)

    def fitted(self, references: References) -> Self:
        """Return this metric with everything it learns from references fixed to these; most metrics learn nothing.

        Those that do raise ValueError if there are no references.
        """
        return self

    def __call__(
        self, hypotheses: Sequence[str], references: References, sources: Sequence[str] | None = None
    ) -> Result:
        """Score a corpus. `references[i]` is the reference or references of `hypotheses[i]`, `sources[i]` its source.

        Raises ValueError if the metric needs sources and gets none, or gets sources and does not need them.
        """
        grouped = check_texts(hypotheses, references)
        statistics = self.statistics(hypotheses, grouped, *self.given_sources(sources))
        return self.result(statistics, [len(group) for group in grouped])

    def given_sources(self, sources: Sequence[str] | None) -> tuple[Sequence[str]] | tuple[()]:
        """Return the sources as the last arguments of `statistics`; nothing for a metric that does not need them.

        Raises ValueError as a call of the metric does.
        """
        if ("sources" in self.needs) != (sources is not None):
            problem = "needs sources=..., the source of each text" if sources is None else "does not read sources"
            raise ValueError(f"{self.name} {problem}")
        return () if sources is None else (sources,)

    def result(self, statistics: np.ndarray, num_references: Sequence[int]) -> Result:
        """The result of a corpus, from its statistics float[N, K] and the number of references of each segment.

        The signature also holds the number of references per segment: `nrefs`, or `nrefs:var` if it varies; 0 for a
        metric that reads none.
        """
        total = statistics.sum(axis=0)
        counts = set(num_references) if "references" in self.needs else {0}
        signature = sign(self, nrefs=counts.pop() if len(counts) == 1 else "var")
        return Result(float(self.score(total)), self.score(statistics), signature, self.parts(total))

    def pairwise(self, hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
        """Scores float[H, R] of every hypothesis against every single reference."""
        check_sequences(hypotheses, references)
        if not len(references):
            return np.zeros((len(hypotheses), 0))
        rows = [self.score(self.statistics([text] * len(references), references)) for text in hypotheses]
        return np.array(rows).reshape(len(hypotheses), len(references))

    def index_texts(self, texts: Sequence[str]) -> "IndexedTexts":
        """Prepare N texts to be compared with one another."""
        return IndexedTexts(self, texts)


class SourceMetric(AdditiveMetric):
    """Base class of metrics that also need the source of each text."""

    needs: ClassVar[tuple[str, ...]] = ("hypotheses", "references", "sources")

    def statistics(
        self, hypotheses: Sequence[str], references: References, sources: Sequence[str] | None = None
    ) -> np.ndarray:
        """Statistics float[N, K] of N segments, additive over segments.

        Raises as that of other metrics, and ValueError without sources.
        """
        raise NotImplementedError

    def pairwise(
        self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None = None
    ) -> np.ndarray:
        """Scores float[H, R] of every hypothesis, with its source, against every single reference."""
        check_sequences(hypotheses, references)
        pairs = zip(hypotheses, check_sources(self.name, sources, hypotheses), strict=True)
        count = len(references)
        if not count:
            return np.zeros((len(hypotheses), 0))
        rows = [self.score(self.statistics([text] * count, references, [source] * count)) for text, source in pairs]
        return np.array(rows).reshape(len(hypotheses), count)

    def index_texts(self, texts: Sequence[str], sources: Sequence[str] | None = None) -> "IndexedTexts":
        """Prepare N texts, each with its source, to be compared with one another."""
        return IndexedSourceTexts(self, texts, check_sources(self.name, sources, texts))


class ReferenceFreeMetric(SourceMetric):
    """Base class of metrics that compare texts with their sources alone; they ignore references."""

    needs: ClassVar[tuple[str, ...]] = ("hypotheses", "sources")

    def statistics(
        self, hypotheses: Sequence[str], references: References | None = None, sources: Sequence[str] | None = None
    ) -> np.ndarray:
        """Statistics float[N, K] of N segments, additive over segments. Raises as that of `SourceMetric`."""
        raise NotImplementedError

    def pairwise(
        self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None = None
    ) -> np.ndarray:
        """Scores float[H, R]: the score of each hypothesis, the same for all references."""
        check_sequences(hypotheses, references)
        if not hypotheses:
            return np.zeros((0, len(references)))
        scores = self.score(self.statistics(hypotheses, None, check_sources(self.name, sources, hypotheses)))
        return np.repeat(scores[:, None], len(references), axis=1)

    def __call__(
        self,
        hypotheses: Sequence[str],
        references: References | None = None,
        sources: Sequence[str] | None = None,
    ) -> Result:
        """Score a corpus; `sources[i]` is the source of `hypotheses[i]`. Raises as `statistics` does."""
        return self.result(self.statistics(hypotheses, None, sources), [0] * len(hypotheses))


@dataclasses.dataclass(frozen=True, eq=False)
class IndexedTexts:
    """N texts that a metric compares with one another, addressed by index.

    Metrics for which reading a text is expensive override this class and read each text once. `aggregated` is available
    for metrics that define it.
    """

    metric: Any
    texts: Sequence[str]

    def fitted(self, references: np.ndarray) -> Self:
        """Fix everything the metric learns from references to the texts int[R]; no text is read again."""
        metric = self.metric.fitted([self.texts[k] for k in references])
        return self if metric is self.metric else dataclasses.replace(self, metric=metric)

    def pairwise(self, hypotheses: np.ndarray, references: np.ndarray) -> np.ndarray:
        """Scores float[H, R] of texts int[H] against texts int[R]."""
        return self.metric.pairwise([self.texts[k] for k in hypotheses], [self.texts[k] for k in references])

    def aggregated(self, hypotheses: np.ndarray, references: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Scores float[H] of texts int[H] against the references int[R] in aggregate, with weights float[R]."""
        sides = ([self.texts[k] for k in side] for side in (hypotheses, references))
        return self.metric.aggregated(*sides, weights)


@dataclasses.dataclass(frozen=True, eq=False)
class IndexedSourceTexts(IndexedTexts):
    """N texts with the source of each."""

    sources: Sequence[str]

    def pairwise(self, hypotheses: np.ndarray, references: np.ndarray) -> np.ndarray:
        left, right = ([self.texts[k] for k in side] for side in (hypotheses, references))
        return self.metric.pairwise(left, right, [self.sources[k] for k in hypotheses])


MOST_ORDER = 100  # of n-grams: their counts take memory in proportion
BETAS = (0.001, 1000)  # weights of recall in F-scores


def check_range(option: str, value: float, least: float, most: float) -> None:
    """Raise ValueError unless `value` lies between `least` and `most`, which NaN never does."""
    if not least <= value <= most:
        raise ValueError(f"{option}={value}: must be at least {least:g} and at most {most:g}")


def check_sequences(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    """Raise TypeError unless hypotheses and references are sequences of strings; a single string is not one."""
    _check_not_strings(hypotheses, references)
    for name, texts in (("hypotheses", hypotheses), ("references", references)):
        for number, text in enumerate(texts):
            if not isinstance(text, str):
                raise TypeError(f"segment {number} of the {name} must be a string, not {type(text).__name__}")


def _check_not_strings(hypotheses: Sequence[str], references: References) -> None:
    for name, texts in (("hypotheses", hypotheses), ("references", references)):
        if isinstance(texts, str):
            raise TypeError(f"{name} must be a sequence of strings, one per segment, not a single string")


def check_lengths(hypotheses: Sized, references: Sized) -> None:
    """Raise ValueError unless there are as many references as hypotheses."""
    if len(hypotheses) != len(references):
        counts = f"{len(hypotheses)} hypotheses but {len(references)} references"
        raise ValueError(f"{counts}: there must be one for each hypothesis, in the same order")


def check_sources(metric: str, sources: Sequence[str] | None, hypotheses: Sequence[str]) -> Sequence[str]:
    """Return the sources of N hypotheses. Raises ValueError if there are none or not N, TypeError if one is no text."""
    if sources is None:
        raise ValueError(f"{metric} needs sources=..., the source of each text")
    if isinstance(sources, str) or not all(isinstance(text, str) for text in sources):
        raise TypeError("sources must be a sequence of strings, one per segment")
    if len(sources) != len(hypotheses):
        counts = f"{len(hypotheses)} hypotheses but {len(sources)} sources"
        raise ValueError(f"{counts}: there must be one for each hypothesis, in the same order")
    return sources


def check_texts(hypotheses: Sequence[str], references: References) -> list[list[str]]:
    """Return the references of each of N >= 1 hypotheses as a list of lists.

    Raises ValueError for unequal lengths, no segments, or a segment without a reference; TypeError for a string instead
    of a sequence of strings, and for anything that is not text.
    """
    _check_not_strings(hypotheses, references)
    check_lengths(hypotheses, references)
    if not len(hypotheses):
        raise ValueError("no segments: an empty corpus has no score")
    grouped = [
        list(group) if isinstance(group, Iterable) and not isinstance(group, str) else [group] for group in references
    ]
    if all(grouped) and {*map(type, hypotheses), *map(type, itertools.chain.from_iterable(grouped))} == {str}:
        return grouped
    for number, (hypothesis, group) in enumerate(zip(hypotheses, grouped, strict=True)):  # find the wrong segment
        if not group:
            raise ValueError(f"segment {number} has no reference")
        if not all(isinstance(text, str) for text in (hypothesis, *group)):
            raise TypeError(f"segment {number}: hypothesis and references must be strings")
    return grouped


def flatten(hypotheses: Sequence[str], references: References) -> tuple[list[str], np.ndarray]:
    """Put N hypotheses and their R references into one list; owner int64[R] is the segment of each reference."""
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
