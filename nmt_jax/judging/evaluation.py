"""Evaluation of metrics by human judgements: files and metrics in, correlation coefficients out."""

import contextlib
import dataclasses
import itertools
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from metrics_jax.judging.agreement import MeanAgreement, agreement
from metrics_jax.judging.coefficient import Coefficient
from metrics_jax.judging.comparison import clusters, intervals, p_values, williams
from metrics_jax.judging.judgements import Judgements
from metrics_jax.prediction.correlation import pearson
from metrics_jax.registry import metric_class, needs
from metrics_jax.significance import SEED
from nmt_jax.data.readers.judgements import Columns, Judged
from nmt_jax.distributed.shared_output import SharedOutput
from nmt_jax.distributed.tables import Tables
from nmt_jax.errors import UserError
from nmt_jax.judging.agreement_table import Column
from nmt_jax.judging.judgement_files import JudgedFiles, Protocol, read_judged_files
from nmt_jax.judging.metric_scores import JudgedTexts, given_scores
from nmt_jax.pretrained.metrics import check_sources, open_metric

TESTS = ("permutation", "williams")


@dataclasses.dataclass(frozen=True)
class Inference:
    """The statistical inference to do for each coefficient.

    confidence: bootstrap intervals. significance: a test of TESTS for every pair of metrics. trials: number of
    permutations and bootstrap samples.
    """

    confidence: bool = False
    significance: str | None = None
    trials: int = 1000
    seed: int = SEED

    def check(self, protocols: Sequence[Protocol], average: bool) -> None:
        """Raises UserError if the Williams test does not apply."""
        for one in protocols if self.significance == "williams" else []:
            if average or set(one.correlation) != {"pearson"} or (one.level == "segment" and one.grouping != "none"):
                raise UserError(
                    "--significance=williams tests Pearson's r over all texts or systems of one file; "
                    "use --significance=permutation"
                )

    def p_values(self, coefficient: Coefficient, scores: np.ndarray, judgements: Judgements) -> np.ndarray | None:
        """Return the p-values of every pair of metrics, float[M, M], or None; Williams' test needs the judgements."""
        if self.significance != "williams":
            return p_values(coefficient, scores, trials=self.trials, seed=self.seed) if self.significance else None
        values = coefficient.values(scores)
        points = judgements.system_means(scores) if coefficient.of_systems else scores
        p = np.full((len(points), len(points)), np.nan)
        for b, a in itertools.combinations(range(len(points)), 2):
            between = float(pearson(points[a], points[b]))
            p[a, b] = p[b, a] = williams(values[a], values[b], between, points.shape[1]).p_value
        return p


@dataclasses.dataclass(frozen=True)
class ScoredJudgements:
    """One column of human judgements of a file, and the scores of M metrics for its N texts, float[M, N]."""

    name: str
    human: str
    level: str
    judgements: Judgements
    scores: np.ndarray


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """The coefficients of the metrics, a column each, and the scores that they are of."""

    metrics: list[str]
    columns: list[Column]
    parts: list[ScoredJudgements]


def evaluate_metrics(
    arguments: Sequence[str],
    columns: Columns,
    protocol: Protocol,
    *,
    metrics: Sequence[str] = (),
    scores: Sequence[str] = (),
    system_scores: str = "",
    average: bool = False,
    inference: Inference | None = None,
    shared: SharedOutput | None = None,
    **options: Any,
) -> Evaluation | None:
    """Compute a column for each coefficient, file, and column of judgements.

    arguments: files as in `read_judged_files`. metrics: names or signatures, with `options` of `open_metric`. scores:
    as in `given_scores`. average: one column for all files of an argument, the mean of their coefficients. shared:
    processes divide the texts, and only one of them gets the evaluation, the others None. Raises
    UserError for files that cannot be read and for options that do not exist or exclude each other.
    """
    if not arguments:
        raise UserError("nmt-jax judge needs judged texts: nmt-jax judge FILE --human=COLUMN")
    if not metrics and not scores:
        raise UserError("nmt-jax judge needs metrics: --metrics=NAME, or --scores=COLUMN")
    given = {one.removeprefix("-").partition("=")[0]: one for one in scores}
    names = [*metrics, *given]
    if repeated := [name for k, name in enumerate(names) if name in names[:k]]:
        raise UserError(f"two metrics have the name {repeated[0]}: remove or rename one")
    inference = inference or Inference()
    if metrics and not scores and not any("references" in _needs(spec) for spec in metrics):
        columns = dataclasses.replace(columns, reference=())  # a file for quality estimation has none
    score_columns = tuple(one.removeprefix("-") for one in scores if "=" not in one)
    found = read_judged_files(arguments, dataclasses.replace(columns, scores=score_columns), protocol, system_scores)
    inference.check([entry.protocol for entry in found], average)
    for entry in found:
        _check_coefficients(entry)
    num_files = sum(len(entry.files) for entry in found)
    tables = Tables(shared)
    sources = all(judged.sources is not None for entry in found for judged in entry.files)
    with opened_metrics(metrics, {**options, "sources": sources}) as opened:
        check_sources(opened.values(), sources)
        texts = [[JudgedTexts(judged) for judged in entry.files] for entry in found]
        for one, (name, metric) in itertools.product(itertools.chain(*texts), opened.items()):
            one.add_table(tables, name, metric)
        arrays = tables.collect()
    if arrays is None:
        return None
    result = Evaluation(names, [], [])
    for entry, of_entry in zip(found, texts, strict=True):
        of_systems = entry.protocol.level == "system"
        parts = []
        for judged in of_entry:
            rows = [judged.scores(name, arrays, of_systems) for name in opened]
            rows += [given_scores(one, judged.judged, num_files) for one in given.values()]
            parts += _parts(entry.protocol, judged.judged, np.stack(rows))
        result.parts.extend(parts)
        groups: dict[tuple[str, str], list[ScoredJudgements]] = {}
        for part in parts:
            groups.setdefault((entry.name if average else part.name, part.human), []).append(part)
        for (name, _), group in groups.items():
            for coefficient in entry.protocol.correlation:
                result.columns.append(_column(name, coefficient, names, group, entry.protocol, inference))
    return result


def _check_coefficients(entry: JudgedFiles) -> None:
    """Raise UserError for a coefficient that does not exist, or not for these judgements."""
    protocol = entry.protocol
    with _user_errors():
        for judged in entry.files:
            for human, coefficient in itertools.product(judged.human, protocol.correlation):
                agreement(protocol.judgements(judged, human)[0], coefficient, protocol.level, protocol.grouping)


def _needs(spec: str) -> tuple[str, ...]:
    """The texts that a metric reads."""
    try:
        return metric_class(spec).needs
    except ValueError as error:
        raise UserError(f"--metrics: {error}") from error


def _parts(protocol: Protocol, judged: Judged, rows: np.ndarray) -> list[ScoredJudgements]:
    """Pair the scores of a file's texts, float[M, N], with each of its columns of judgements."""
    parts = []
    with _user_errors():
        for human in judged.human:
            judgements, texts = protocol.judgements(judged, human)
            parts.append(ScoredJudgements(judged.name, human, protocol.level, judgements, rows[:, texts]))
    return parts


def _column(
    name: str,
    coefficient_name: str,
    metrics: list[str],
    parts: Sequence[ScoredJudgements],
    protocol: Protocol,
    inference: Inference,
) -> Column:
    """Compute one coefficient, or the mean of those of several files, for each metric."""
    with _user_errors():
        each = [agreement(part.judgements, coefficient_name, protocol.level, protocol.grouping) for part in parts]
        coefficient, scores = each[0], parts[0].scores
        if len(parts) > 1:
            scores = np.concatenate([part.scores for part in parts], axis=1)
            coefficient = MeanAgreement(each, [part.scores.shape[1] for part in parts])
        values = coefficient.values(scores)
        sampling = {"draws": inference.trials, "seed": inference.seed}
        bounds = intervals(coefficient, scores, **sampling) if inference.confidence else None
        p = inference.p_values(coefficient, scores, parts[0].judgements)
    ranks = clusters(values, p) if p is not None else None
    return Column(name, parts[0].human, coefficient_name, metrics, values, bounds, p, ranks, len(parts))


@contextlib.contextmanager
def opened_metrics(metrics: Sequence[str], options: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Open the metrics, by name; if several need the encoder, they share a cache of its output."""
    with contextlib.ExitStack() as stack:
        options = dict(options)
        with _user_errors("--metrics: "):
            encoding = [spec for spec in metrics if "encoder" in needs(spec)]
        if len(encoding) > 1 and not options.get("cache"):
            options["cache"] = stack.enter_context(tempfile.TemporaryDirectory())
        yield {spec: open_metric(spec, **options) for spec in metrics}


@contextlib.contextmanager
def _user_errors(prefix: str = "nmt-jax judge: ") -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise UserError(f"{prefix}{error}") from error
