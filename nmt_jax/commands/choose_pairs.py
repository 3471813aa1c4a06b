"""`nmt-jax choose_pairs`: chooses pairs of texts for people to compare, on which two metrics disagree."""

import sys
from collections.abc import Sequence

from absl import flags

from nmt_jax.commands import streams
from nmt_jax.commands.shared_flags import define_metric_flags, define_metrics_flag, metric_options, values
from nmt_jax.data.readers.judgements import Columns
from nmt_jax.errors import UserError
from nmt_jax.judging.pair_choice import Study, describe, disagreements, read_choices, rows_to_judge, score_texts
from nmt_jax.schema.number_flags import define_float, define_integer, define_seed


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax choose_pairs`."""
    define_metrics_flag(flag_values, [])
    help_text = "Existing scores: a COLUMN, or NAME=FILE with a score per line; -COLUMN if lower is better."
    flags.DEFINE_multi_string("scores", [], help_text, flag_values)
    flags.DEFINE_string("hypothesis", "hypothesis", "Column of the text.", flag_values)
    flags.DEFINE_string(
        "reference", "reference", "Column of the reference, or of what people compare with.", flag_values
    )
    flags.DEFINE_string("source", "", "Column of what was translated, for metrics that read it.", flag_values)
    flags.DEFINE_string("system", "system", "Column of the system that wrote the text.", flag_values)
    flags.DEFINE_string("item", "item", "Column of the source segment of the text.", flag_values)
    help_text = "Number of pairs to choose; default: as many as find --difference with probability --power."
    define_integer(flag_values, "pairs", None, help_text, low=1, high=100_000)
    help_text = "Difference between the accuracies of the metrics, over all pairs of texts, that the study should find."
    define_float(flag_values, "difference", Study.difference, help_text, above=0, high=1)
    help_text = "Probability of finding it: power of the sign test."
    define_float(flag_values, "power", Study.power, help_text, low=0.5, below=1)
    define_float(flag_values, "alpha", Study.alpha, "Significance level of the test.", above=0, high=0.2)
    define_seed(flag_values, 0, "Random seed for the order of the pairs and of their two texts.")
    help_text = (
        "Test the metrics by this file instead: a table that this verb printed, with choices left, right or tie."
    )
    flags.DEFINE_string("choices", None, help_text, flag_values)
    define_metric_flags(flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Print the pairs to judge, and their number and power on stderr; or the wins of each metric and the p-value."""
    if flag_values.choices is not None:
        given = [name for name in flag_values if flag_values[name].present and name not in ("choices", "verbose")]
        streams.check_effect(flag_values, given, False, "with --choices")
        if positional:
            raise UserError(f"nmt-jax choose_pairs: {positional[0]} is not read with --choices")
        verdict = read_choices(flag_values.choices)
        for name, wins in verdict.wins.items():
            print(name, wins, sep="\t")
        print("tie", verdict.ties, sep="\t")
        print("p", f"{verdict.p_value:.6f}", sep="\t")
        return 0
    if len(positional) != 1:
        raise UserError("nmt-jax choose_pairs needs one file of texts: nmt-jax choose_pairs FILE --metrics=A,B")
    if not (flag_values.system and flag_values.item):
        raise UserError("nmt-jax choose_pairs needs --system=COLUMN and --item=COLUMN")
    columns = Columns(
        reference=(flag_values.reference,), **values(flag_values, "hypothesis", "source", "system", "item")
    )
    lists = values(flag_values, "metrics", "scores")
    judged, scores = score_texts(positional[0], columns, **lists, options=metric_options(flag_values))
    pairs = disagreements(judged, scores)
    study = Study(**values(flag_values, "difference", "power", "alpha"))
    count = flag_values.pairs or study.size(pairs.rate)
    rows = rows_to_judge(judged, list(scores), pairs, count, flag_values.seed)
    print(*map("\t".join, rows), sep="\n")
    print(f"nmt-jax: {describe(pairs, study, count, len(rows) - 1)}", file=sys.stderr)
    if len(rows) - 1 < count:
        print(f"nmt-jax: warning: {count:,} pairs are needed, but there are only {len(rows) - 1:,}", file=sys.stderr)
    return 0
