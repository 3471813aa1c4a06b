"""Statistical significance: bootstrap intervals, paired tests against a baseline, averages over documents.

    systems = {"baseline": bleu.statistics(hypotheses, references), "ours": bleu.statistics(others, references)}
    for row in significance.paired_bootstrap(bleu, systems):
        print(row.system, row.interval.score, row.interval.half_width, row.p_value, row.significant)

A metric is used only through its additive statistics: a resample is a row of counts, all resamples of all systems are
one matrix product, and the metric scores all sums at once. Random draws and formulas are those of sacrebleu, so that
equal seeds give equal numbers, with two exceptions. First, a sampled difference equal to the observed one counts as
evidence for chance (Riezler & Maxwell 2005, figure 1), so that two copies of a system have p = 1. Sacrebleu counts only
larger differences (`strict`), which makes copies significantly different, and makes p too small where scores take few
values, as those of TER do. Second, all intervals are computed from the same resamples; with randomisation tests,
sacrebleu uses different ones for all systems but the baseline.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

import numpy as np

from metrics_jax.api import AdditiveMetric

Score = Callable[[np.ndarray], np.ndarray]

SEED = 12345  # sacrebleu's
_CHUNK = 2**16  # counts per block: half a megabyte, which fits into a processor's cache
_CACHED = 2**21  # counts cached between calls: 16 megabytes
_TIE = 1e-9  # relative tolerance for equal differences: floating-point sums depend on their order


@dataclasses.dataclass(frozen=True)
class Interval:
    """A score and its confidence interval, on the metric's scale.

    score: of the sample itself. mean: of the resamples. lower, upper: percentile bounds (Efron 1979), the scores at n
    alpha/2 from either end of the n sorted resamples. half_width: (upper - lower) / 2, as sacrebleu prints.
    """

    score: float
    mean: float
    half_width: float
    lower: float
    upper: float


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A system compared with the baseline; in the row of the baseline itself, `wins` and `p_value` are None.

    difference: score minus the baseline's score. wins: fraction of bootstrap resamples in which the system is better
    (Koehn 2004). p_value: probability, in (0, 1], of a difference this large in either direction between equally good
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
    """Scores of documents, in the order of their first segments: `scores` float[D], and `score`, their mean."""

    score: float
    documents: tuple[Hashable, ...]
    scores: np.ndarray


def bootstrap(
    metric: AdditiveMetric,
    statistics: np.ndarray,
    *,
    resamples: int = 1000,
    seed: int = SEED,
    alpha: float = 0.05,
    documents: Sequence[Hashable] | None = None,
) -> Interval:
    """Compute the score of statistics float[N, K] and its 1 - alpha interval by bootstrap resampling.

    `resamples` samples of N segments are drawn. With `documents`, a label per segment, the score is the mean over
    documents, and documents are drawn. Raises ValueError for statistics that are not finite or not two-dimensional, and
    for invalid alpha or resamples.
    """
    check_sampling(alpha, resamples=resamples)
    score, table = _units(metric, {"the system": statistics}, documents)
    observed = _observed(score, {"the system": statistics}, table)
    return percentile_interval(float(observed[0]), score(_resample(table, resamples, seed))[0], alpha)


def paired_bootstrap(
    metric: AdditiveMetric,
    systems: Mapping[str, np.ndarray],
    baseline: str | None = None,
    *,
    resamples: int = 1000,
    seed: int = SEED,
    alpha: float = 0.05,
    strict: bool = False,
    documents: Sequence[Hashable] | None = None,
) -> list[Comparison]:
    """Test systems against a baseline by paired bootstrap resampling (Koehn 2004).

    `systems` maps names to statistics float[N, K]; all are tested on the same resamples. Returns one row per system.
    The p-value is that of Moses and sacrebleu: with d the absolute differences of the resamples, the fraction of d -
    mean(d) that are at least the observed difference (greater, if `strict`), with the observed one counted once more.
    This definition is one-sided: equal systems are called different about 2 alpha of the time (11 % measured at 5 %),
    whereas `paired_randomisation` keeps alpha. The baseline is the first system by default. `documents` and errors are
    as in `bootstrap`; also raises ValueError for systems of different sizes.
    """
    check_sampling(alpha, resamples=resamples)
    samples = _Samples(metric, systems, baseline, documents, resamples, seed)
    distances = np.abs(samples.resampled - samples.resampled[samples.first])
    return samples.compare(distances - distances.mean(axis=1, keepdims=True), alpha, strict)


def paired_randomisation(
    metric: AdditiveMetric,
    systems: Mapping[str, np.ndarray],
    baseline: str | None = None,
    *,
    resamples: int = 1000,
    trials: int = 10_000,
    seed: int = SEED,
    alpha: float = 0.05,
    strict: bool = False,
    documents: Sequence[Hashable] | None = None,
) -> list[Comparison]:
    """Test systems against a baseline by approximate randomisation (Riezler & Maxwell 2005).

    `systems` maps names to statistics float[N, K]. Returns one row per system. Each trial swaps system and baseline in
    a random half of the segments. The p-value is the fraction of trials whose absolute difference is at least the
    observed one (greater, if `strict`), with the observed one counted once more. Intervals, `wins`, the baseline,
    `documents` and errors are as in `paired_bootstrap`.
    """
    check_sampling(alpha, trials=trials, resamples=resamples)
    samples = _Samples(metric, systems, baseline, documents, resamples, seed)
    score, first = samples.score, samples.first
    distances = np.empty((len(systems), trials))
    for span, kept, swapped in _shuffle(samples.table, trials, seed):
        distances[:, span] = np.abs(score(kept[first] + swapped) - score(swapped[first] + kept))
    return samples.compare(distances, alpha, strict)


def document_scores(metric: AdditiveMetric, statistics: np.ndarray, documents: Sequence[Hashable]) -> DocumentScores:
    """Score each document from its summed statistics, and compute the mean over documents.

    `statistics` is float[N, K], `documents` holds a label per segment; segments of a document need not be adjacent.
    Raises ValueError if the lengths differ.
    """
    table = _tables({"the system": statistics})[0]
    if len(documents) != len(table):
        counts = f"{len(table)} segments but {len(documents)} document labels"
        raise ValueError(f"{counts}: there must be one per segment, in the same order")
    numbers: dict[Hashable, int] = {}
    of_segment = [numbers.setdefault(label, len(numbers)) for label in documents]
    sums = np.zeros((len(numbers), table.shape[1]))
    np.add.at(sums, of_segment, table)
    scores = metric.score(sums)
    return DocumentScores(score=float(scores.mean()), documents=tuple(numbers), scores=scores)


def _tables(systems: Mapping[str, np.ndarray]) -> np.ndarray:
    """Stack the systems' statistics into float[systems, N, K]; raises ValueError for invalid ones."""
    if not systems:
        raise ValueError("no systems to compare")
    tables = {name: np.asarray(statistics, np.float64) for name, statistics in systems.items()}
    (first, shape), *_ = ((name, table.shape) for name, table in tables.items())
    for name, table in tables.items():
        if table.ndim != 2 or not table.size:
            raise ValueError(f"statistics of {name} must be float[segments, K], not of shape {table.shape}")
        if table.shape != shape:
            raise ValueError(
                f"{name} has statistics of shape {table.shape} but {first} of {shape}: use the same segments and metric"
            )
        if not np.isfinite(table).all():
            raise ValueError(f"statistics of {name} contain NaN or infinity, so that resamples have no score")
    return np.stack(list(tables.values()))


def _units(
    metric: AdditiveMetric, systems: Mapping[str, np.ndarray], documents: Sequence[Hashable] | None
) -> tuple[Score, np.ndarray]:
    """Segments or documents to draw, as float[systems, units, K], and the function that scores their sums."""
    tables = _tables(systems)
    if documents is None:
        return metric.score, tables
    values = np.stack([document_scores(metric, table, documents).scores for table in tables])
    return lambda sums: sums[..., 0] / sums[..., 1], np.stack([values, np.ones_like(values)], axis=-1)


def _observed(score: Score, systems: Mapping[str, np.ndarray], table: np.ndarray) -> np.ndarray:
    """The scores of the systems themselves; raises ValueError if one is infinite."""
    observed = score(table.sum(axis=1))
    for name, value in zip(systems, observed, strict=True):
        if not np.isfinite(value):
            raise ValueError(
                f"the score of {name} is infinite: a segment has no finite distance; for WMD use wmd|missing:2.0"
            )
    return observed


def check_sampling(alpha: float, **counts: int) -> None:
    """Raise ValueError unless 0 < alpha < 1 and every count is at least 1."""
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be between 0 and 1, not {alpha}")
    for name, count in counts.items():
        if count < 1:
            raise ValueError(f"{name} must be at least 1, not {count}")


def _resample(table: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """Sums float[systems, resamples, K] of N units drawn with replacement, the same for all systems."""
    systems, n, k = table.shape
    columns = table.transpose(1, 0, 2).reshape(n, systems * k)
    blocks = (_cached_counts if resamples * n <= _CACHED else _draw_counts)(n, resamples, seed)
    sums = np.concatenate([counts @ columns for counts in blocks])
    return np.moveaxis(sums.reshape(resamples, systems, k), 1, 0)


def _draw_counts(n: int, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """Count how often each of n units is drawn: float64[rows, n], a block of resamples at a time."""
    generator = np.random.default_rng(seed)
    rows = max(1, _CHUNK // n)
    for start in range(0, resamples, rows):  # the draws do not depend on the size of the blocks
        draws = generator.integers(n, size=(min(rows, resamples - start), n))
        draws += n * np.arange(len(draws))[:, None]
        yield np.bincount(draws.ravel(), minlength=draws.size).reshape(draws.shape).astype(np.float64)


@functools.lru_cache(maxsize=2)
def _cached_counts(n: int, resamples: int, seed: int) -> list[np.ndarray]:
    """`_draw_counts` with a cache: all systems and metrics share the draws, and drawing takes most of the time."""
    return list(_draw_counts(n, resamples, seed))


def _shuffle(table: np.ndarray, trials: int, seed: int) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Yield blocks of trials with their sums float[systems, block, K] over a random half and over the rest.

    The table is float[systems, N, K]. Both sums are computed, instead of subtracting one from the total, so that sums
    of positive numbers stay positive.
    """
    systems, n, k = table.shape
    columns = table.transpose(1, 0, 2).reshape(n, systems * k)
    generator = np.random.default_rng(seed)
    whole = 32 // math.gcd(n, 32)  # bits are drawn 32 at a time: other block sizes would drop some of them
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


class _Samples:
    """The scores float[systems] of systems and of their resamples float[systems, R], and the baseline's index."""

    def __init__(
        self,
        metric: AdditiveMetric,
        systems: Mapping[str, np.ndarray],
        baseline: str | None,
        documents: Sequence[Hashable] | None,
        resamples: int,
        seed: int,
    ) -> None:
        self.sign, self.names = 1 if metric.higher_is_better else -1, list(systems)
        self.score, self.table = _units(metric, systems, documents)
        if baseline is not None and baseline not in systems:
            raise ValueError(f"no system {baseline!r} for the baseline; choose one of {', '.join(self.names)}")
        self.first = 0 if baseline is None else self.names.index(baseline)
        self.observed = _observed(self.score, systems, self.table)
        self.resampled = self.score(_resample(self.table, resamples, seed))

    def compare(self, distances: np.ndarray, alpha: float, strict: bool) -> list[Comparison]:
        """The results; p-values are the fractions of distances float[systems, T] not below the observed ones."""
        observed, first = self.observed, self.first
        # Differences from the baseline below this are rounding errors.
        ties = (_TIE * np.maximum(np.abs(observed), np.abs(observed[first])))[:, None]
        least = np.abs(observed - observed[first])[:, None]
        counted = distances > least + ties if strict else distances >= least - ties
        p_values = (1 + counted.sum(axis=1)) / (1 + distances.shape[1])
        wins = ((self.resampled - self.resampled[first]) * self.sign > ties).mean(axis=1)
        return [
            Comparison(
                system=system,
                interval=percentile_interval(float(observed[i]), self.resampled[i], alpha),
                difference=float(observed[i] - observed[first]),
                wins=None if i == first else float(wins[i]),
                p_value=None if i == first else float(p_values[i]),
                significant=i != first and bool(p_values[i] < alpha),
            )
            for i, system in enumerate(self.names)
        ]
