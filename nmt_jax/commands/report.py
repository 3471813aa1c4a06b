"""`nmt-jax report`: a run or a sweep as one HTML page."""

import pathlib
from collections.abc import Sequence
from typing import Any

from absl import flags

from nmt_jax.errors import UserError
from nmt_jax.reporting.report import write_report


def define_flags(flag_values: flags.FlagValues) -> None:
    """Defines the flags of `nmt-jax report`."""
    options: dict[str, Any] = {"flag_values": flag_values}
    flags.DEFINE_string("workdir", None, "Folder of a run or a sweep.", **options)
    flags.DEFINE_string("output", None, "File to write; default: WORKDIR/report.html.", **options)
    flags.DEFINE_string(
        "config", None, "Config file, FILE.py[:ARGUMENT]; keys that differ from it are shown first.", **options
    )
    flags.DEFINE_string("source", None, "Source text to translate instead of the dev set.", **options)
    flags.DEFINE_string("reference", None, "Reference translation of --source.", **options)
    flags.DEFINE_integer("lines", 500, "Maximum number of lines to translate; 0: all.", lower_bound=0, **options)
    flags.DEFINE_integer(
        "samples", 3, "Number of translations to show of each group: best, median, worst.", lower_bound=0, **options
    )
    flags.DEFINE_string(
        "measure", None, "Sweep: measure to compare the runs by, dev/bleu or another key of metrics.jsonl.", **options
    )


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Writes the report and prints its path."""
    if positional:
        raise UserError(f"nmt-jax report: unexpected argument {positional[0]!r}; use --workdir=FOLDER")
    if not flag_values.workdir:
        raise UserError("nmt-jax report needs --workdir=FOLDER of a run or a sweep")
    if bool(flag_values.source) != bool(flag_values.reference):
        raise UserError("--source and --reference must be given together")
    output = write_report(
        flag_values.workdir,
        output=pathlib.Path(flag_values.output) if flag_values.output else None,
        config_file=flag_values.config,
        texts=(flag_values.source, flag_values.reference) if flag_values.source else None,
        lines=flag_values.lines,
        samples=flag_values.samples,
        measure=flag_values.measure,
    )
    print(output)
    return 0
