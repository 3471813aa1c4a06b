"""`nmt-jax report`: a run or a sweep as one HTML page."""

from collections.abc import Sequence

from absl import flags

from nmt_jax.commands import streams
from nmt_jax.commands.shared_flags import values
from nmt_jax.errors import UserError
from nmt_jax.reporting.report import write_report
from nmt_jax.schema.number_flags import define_integer
from nmt_jax.storage.paths import local_path_of


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax report`."""
    streams.define_workdir_flag(flag_values, "a run or a sweep")
    flags.DEFINE_string("output", None, "File to write; default: WORKDIR/report.html.", flag_values)
    streams.define_overwrite_flag(flag_values, "WORKDIR/report.html")
    help_text = "Config file, FILE.py[:ARGUMENT]; keys that differ from it are shown first."
    flags.DEFINE_string("config", None, help_text, flag_values)
    flags.DEFINE_string("source", None, "Source text to translate instead of the dev set.", flag_values)
    flags.DEFINE_string("reference", None, "Reference translation of --source.", flag_values)
    help_text = "Maximum number of lines to translate; 0: all."
    define_integer(flag_values, "lines", 500, help_text, low=0)
    help_text = "Number of translations to show of each group: best, median, worst."
    define_integer(flag_values, "samples", 3, help_text, low=0)
    help_text = "Sweep: measure to compare the runs by, dev/bleu or another key of metrics.jsonl."
    flags.DEFINE_string("measure", None, help_text, flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Write the report and print its path."""
    streams.check_no_arguments("report", positional, "--workdir=FOLDER")
    workdir = streams.required_workdir("report", flag_values, "a run or a sweep")
    if bool(flag_values.source) != bool(flag_values.reference):
        raise UserError("--source and --reference must be given together")
    if flag_values.output:
        streams.check_new(flag_values, flag_values.output)
    output = write_report(
        workdir,
        output=local_path_of(flag_values.output) if flag_values.output else None,
        config_file=flag_values.config,
        texts=(flag_values.source, flag_values.reference) if flag_values.source else None,
        **values(flag_values, "lines", "samples", "measure"),
    )
    print(output)
    return 0
