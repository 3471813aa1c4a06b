"""Scores of systems, each a file of translations, by metrics."""

import dataclasses
import functools
import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from metrics_jax import significance
from metrics_jax.api import AdditiveMetric
from metrics_jax.embedding.contextual import TextTooLongError
from metrics_jax.registry import needs
from nmt_jax.data.lines import decode_lines, read_lines
from nmt_jax.distributed.shared_output import SharedOutput
from nmt_jax.distributed.tables import Tables
from nmt_jax.errors import UserError
from nmt_jax.pretrained.metrics import check_sources, metric_error, open_metric
from nmt_jax.reporting.score_table import Score

PAIRED = {"bootstrap": significance.paired_bootstrap, "randomisation": significance.paired_randomisation}


@dataclasses.dataclass(frozen=True)
class Inference:
    """The statistical inference to do: bootstrap intervals, and a test of PAIRED against the first system."""

    confidence: bool = False
    paired: str | None = None
    seed: int = significance.SEED


def score_files(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    source: str | None = None,
    documents: str | None = None,
    metrics: Sequence[str] = ("bleu", "chrf", "ter"),
    inference: Inference | None = None,
    shared: SharedOutput | None = None,
    **options: Any,
) -> list[Score] | None:
    """Score files of hypotheses ("-" is stdin) against one or more files of references, line N against line N.

    references: none, if no metric reads them. source: the file of what was translated, for metrics that read it.
    documents: the file with the name of the document of each line; the lines of a document are scored as one, joined by
    spaces. metrics: names or signatures, with `options` of `open_metric`. Returns the scores of all systems by the
    first metric, then by the second, and so on; with `shared`, processes divide the lines, and only one of them gets
    scores, the others None. Raises UserError for files that are missing, empty, not UTF-8 or of unequal length, and for
    a metric or option that does not exist.
    """
    inference = inference or Inference()
    if not hypotheses:
        raise UserError("nmt-jax score needs a file of translations: nmt-jax score HYPOTHESIS --reference=FILE")
    if not metrics:
        raise UserError("--metrics is empty: name at least one metric, such as --metrics=bleu,chrf")
    if inference.paired and len(hypotheses) < 2:
        raise UserError("--paired compares systems: give the baseline first, then the others")
    if repeated := [name for i, name in enumerate(hypotheses) if name in hypotheses[:i]]:
        raise UserError(f"{repeated[0]} is given twice; systems are named by their files")
    if [*hypotheses, *references, source, documents].count("-") > 1:
        raise UserError("stdin (-) can be only one of the files; give the names of the others")
    opened = [(spec, open_metric(spec, sources=source is not None, **options)) for spec in metrics]
    if not references and any("references" in metric.needs for _, metric in opened):
        raise UserError("nmt-jax score needs references: --reference=FILE, once or several times")
    by_name = {_metric_name(spec, metric): metric for spec, metric in opened}
    check_sources(by_name.values(), source is not None)
    reference_lines, systems = (
        {"stdin" if name == "-" else name: _read(name) for name in names} for names in (references, hypotheses)
    )
    sources, named = ({} if name is None else {name: _read(name)} for name in (source, documents))
    all_others = (reference_lines | sources | named).items()
    for (system, lines), (name, others) in itertools.product(systems.items(), all_others):
        if len(lines) != len(others):
            raise UserError(
                f"{system} has {len(lines)} lines but {name} has {len(others)}: line N must be the translation of line "
                "N; an empty translation is an empty line"
            )
    for name, labels in named.items():
        spans = _documents(labels, name)
        for files in (systems, reference_lines, sources):
            files |= {file: [" ".join(lines[span]) for span in spans] for file, lines in files.items()}
    return score_texts(systems, reference_lines, by_name, sources.get(source or ""), inference=inference, shared=shared)


def _documents(labels: Sequence[str], name: str) -> list[slice]:
    """Return the lines of each document, from the label of each line; name: of the file, for errors.

    Raises UserError if the lines of a document are not together.
    """
    spans: dict[str, slice] = {}
    for label, group in itertools.groupby(range(len(labels)), labels.__getitem__):
        lines = [*group]
        first, last = lines[0], lines[-1]
        if label in spans:
            raise UserError(
                f"{name}:{first + 1}: document {label!r} continues after another one began; put its lines together"
            )
        spans[label] = slice(first, last + 1)
    return [*spans.values()]


def score_texts(
    systems: Mapping[str, Sequence[str]],
    references: Mapping[str, Sequence[str]],
    metrics: Mapping[str, AdditiveMetric],
    sources: Sequence[str] | None = None,
    *,
    inference: Inference,
    shared: SharedOutput | None = None,
) -> list[Score] | None:
    """Score systems, lists of N lines by name, against one or more lists of N references by metrics, all by name.

    sources: what was translated, for metrics that read it. Returns as `score_files`. Raises UserError if a metric
    cannot score a line.
    """
    lines = next(iter(systems.values()))
    grouped: list[tuple[str, ...]] = list(zip(*references.values(), strict=True)) if references else [()] * len(lines)
    tables = Tables(shared)
    fitted = {name: _add_table(tables, metric, systems, grouped, sources) for name, metric in metrics.items()}
    arrays = tables.collect()
    if arrays is None:
        return None
    return [
        score
        for (name, metric), array in zip(fitted.items(), arrays, strict=True)
        for score in _scores(name, metric, dict(zip(systems, array.swapaxes(0, 1), strict=True)), grouped, inference)
    ]


def _add_table(
    tables: Tables,
    metric: AdditiveMetric,
    systems: Mapping[str, Sequence[str]],
    references: list[tuple[str, ...]],
    sources: Sequence[str] | None,
) -> AdditiveMetric:
    """Add a metric's table of statistics, float[N, number of systems, K]; returns the metric fitted to the references.

    The translations of a line by all systems go together, so that its references are processed once.
    """

    read = [sources] if sources is not None and "sources" in metric.needs else []

    def compute(first: int, stop: int) -> np.ndarray:
        lines = [line for system in systems.values() for line in system[first:stop]]
        given = [[*source[first:stop]] * len(systems) for source in read]
        try:
            table = metric.statistics(lines, references[first:stop] * len(systems), *given)
        except TextTooLongError as error:
            system, line = divmod(error.segment, stop - first)
            location = f"{list(systems)[system]}:{first + line + 1}"
            raise UserError(f"{location}: this line or its reference is {error.problem}") from error
        return np.reshape(table, (len(systems), -1, table.shape[-1])).swapaxes(0, 1)

    try:
        metric = metric.fitted(references)
        texts = list(zip(references, *systems.values(), strict=True))
        tables.add(compute, texts, metric.segments_per_call, f"{metric.name}, lines")
    except (ValueError, MemoryError) as error:  # a model or database is missing or damaged
        raise metric_error(error) from error
    return metric


def _scores(
    name: str,
    metric: AdditiveMetric,
    statistics: dict[str, np.ndarray],
    references: list[tuple[str, ...]],
    inference: Inference,
) -> list[Score]:
    """Score every system by one metric, from statistics float[N, K] of each; references: those of each line."""
    counts = [len(group) for group in references]
    try:
        scores = [Score(system, name, metric, metric.result(table, counts)) for system, table in statistics.items()]
    except (ValueError, MemoryError) as error:
        raise metric_error(error) from error
    if inference.paired:
        rows = _tested(PAIRED[inference.paired], metric, statistics, seed=inference.seed)
        pairs = zip(scores, rows, strict=True)
        return [dataclasses.replace(score, interval=row.interval, comparison=row) for score, row in pairs]
    if inference.confidence:
        interval = functools.partial(significance.bootstrap, metric, seed=inference.seed)
        return [dataclasses.replace(score, interval=_tested(interval, statistics[score.system])) for score in scores]
    return scores


def _tested(test: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call a significance test; raises UserError for scores that it cannot compare."""
    try:
        return test(*arguments, **options)
    except ValueError as error:
        raise metric_error(error) from error


def _metric_name(spec: str, metric: AdditiveMetric) -> str:
    """Return the heading of a metric in the table: `spec`, or of a complete signature what differs from the default."""
    if "|version:" not in spec:
        return spec
    required = {name: getattr(metric, name) for name in needs(metric.name)}
    defaults = type(metric)(**required).signature.split("|")
    return "|".join([metric.name, *(item for item in metric.signature.split("|")[1:] if item not in defaults)])


def _read(name: str) -> list[str]:
    """Read all lines of a file, or of stdin for "-"."""
    if name != "-":
        return list(read_lines(name))
    if lines := list(decode_lines(sys.stdin.buffer, "stdin")):
        return lines
    raise UserError("stdin: nothing to score")
