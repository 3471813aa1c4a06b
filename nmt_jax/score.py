"""`nmt-jax score`: files of translations against files of references, by the field's metrics."""

import dataclasses
import functools
import pathlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from absl import flags

from metrics_jax import parse, significance
from metrics_jax.api import AdditiveMetric, Result, check_texts
from metrics_jax.signature import ROOMS, SHORTHANDS, needs
from nmt_jax import score_table
from nmt_jax.counting import counted
from nmt_jax.data.lines import decode_lines, find, read_lines
from nmt_jax.errors import UserError

PAIRED = {"bootstrap": significance.paired_bootstrap, "randomisation": significance.paired_randomisation}
_CHUNK = 200  # segments between two updates of the count


@dataclasses.dataclass(frozen=True)
class Score:
    """What one metric says of one system, and how sure it is, if that was asked."""

    system: str
    name: str  # of the metric, as the user wrote it
    metric: AdditiveMetric
    result: Result
    interval: significance.Interval | None = None
    comparison: significance.Comparison | None = None


def define_flags(flag_values: flags.FlagValues) -> None:
    """The flags of `nmt-jax score`."""
    given: dict[str, Any] = {"flag_values": flag_values}
    flags.DEFINE_multi_string("reference", [], "Reference translations, a line each; may be given repeatedly.", **given)
    flags.DEFINE_list(
        "metrics",
        ["bleu", "chrf", "ter"],
        f"Any of {', '.join([*ROOMS, *SHORTHANDS])}; with options 'bleu|tokenize:zh', or a whole signature.",
        **given,
    )
    flags.DEFINE_string("vectors", None, "Word vectors (GloVe's, word2vec's; text or binary) for wmd and sms.", **given)
    flags.DEFINE_boolean("segments", False, "A row for every line instead of one for the whole.", **given)
    flags.DEFINE_boolean("confidence", False, "95 % intervals, by bootstrap.", **given)
    flags.DEFINE_enum("paired", None, list(PAIRED), "Test every system against the first.", **given)
    flags.DEFINE_integer("seed", significance.SEED, "Of the resamples.", **given)
    formats = list(score_table.WRITERS)
    flags.DEFINE_enum("format", "text", formats, "text: a table, and in a pipe rows without a heading.", **given)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Flags in, a table out."""
    if flag_values.segments and flag_values.format == "latex":
        raise UserError("--segments and --format=latex do not go together: use --format=tsv")
    scores = run(
        positional,
        flag_values.reference,
        metrics=flag_values.metrics,
        vectors=flag_values.vectors,
        confidence=flag_values.confidence,
        paired=flag_values.paired,
        seed=flag_values.seed,
    )
    print(score_table.WRITERS[flag_values.format](scores, flag_values.segments))
    if flag_values.segments and any("|effective_order:false|" in score.result.signature for score in scores):
        print(
            "nmt-jax: BLEU is 0 for a line of fewer than four words: --metrics='bleu|effective_order:true' leaves out "
            "the n-grams that a line is too short for",
            file=sys.stderr,
        )
    return 0


def run(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    metrics: Sequence[str] = ("bleu", "chrf", "ter"),
    vectors: str | None = None,
    confidence: bool = False,
    paired: str | None = None,
    seed: int = significance.SEED,
) -> list[Score]:
    """Score files of hypotheses ("-" is stdin) against one or more files of references, line N against line N.

    metrics: names or signatures. vectors: the file of word vectors that some of them need. confidence: with intervals.
    paired: "bootstrap" or "randomisation" also tests every system against the first. The scores come metric by metric.
    UserError for files that are missing, empty, not UTF-8 or of unequal length (naming both and their lengths), and for
    a metric or option that does not exist.
    """
    if not hypotheses:
        raise UserError("nmt-jax score needs a file of translations: nmt-jax score HYPOTHESIS --reference=FILE")
    if not references:
        raise UserError("nmt-jax score needs references: --reference=FILE (several for several references)")
    if paired and len(hypotheses) < 2:
        raise UserError("--paired compares systems: give the baseline first, then the others")
    if repeated := [name for i, name in enumerate(hypotheses) if name in hypotheses[:i]]:
        raise UserError(f"{repeated[0]} is given twice: a system is named by its file")
    named = [(spec, _metric(spec, vectors)) for spec in metrics]
    measures = {_name(spec, metric): metric for spec, metric in named}
    reference_lines = {_title(name): _read(name) for name in references}
    systems = {_title(name): _read(name) for name in hypotheses}
    for system, lines in systems.items():
        for name, others in reference_lines.items():
            if len(lines) != len(others):
                raise UserError(
                    f"{system} has {len(lines)} lines but {name} has {len(others)}: line N belongs to line N, "
                    "an empty translation is an empty line"
                )
    grouped = list(zip(*reference_lines.values(), strict=True))
    return [
        score
        for name, measure in measures.items()
        for score in _scores(name, measure, systems, grouped, confidence, paired, seed)
    ]


def _scores(
    name: str,
    metric: AdditiveMetric,
    systems: dict[str, list[str]],
    grouped: list[tuple[str, ...]],
    confidence: bool,
    paired: str | None,
    seed: int,
) -> list[Score]:
    """Every system by one metric."""
    try:
        metric = metric.fitted(grouped)
        statistics = {system: _statistics(metric, system, lines, grouped) for system, lines in systems.items()}
    except ValueError as error:  # a database or model that is not there
        raise UserError(f"--metrics: {error}") from error
    scores = [
        Score(system, name, metric, metric.result(table, [len(group) for group in grouped]))
        for system, table in statistics.items()
    ]
    if paired:
        rows = _tested(PAIRED[paired], metric, statistics, seed=seed)
        return [
            dataclasses.replace(score, interval=row.interval, comparison=row)
            for score, row in zip(scores, rows, strict=True)
        ]
    if confidence:
        interval = functools.partial(significance.bootstrap, metric, seed=seed)
        return [dataclasses.replace(score, interval=_tested(interval, statistics[score.system])) for score in scores]
    return scores


def _statistics(metric: AdditiveMetric, system: str, lines: list[str], grouped: list[tuple[str, ...]]) -> np.ndarray:
    """The statistics of all segments, counted on a terminal while they come."""
    check_texts(lines, grouped)
    starts = range(0, len(lines), _CHUNK)
    rows = [
        metric.statistics(lines[start : start + _CHUNK], grouped[start : start + _CHUNK])
        for start in counted(starts, f"{metric.name}, lines of {system}", total=len(lines), each=_CHUNK)
    ]
    return np.concatenate(rows)


def _tested(test: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What a test of significance says; UserError for scores that it cannot compare."""
    try:
        return test(*arguments, **options)
    except ValueError as error:
        raise UserError(f"--metrics: {error}") from error


def _metric(spec: str, vectors: str | None) -> AdditiveMetric:
    """The metric of a name or signature, with the word vectors of a file if it needs some."""
    try:
        if not {"vectors"}.intersection(needs(spec)):
            return parse(spec)
        if not vectors:
            raise UserError(f"--metrics={spec} needs word vectors: --vectors=FILE, such as GloVe's")
        return parse(spec, vectors=_vectors(vectors))
    except ValueError as error:
        raise UserError(f"--metrics: {error}") from error


@functools.cache
def _vectors(name: str) -> Any:
    """The word vectors of a file, read once for all metrics."""
    from metrics_jax import Vectors

    return Vectors.load(find(name))


def _name(spec: str, metric: AdditiveMetric) -> str:
    """What a metric is called in the table: as it was asked for, or of a whole signature what is not the default."""
    if "|version:" not in spec:
        return spec
    given = {name: getattr(metric, name) for name in needs(metric.name)}
    defaults = type(metric)(**given).signature.split("|")
    return "|".join([metric.name, *(item for item in metric.signature.split("|")[1:] if item not in defaults)])


def _title(name: str) -> str:
    """A file's name, where "-" is stdin."""
    return "stdin" if name == "-" else name


def _read(name: str) -> list[str]:
    """All lines of a file, or of stdin for `-`."""
    if name != "-":
        return list(read_lines(pathlib.Path(name)))
    lines = list(decode_lines(sys.stdin.buffer, "stdin"))
    if not lines:
        raise UserError("stdin: nothing to score")
    return lines
