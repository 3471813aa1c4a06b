"""`nmt-jax score`: compares files of translations with reference files, by any of the metrics."""

import sys
from collections.abc import Sequence

from absl import flags

from metrics_jax.significance import SEED
from nmt_jax.commands import streams
from nmt_jax.commands.output import define_output_flags, open_output
from nmt_jax.commands.shared_flags import define_metric_flags, define_metrics_flag, metric_options, values
from nmt_jax.distributed.tables import ROWS
from nmt_jax.errors import UserError
from nmt_jax.reporting import score_table
from nmt_jax.reporting.system_scores import PAIRED, Inference, score_files
from nmt_jax.schema.number_flags import define_seed


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax score`."""
    help_text = "File of reference translations, one per line; repeat the flag for several references."
    flags.DEFINE_multi_string("reference", [], help_text, flag_values)
    help_text = "File of what was translated or simplified, one text per line, for metrics that read it: sari, comet …"
    flags.DEFINE_string("source", None, help_text, flag_values)
    help_text = (
        "File with the name of the document of each line: score documents instead of lines, joined by spaces (d-BLEU)."
    )
    flags.DEFINE_string("documents", None, help_text, flag_values)
    define_metrics_flag(flag_values, ["bleu", "chrf", "ter"])
    define_metric_flags(flag_values)
    help_text = "File of baselines to rescale bertscore with; nmt-jax calibrate --baseline writes it."
    flags.DEFINE_string("baseline", None, help_text, flag_values)
    help_text = "File of token frequencies, used to compute idf weights; nmt-jax calibrate --idf writes it."
    flags.DEFINE_string("idf", None, help_text, flag_values)
    flags.DEFINE_boolean("segments", False, "Write a score for every line instead of the whole file.", flag_values)
    flags.DEFINE_boolean("confidence", False, "Report 95 % bootstrap confidence intervals.", flag_values)
    help_text = (
        "Test the difference of every system from the first, and report intervals. randomisation is two-sided; "
        "bootstrap (Koehn, 2004) is one-sided and calls equal systems different too often."
    )
    flags.DEFINE_enum("paired", None, list(PAIRED), help_text, flag_values)
    define_seed(flag_values, SEED, "Random seed for resampling.")
    define_output_flags(flag_values)
    help_text = "Output format; text is a table on a terminal, else rows without a heading."
    flags.DEFINE_enum("format", "text", list(score_table.WRITERS), help_text, flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Print the table of scores."""
    if flag_values.segments and flag_values.format == "latex":
        raise UserError("--segments and --format=latex exclude each other: use --format=tsv")
    if flag_values.segments and flag_values.format != "json" and (flag_values.paired or flag_values.confidence):
        other = "paired" if flag_values.paired else "confidence"
        raise UserError(f"--segments and --{other} exclude each other: use --format=json, which holds both")
    resampled = bool(flag_values.paired or flag_values.confidence)
    streams.check_effect(flag_values, ("seed",), resampled, "without --confidence or --paired")
    more = filter(None, (flag_values.source, flag_values.documents))
    inputs = [*positional, *flag_values.reference, *more]
    with open_output("score", flag_values, inputs, ROWS, arguments=positional) as output:
        scores = score_files(
            positional,
            flag_values.reference,
            inference=Inference(flag_values.confidence, flag_values.paired, flag_values.seed),
            shared=output.shared,
            **values(flag_values, "source", "documents", "metrics", "baseline", "idf"),
            **metric_options(flag_values),
        )
        if scores is None:
            return 0
        output.write_text(score_table.WRITERS[flag_values.format](scores, flag_values.segments))
    if flag_values.segments and any("|effective_order:false|" in score.result.signature for score in scores):
        print(
            "nmt-jax: BLEU is 0 for a line of fewer than four words; --metrics='bleu|effective_order:true' leaves out "
            "the n-grams that are longer than the line",
            file=sys.stderr,
        )
    return 0
