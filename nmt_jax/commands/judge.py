"""`nmt-jax judge`: measures how well metrics agree with human judgements."""

import pathlib
from collections.abc import Sequence

from absl import flags

from metrics_jax.judging.agreement import LEVELS
from metrics_jax.judging.coefficient import NAMES
from metrics_jax.judging.judgements import GROUPINGS
from metrics_jax.significance import SEED
from nmt_jax.commands import streams
from nmt_jax.commands.output import define_output_flags, open_output
from nmt_jax.commands.shared_flags import define_metric_flags, define_metrics_flag, metric_options, values
from nmt_jax.data.readers.judgements import Columns
from nmt_jax.distributed.tables import ROWS
from nmt_jax.errors import UserError
from nmt_jax.judging import agreement_table
from nmt_jax.judging.evaluation import TESTS, Inference, evaluate_metrics
from nmt_jax.judging.judgement_files import Protocol
from nmt_jax.schema.number_flags import define_integer, define_seed
from nmt_jax.storage.paths import local_path_of


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax judge`."""
    define_metrics_flag(flag_values, ["bleu|effective_order:true", "chrf", "ter"])
    help_text = "Existing scores: a COLUMN, or NAME=FILE with a score per line; -COLUMN if lower is better."
    flags.DEFINE_multi_string("scores", [], help_text, flag_values)
    help_text = "Columns of human judgements, each evaluated separately; -COLUMN if lower is better, such as ranks."
    flags.DEFINE_list("human", [], help_text, flag_values)
    flags.DEFINE_string("hypothesis", "hypothesis", "Column of the judged text.", flag_values)
    help_text = "Columns of reference texts; in JSONL also lists of texts."
    flags.DEFINE_list("reference", ["reference"], help_text, flag_values)
    flags.DEFINE_string("source", "", "Column of what was translated, for metrics that read it.", flag_values)
    flags.DEFINE_string("system", "", "Column of the system that wrote the text.", flag_values)
    flags.DEFINE_string("item", "", "Column of the source segment, document or topic of the text.", flag_values)
    flags.DEFINE_string("outputs", "", "JSONL: field with a list of judged texts, one object each.", flag_values)
    help_text = "Pairwise rankings: column of the text that was judged worse than --hypothesis."
    flags.DEFINE_string("worse", "", help_text, flag_values)
    help_text = "File of human scores of whole systems; default: NAME.sys.tsv beside NAME.seg.tsv."
    flags.DEFINE_string("system_scores", "", help_text, flag_values)
    flags.DEFINE_list("correlation", ["pearson", "kendall"], f"Coefficients: any of {', '.join(NAMES)}.", flag_values)
    help_text = "What to correlate: scores of texts, or of systems, which needs --system."
    flags.DEFINE_enum("level", "segment", list(LEVELS), help_text, flag_values)
    help_text = "Texts that are compared with each other: all, those of one item, or those of one system."
    flags.DEFINE_enum("grouping", "none", list(GROUPINGS), help_text, flag_values)
    help_text = "Keep outlier systems; with --level=system, --nooutliers drops those far from the median, as WMT does."
    flags.DEFINE_boolean("outliers", True, help_text, flag_values)
    flags.DEFINE_boolean("average", False, "Report the mean of the coefficients of all files of a folder.", flag_values)
    flags.DEFINE_boolean("confidence", False, "Report 95 % bootstrap confidence intervals.", flag_values)
    help_text = "Test the difference of every pair of metrics, and rank them in clusters."
    flags.DEFINE_enum("significance", None, list(TESTS), help_text, flag_values)
    help_text = "Number of permutations and of bootstrap samples."
    define_integer(flag_values, "trials", 1000, help_text, low=1, high=1_000_000)
    define_seed(flag_values, SEED, "Random seed for both.")
    flags.DEFINE_string("plots", None, "Folder for figures: scores against judgements, and rankings.", flag_values)
    help_text = "Output format; text is a table on a terminal, else rows without a heading."
    flags.DEFINE_enum("format", "text", list(agreement_table.WRITERS), help_text, flag_values)
    define_metric_flags(flag_values)
    define_output_flags(flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Print the table of coefficients."""
    columns = Columns(
        **values(flag_values, "hypothesis", "source", "system", "item", "outputs", "worse"),
        reference=tuple(flag_values.reference),
        human=tuple(flag_values.human),
    )
    resampled = bool(flag_values.confidence or flag_values.significance)
    streams.check_effect(flag_values, ("trials", "seed"), resampled, "without --confidence or --significance")
    folder = _make_folder(flag_values.plots) if flag_values.plots is not None else None
    with open_output("judge", flag_values, [], ROWS, arguments=positional) as output:
        evaluation = evaluate_metrics(
            positional,
            columns,
            Protocol(tuple(flag_values.correlation), **values(flag_values, "level", "grouping", "outliers")),
            **values(flag_values, "metrics", "scores", "system_scores", "average"),
            inference=Inference(**values(flag_values, "confidence", "significance", "trials", "seed")),
            shared=output.shared,
            **metric_options(flag_values),
        )
        if evaluation is None:
            return 0
        if folder:
            from nmt_jax.reporting.plots.judged import save_figures

            save_figures(evaluation, folder)
        output.write_text(agreement_table.WRITERS[flag_values.format](evaluation.columns))
    return 0


def _make_folder(path: str) -> pathlib.Path:
    """Create a folder; raises UserError if that fails."""
    try:
        local_path_of(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--plots={path}: cannot create the folder: {error.strerror}") from None
    return local_path_of(path)
