"""`nmt-jax score`: files of translations against files of references, by the field's metrics."""

import functools
import json
import pathlib
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from absl import flags

from metrics_jax.api import Metric, Result
from metrics_jax.surface import BLEU, TER, TOKENIZERS, ChrF
from nmt_jax.data.lines import decode_lines, read_lines
from nmt_jax.errors import UserError

METRICS: dict[str, Callable[..., Metric]] = {
    "bleu": BLEU,
    "chrf": ChrF,
    "chrf++": functools.partial(ChrF, word_order=2),
    "ter": TER,
}


class Score(NamedTuple):
    """The result of one system by one metric."""

    system: str
    metric: str
    higher_is_better: bool
    result: Result


def define_flags(flag_values: flags.FlagValues) -> None:
    """The flags of `nmt-jax score`."""
    given: dict[str, Any] = {"flag_values": flag_values}
    flags.DEFINE_multi_string("reference", [], "Reference translations, a line each; may be given repeatedly.", **given)
    flags.DEFINE_list("metrics", ["bleu", "chrf", "ter"], f"Any of {', '.join(METRICS)}.", **given)
    flags.DEFINE_enum("tokenize", "13a", TOKENIZERS, "BLEU's tokenizer.", **given)
    flags.DEFINE_boolean("lowercase", False, "Ignore case in BLEU and chrF; TER always does.", **given)
    flags.DEFINE_enum("format", "text", ["text", "json"], "text: a table, and in a pipe tab-separated rows.", **given)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Flags in, a table out."""
    scores = run(
        positional,
        flag_values.reference,
        metrics=flag_values.metrics,
        tokenize=flag_values.tokenize,
        lowercase=flag_values.lowercase,
    )
    if flag_values.format == "json":
        print(json.dumps([_as_json(score) for score in scores], indent=2, ensure_ascii=False))
    elif sys.stdout.isatty():
        _print_table(scores)
    else:
        for score in scores:
            print(score.system, score.metric, f"{score.result.score:.2f}", score.result.signature, sep="\t")
    return 0


def run(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    metrics: Sequence[str] = ("bleu", "chrf", "ter"),
    tokenize: str = "13a",
    lowercase: bool = False,
) -> list[Score]:
    """Score files of hypotheses ("-" is stdin) against one or more files of references, line N against line N.

    UserError for files that are missing, empty, not UTF-8 or of unequal length (naming both and their lengths), and for
    a metric that does not exist.
    """
    if not hypotheses:
        raise UserError("nmt-jax score needs a file of translations: nmt-jax score HYPOTHESIS --reference=FILE")
    if not references:
        raise UserError("nmt-jax score needs references: --reference=FILE (several for several references)")
    measures = [_metric(name, tokenize, lowercase) for name in metrics]
    reference_lines = {name: _read(name) for name in references}
    scores = []
    for system in hypotheses:
        lines = _read(system)
        for name, others in reference_lines.items():
            if len(lines) != len(others):
                raise UserError(
                    f"{system} has {len(lines)} lines but {name} has {len(others)}: line N belongs to line N, "
                    "an empty translation is an empty line"
                )
        grouped = list(zip(*reference_lines.values(), strict=True))
        for name, measure in zip(metrics, measures, strict=True):
            scores.append(Score(system, name, measure.higher_is_better, measure(lines, grouped)))
    return scores


def _metric(name: str, tokenize: str, lowercase: bool) -> Metric:
    """The metric of that name with the options that it has."""
    if name not in METRICS:
        raise UserError(f"--metrics: no metric {name!r}; there are {', '.join(METRICS)}")
    if name == "bleu":
        return METRICS[name](tokenize=tokenize, lowercase=lowercase)
    return METRICS[name]() if name == "ter" else METRICS[name](lowercase=lowercase)


def _read(name: str) -> list[str]:
    """All lines of a file, or of stdin for `-`."""
    if name != "-":
        return list(read_lines(pathlib.Path(name)))
    lines = list(decode_lines(sys.stdin.buffer, "stdin"))
    if not lines:
        raise UserError("stdin: nothing to score")
    return lines


def _as_json(score: Score) -> dict[str, Any]:
    """A score as plain data."""
    result = score.result
    parts = {name: part.tolist() if isinstance(part, np.ndarray) else part for name, part in result.parts.items()}
    return {
        "system": score.system,
        "metric": score.metric,
        "score": result.score,
        "signature": result.signature,
        "parts": parts,
    }


def _print_table(scores: Sequence[Score]) -> None:
    """Systems down, metrics across, the best of each column in bold; signatures below."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    by_metric: dict[str, list[Score]] = {}
    for score in scores:
        by_metric.setdefault(score.metric, []).append(score)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("system", overflow="fold")
    columns = []
    for name, column in by_metric.items():
        table.add_column(f"{name} {'↑' if column[0].higher_is_better else '↓'}", justify="right")
        values = [score.result.score for score in column]
        best = max(values) if column[0].higher_is_better else min(values)
        emphasis = "bold green" if len(values) > 1 else "bold"
        columns.append([f"[{emphasis}]{value:.2f}[/]" if value == best else f"{value:.2f}" for value in values])
    systems = [score.system for score in next(iter(by_metric.values()))]
    for system, *cells in zip(systems, *columns, strict=True):
        table.add_row(system.replace("[", r"\["), *cells)
    console.print(table)
    for name, column in by_metric.items():
        console.print(f"{name:<7}{column[0].result.signature}", style="dim", soft_wrap=True, markup=False)
