"""`nmt-jax pyramid`: scores summaries by pyramids of content units that people annotated."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from absl import flags

from metrics_jax.judging.pyramid import parse_pyramid
from nmt_jax.data.lines import read_lines
from nmt_jax.errors import UserError

Row = dict[str, Any]
SCORES = ("original", "modified")


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax pyramid`."""
    help_text = "Print the mean scores of the summaries with the same name, such as those of a system in all files."
    flags.DEFINE_boolean("average", False, help_text, flag_values)
    help_text = "Output format: rows without a heading (text) or with one (tsv), a list of objects (json)."
    flags.DEFINE_enum("format", "text", list(WRITERS), help_text, flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Print the original and the modified score of every summary of every file, or their means."""
    if not positional:
        raise UserError("nmt-jax pyramid needs files of pyramids with annotated summaries: nmt-jax pyramid FILE …")
    rows = [row for path in positional for row in run(path)]
    print(WRITERS[flag_values.format](average(rows) if flag_values.average else rows))
    return 0


def run(path: str) -> list[Row]:
    """The scores of the summaries of a file. Raises UserError `FILE: …` or `FILE:LINE: …` if it has none."""
    try:
        pyramid, summaries = parse_pyramid("\n".join(read_lines(path)), path.removesuffix(".gz"))
    except ValueError as error:
        raise UserError(str(error)) from None
    if not summaries:
        raise UserError(f'{path}: a pyramid without annotated summaries: add "summaries", or name .pan files')
    return [
        {"file": path, "summary": name, "original": pyramid.original(one), "modified": pyramid.modified(one)}
        for name, one in summaries.items()
    ]


def average(rows: Sequence[Row]) -> list[Row]:
    """The number of files and the mean scores of each name of a summary, best original score first."""
    by_name: dict[str, list[Row]] = {}
    for row in rows:
        by_name.setdefault(row["summary"], []).append(row)
    means = [
        {"summary": name, "files": len(found)}
        | {score: sum(row[score] for row in found) / len(found) for score in SCORES}
        for name, found in by_name.items()
    ]
    return sorted(means, key=lambda row: -row["original"])


def _write_rows(rows: Sequence[Row]) -> str:
    cells = ([f"{value:.6f}" if isinstance(value, float) else str(value) for value in row.values()] for row in rows)
    return "\n".join(map("\t".join, cells))


def _write_tsv(rows: Sequence[Row]) -> str:
    return "\n".join(["\t".join(rows[0]), _write_rows(rows)])


def _write_json(rows: Sequence[Row]) -> str:
    return json.dumps(rows, indent=2, ensure_ascii=False)


WRITERS: dict[str, Callable[[Sequence[Row]], str]] = {"text": _write_rows, "tsv": _write_tsv, "json": _write_json}
