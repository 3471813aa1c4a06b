"""How sure a score is: bootstrap intervals, paired tests against a baseline, averages over documents.

    systems = {"baseline": bleu.statistics(hypotheses, references), "ours": bleu.statistics(others, references)}
    for row in significance.paired_bootstrap(bleu, systems):
        print(row.system, row.interval.score, row.interval.half_width, row.p_value, row.significant)

Nothing here knows a metric but by its additive statistics: a resample is a row of counts, all resamples of all systems
are one matrix product, and the metric scores the sums at once. Draws and formulas are those of sacrebleu, so equal
seeds give equal numbers, but for two things. A sampled difference equal to the observed one speaks for chance (Riezler
& Maxwell 2005, figure 1), so that two copies of a system have p = 1; sacrebleu counts larger ones only (`strict`),
which calls copies significant, and makes p too small where scores take few values, as TER's do. And all intervals come
from the same resamples, where sacrebleu draws others for all but the baseline once it has randomised.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np

Score = Callable[[np.ndarray], np.ndarray]

SEED = 12345  # sacrebleu's
_CHUNK = 2**16  # counts held at once: half a megabyte, which stays in a processor's cache
_KEPT = 2**21  # counts remembered between calls: 16 megabytes
_TIE = 1e-9  # differences this close, relative to the scores, are equal: sums of floats depend on their order


class Scorer(Protocol):
    """What a metric must offer here: every `api.Metric` does."""

    @property
    def higher_is_better(self) -> bool:
        """False for error rates."""

    def score(self, statistics: np.ndarray) -> np.ndarray:
        """Summed statistics float[..., K] -> float[...]."""


@dataclasses.dataclass(frozen=True)
class Interval:
    """A score and where it may lie, all on the metric's scale.

    score: of the sample itself. mean: of the resamples. lower, upper: percentile bounds (Efron 1979), the resamples'
    scores n alpha/2 from either end. half_width: (upper - lower) / 2, printed as mean ± half_width by sacrebleu.
    """

    score: float
    mean: float
    half_width: float
    lower: float
    upper: float


@dataclasses.dataclass(frozen=True)
class Comparison:
    """One system beside the baseline; the baseline's own row has no `wins` and no `p_value`.

    difference: score minus the baseline's. wins: share of bootstrap resamples in which the system is better (Koehn
    2004). p_value: chance, in (0, 1], of a difference this large in either direction between equally good
    systems. significant: p_value < alpha.
    """

    system: str
    interval: Interval
    difference: float
    wins: float | None
    p_value: float | None
    significant: bool


@dataclasses.dataclass(frozen=True)
class DocumentScores:
    """Documents in the order of their first segments: `scores` float[D], and `score`, their mean."""

    score: float
    documents: tuple[Hashable, ...]
    scores: np.ndarray


def bootstrap(
    metric: Scorer,
    statistics: np.ndarray,
    *,
    resamples: int = 1000,
    seed: int = SEED,
    alpha: float = 0.05,
    documents: Sequence[Hashable] | None = None,
) -> Interval:
    """Statistics float[N, K] -> the score and its 1 - alpha interval over `resamples` draws of N segments.

    With `documents` (a label a segment) the score is the mean over documents, and documents are drawn. ValueError for
    statistics that are not finite or not a table, and for impossible numbers.
    """
    check_sampling(alpha, resamples=resamples)
    score, table = _units(metric, {"the system": statistics}, documents)
    observed = _observed(score, {"the system": statistics}, table)
    return percentile_interval(float(observed[0]), score(_resample(table, resamples, seed))[0], alpha)


def paired_bootstrap(
    metric: Scorer,
    systems: Mapping[str, np.ndarray],
    baseline: str | None = None,
    *,
    resamples: int = 1000,
    seed: int = SEED,
    alpha: float = 0.05,
    strict: bool = False,
    documents: Sequence[Hashable] | None = None,
) -> list[Comparison]:
    """Statistics float[N, K] of each system -> a row each, tested on the same resamples (Koehn 2004).

    The p-value is that of Moses and sacrebleu: with d the absolute differences of the resamples, the share of those
    whose d - mean(d) reaches the observed one (exceeds it, if `strict`), the observed itself counted as one more. So
    defined it looks at one side only: equal systems are called different about 2 alpha of the time (11 % measured at
    5 %), where `paired_randomisation` keeps alpha. The baseline is the first system unless named; `documents` and
    errors as in `bootstrap`, and ValueError for systems of different sizes.
    """
    check_sampling(alpha, resamples=resamples)
    score, table = _units(metric, systems, documents)
    first = _baseline(systems, baseline)
    observed, resampled = _observed(score, systems, table), score(_resample(table, resamples, seed))
    distances = np.abs(resampled - resampled[first])
    distances -= distances.mean(axis=1, keepdims=True)
    p_values = _p_values(distances, observed, first, strict)
    return _rows(metric, list(systems), first, observed, resampled, p_values, alpha)


def paired_randomisation(
    metric: Scorer,
    systems: Mapping[str, np.ndarray],
    baseline: str | None = None,
    *,
    trials: int = 10_000,
    resamples: int = 1000,
    seed: int = SEED,
    alpha: float = 0.05,
    strict: bool = False,
    documents: Sequence[Hashable] | None = None,
) -> list[Comparison]:
    """Statistics float[N, K] of each system -> a row each, by approximate randomisation (Riezler & Maxwell 2005).

    Each trial swaps system and baseline in a random half of the segments; the p-value is the share of trials whose
    absolute difference reaches the observed one (exceeds it, if `strict`), the observed itself counted as one more.
    Intervals and `wins` are those of `paired_bootstrap`, as are the baseline, `documents` and errors.
    """
    check_sampling(alpha, trials=trials, resamples=resamples)
    score, table = _units(metric, systems, documents)
    first = _baseline(systems, baseline)
    distances = np.empty((len(table), trials))
    for span, kept, swapped in _shuffle(table, trials, seed):
        distances[:, span] = np.abs(score(kept[first] + swapped) - score(swapped[first] + kept))
    observed, resampled = _observed(score, systems, table), score(_resample(table, resamples, seed))
    p_values = _p_values(distances, observed, first, strict)
    return _rows(metric, list(systems), first, observed, resampled, p_values, alpha)


def document_scores(metric: Scorer, statistics: np.ndarray, documents: Sequence[Hashable]) -> DocumentScores:
    """Statistics float[N, K] and N document labels -> each document's score, from its summed statistics, and the mean.

    A document's segments need not be neighbours. ValueError if there is not one label a segment.
    """
    table = _tables({"the system": statistics})[0]
    if len(documents) != len(table):
        raise ValueError(f"{len(table)} segments but {len(documents)} document labels: one each, in the same order")
    numbers: dict[Hashable, int] = {}
    of_segment = [numbers.setdefault(label, len(numbers)) for label in documents]
    sums = np.zeros((len(numbers), table.shape[1]))
    np.add.at(sums, of_segment, table)
    scores = metric.score(sums)
    return DocumentScores(score=float(scores.mean()), documents=tuple(numbers), scores=scores)


def _tables(systems: Mapping[str, np.ndarray]) -> np.ndarray:
    """-> float[systems, N, K]; ValueError for what cannot be one."""
    if not systems:
        raise ValueError("no systems to compare")
    tables = {name: np.asarray(statistics, np.float64) for name, statistics in systems.items()}
    (one, shape), *_ = ((name, table.shape) for name, table in tables.items())
    for name, table in tables.items():
        if table.ndim != 2 or not table.size:
            raise ValueError(f"statistics of {name} must be float[segments, K], not of shape {table.shape}")
        if table.shape != shape:
            raise ValueError(f"{name} has statistics {table.shape} but {one} {shape}: use the same segments and metric")
        if not np.isfinite(table).all():
            raise ValueError(f"statistics of {name} hold NaN or infinity, which no resample can be scored with")
    return np.stack(list(tables.values()))


def _mean(statistics: np.ndarray) -> np.ndarray:
    """The score of values counted as (value, 1)."""
    return statistics[..., 0] / statistics[..., 1]


def _units(
    metric: Scorer, systems: Mapping[str, np.ndarray], documents: Sequence[Hashable] | None
) -> tuple[Score, np.ndarray]:
    """What is drawn, float[systems, units, K], and how sums of it are scored: segments, or scored documents."""
    tables = _tables(systems)
    if documents is None:
        return metric.score, tables
    values = np.stack([document_scores(metric, table, documents).scores for table in tables])
    return _mean, np.stack([values, np.ones_like(values)], axis=-1)


def _observed(score: Score, systems: Mapping[str, np.ndarray], table: np.ndarray) -> np.ndarray:
    """The systems' own scores; ValueError for one that is infinite, which no resample can be compared with."""
    observed = score(table.sum(axis=1))
    for name, value in zip(systems, observed, strict=True):
        if not np.isfinite(value):
            raise ValueError(f"the score of {name} is infinite: a segment has no distance; for WMD use wmd|missing:2.0")
    return observed


def _baseline(systems: Mapping[str, np.ndarray], baseline: str | None) -> int:
    """The baseline's place among the systems."""
    names = list(systems)
    if baseline is not None and baseline not in names:
        raise ValueError(f"no system {baseline!r} to be the baseline; there are {', '.join(names)}")
    return 0 if baseline is None else names.index(baseline)


def check_sampling(alpha: float, **counts: int) -> None:
    """Raise ValueError unless 0 < alpha < 1 and every count is at least 1."""
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be between 0 and 1, not {alpha}")
    for what, count in counts.items():
        if count < 1:
            raise ValueError(f"{what} must be at least 1, not {count}")


def _resample(table: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """Float[systems, N, K] -> float[systems, resamples, K], sums of N units drawn with replacement, alike in all."""
    systems, n, k = table.shape
    columns = table.transpose(1, 0, 2).reshape(n, systems * k)
    sums = np.empty((resamples, systems * k))
    start = 0
    for counts in (_kept_counts if resamples * n <= _KEPT else _draw_counts)(n, resamples, seed):
        np.matmul(counts, columns, out=sums[start : start + len(counts)])
        start += len(counts)
    return np.moveaxis(sums.reshape(resamples, systems, k), 1, 0)


def _draw_counts(n: int, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """How often each of n units is drawn, float64[rows, n] for some resamples at a time."""
    generator = np.random.default_rng(seed)
    rows = max(1, _CHUNK // n)
    for start in range(0, resamples, rows):  # the draws do not depend on where they are cut
        draws = generator.integers(n, size=(min(rows, resamples - start), n))
        draws += n * np.arange(len(draws))[:, None]
        yield np.bincount(draws.ravel(), minlength=draws.size).reshape(draws.shape).astype(np.float64)


@functools.lru_cache(maxsize=2)
def _kept_counts(n: int, resamples: int, seed: int) -> list[np.ndarray]:
    """The same for all: one corpus is resampled for every system and metric, and drawing takes most of the time."""
    return list(_draw_counts(n, resamples, seed))


def _shuffle(table: np.ndarray, trials: int, seed: int) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Float[systems, N, K] -> for spans of trials, sums float[systems, span, K] over a random half and over the rest.

    Both are summed, rather than one subtracted from the total, so that no sum of positive numbers comes out negative.
    """
    systems, n, k = table.shape
    columns = table.transpose(1, 0, 2).reshape(n, systems * k)
    generator = np.random.default_rng(seed)
    whole = 32 // math.gcd(n, 32)  # bits are drawn 32 at a time: a cut anywhere else would lose some
    rows = whole * max(1, _CHUNK // (whole * n))
    for start in range(0, trials, rows):
        span = slice(start, min(start + rows, trials))
        chosen = generator.integers(2, size=(span.stop - start, n), dtype=bool)
        kept, swapped = (half.astype(np.float64) @ columns for half in (chosen, ~chosen))
        yield span, *(np.moveaxis(half.reshape(-1, systems, k), 1, 0) for half in (kept, swapped))


def percentile_interval(score: float, resampled: np.ndarray, alpha: float) -> Interval:
    """The 1 - alpha percentile interval (Efron 1979) of a score, from the scores float[R] of R resamples."""
    ordered = np.sort(resampled)
    outside = int(len(ordered) * alpha / 2)
    lower, upper = float(ordered[outside]), float(ordered[-1 - outside])
    return Interval(score=score, mean=float(ordered.mean()), half_width=(upper - lower) / 2, lower=lower, upper=upper)


def _ties(observed: np.ndarray, first: int) -> np.ndarray:
    """Float[systems]: below this a difference from the baseline is one of rounding."""
    return _TIE * np.maximum(np.abs(observed), np.abs(observed[first]))


def _p_values(distances: np.ndarray, observed: np.ndarray, first: int, strict: bool) -> np.ndarray:
    """Sampled distances float[systems, R] -> float[systems]: the share that reach, or exceed, the observed distance."""
    observed_distances, ties = np.abs(observed - observed[first])[:, None], _ties(observed, first)[:, None]
    counted = distances > observed_distances + ties if strict else distances >= observed_distances - ties
    return (1 + counted.sum(axis=1)) / (1 + distances.shape[1])


def _rows(
    metric: Scorer,
    systems: Sequence[str],
    first: int,
    observed: np.ndarray,
    resampled: np.ndarray,
    p_values: np.ndarray,
    alpha: float,
) -> list[Comparison]:
    """Scores float[systems], of resamples float[systems, R], and p-values float[systems] -> the table."""
    gains = (resampled - resampled[first]) * (1 if metric.higher_is_better else -1)
    wins = (gains > _ties(observed, first)[:, None]).mean(axis=1)
    return [
        Comparison(
            system=system,
            interval=percentile_interval(float(observed[i]), resampled[i], alpha),
            difference=float(observed[i] - observed[first]),
            wins=None if i == first else float(wins[i]),
            p_value=None if i == first else float(p_values[i]),
            significant=i != first and bool(p_values[i] < alpha),
        )
        for i, system in enumerate(systems)
    ]
