"""`nmt-jax score`: files of translations against files of references, by the field's metrics."""

import dataclasses
import functools
import pathlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from absl import flags

from metrics_jax import significance
from metrics_jax.api import AdditiveMetric
from metrics_jax.embedding.contextual import TextTooLongError
from metrics_jax.registry import REGISTRY, SHORTHANDS, needs
from nmt_jax.commands.metric_flags import define_metric_flags, metric_options
from nmt_jax.data.lines import decode_lines, read_lines
from nmt_jax.errors import UserError
from nmt_jax.pretrained.metrics import open_metric
from nmt_jax.progress import track
from nmt_jax.reporting import score_table
from nmt_jax.reporting.score_table import Score

PAIRED = {"bootstrap": significance.paired_bootstrap, "randomisation": significance.paired_randomisation}


def define_flags(flag_values: flags.FlagValues) -> None:
    """The flags of `nmt-jax score`."""
    given: dict[str, Any] = {"flag_values": flag_values}
    flags.DEFINE_multi_string("reference", [], "Reference translations, a line each; may be given repeatedly.", **given)
    flags.DEFINE_list(
        "metrics",
        ["bleu", "chrf", "ter"],
        f"Any of {', '.join([*REGISTRY, *SHORTHANDS])}; with options 'bleu|tokenize:zh', or a whole signature.",
        **given,
    )
    define_metric_flags(flag_values)
    flags.DEFINE_string("baseline", None, "The zero of bertscore, a file of `nmt-jax calibrate`.", **given)
    flags.DEFINE_string("idf", None, "How rare tokens are, a file of `nmt-jax calibrate`; they weigh as much.", **given)
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
        confidence=flag_values.confidence,
        paired=flag_values.paired,
        seed=flag_values.seed,
        baseline=flag_values.baseline,
        idf=flag_values.idf,
        **metric_options(flag_values),
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
    confidence: bool = False,
    paired: str | None = None,
    seed: int = significance.SEED,
    **options: Any,
) -> list[Score]:
    """Score files of hypotheses ("-" is stdin) against one or more files of references, line N against line N.

    metrics: names or signatures. confidence: with intervals. paired: "bootstrap" or "randomisation" also tests every
    system against the first. options: what some metrics need, as of `open_metric`. The scores come metric by
    metric.
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
    named = [(spec, open_metric(spec, **options)) for spec in metrics]
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
        statistics = _statistics(metric, systems, grouped)
    except TextTooLongError as error:
        number, line = divmod(error.segment, len(grouped))
        raise UserError(f"{list(systems)[number]}:{line + 1}: this line or its reference is {error.problem}") from error
    except (ValueError, MemoryError) as error:  # a database or model that is not there, or damaged
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


def _statistics(
    metric: AdditiveMetric, systems: dict[str, list[str]], grouped: list[tuple[str, ...]]
) -> dict[str, np.ndarray]:
    """The statistics float[N, K] of each system, counted on a terminal while they come.

    All systems' translations of a line go together, so that what is done with its references is done once.
    """
    each = min(metric.segments_per_call, len(grouped))
    starts = range(0, len(grouped), each)
    blocks = []
    for start in track(starts, f"{metric.name}, lines", total=len(grouped), each=each) if starts[1:] else starts:
        some = slice(start, start + each)
        lines = [line for system in systems.values() for line in system[some]]
        rows = metric.statistics(lines, grouped[some] * len(systems))
        blocks.append(rows.reshape(len(systems), -1, rows.shape[-1]))
    return dict(zip(systems, np.concatenate(blocks, axis=1), strict=True))


def _tested(test: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What a test of significance says; UserError for scores that it cannot compare."""
    try:
        return test(*arguments, **options)
    except ValueError as error:
        raise UserError(f"--metrics: {error}") from error


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
