"""`nmt-jax annotations`: scores systems by annotations of people, and measures how well the raters agree."""

import sys
from collections.abc import Mapping, Sequence

from absl import flags

from metrics_jax.judging.error_weights import WEIGHTS
from metrics_jax.judging.ratings import AGREEMENT, Ratings
from nmt_jax.commands import streams
from nmt_jax.commands.shared_flags import values
from nmt_jax.data.readers.annotations import KINDS, AnnotationColumns, read_annotations
from nmt_jax.errors import UserError
from nmt_jax.judging import annotation_table
from nmt_jax.judging.annotated import judgement_rows, make_ratings, parse_weights, standardize
from nmt_jax.storage.files import whole_file
from nmt_jax.storage.paths import path_of

COEFFICIENT = "alpha_interval"


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax annotations`."""
    help_text = (
        "What the file holds: mqm, a row per error with category and severity; esa, a row per rater and text with "
        "esa_score and esa_spans; scores, a row per rater and text with --score."
    )
    flags.DEFINE_enum("kind", "mqm", list(KINDS), help_text, flag_values)
    default = ", ".join(f"{key}={weight:g}" for key, weight in WEIGHTS.items())
    help_text = f"Weights of errors that differ from the defaults of WMT, or are missing there: {default}."
    flags.DEFINE_list("weights", [], help_text, flag_values)
    columns = AnnotationColumns()
    help_text = "Columns of scores, with --kind=scores several; -COLUMN if lower is better, such as ranks."
    flags.DEFINE_list("score", list(columns.scores), help_text, flag_values)
    help_text = "Column of the system that wrote the text; of A|B, the first that the file has."
    flags.DEFINE_string("system", columns.system, help_text, flag_values)
    help_text = "Column of the segment that it was written for; A+B joins two, such as doc+seg_id."
    flags.DEFINE_string("item", columns.item, help_text, flag_values)
    flags.DEFINE_string("rater", columns.rater, "Column of the rater.", flag_values)
    flags.DEFINE_string("hypothesis", columns.hypothesis, "Column of the text.", flag_values)
    flags.DEFINE_string("source", columns.source, "Column of its source.", flag_values)
    help_text = "Use only the rows with this value in this column: COLUMN=VALUE."
    flags.DEFINE_multi_string("select", [], help_text, flag_values)
    help_text = "Standardize the scores of each rater: subtract their mean, divide by their standard deviation."
    flags.DEFINE_boolean("z_scores", False, help_text, flag_values)
    help_text = f"Agreement of the raters: any of {', '.join(AGREEMENT)}."
    flags.DEFINE_list("agreement", [COEFFICIENT], help_text, flag_values)
    help_text = "Write the mean score of each text to this file, FILE.tsv, for nmt-jax judge."
    flags.DEFINE_string("judgements", None, help_text, flag_values)
    help_text = "System whose texts are references, such as ref-A: a column of --judgements, not rows."
    flags.DEFINE_string("reference", None, help_text, flag_values)
    streams.define_overwrite_flag(flag_values)
    help_text = "Output format; text: rows of systems, an empty line, rows of agreement."
    flags.DEFINE_enum("format", "text", list(annotation_table.WRITERS), help_text, flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Print the scores of the systems and the agreement of the raters; write the scores of the texts."""
    if len(positional) != 1:
        raise UserError("nmt-jax annotations needs one file: nmt-jax annotations FILE --kind=mqm|esa|scores")
    kind, judgements = flag_values.kind, flag_values.judgements
    streams.check_effect(flag_values, ["weights"], kind != "scores", "with --kind=scores")
    streams.check_effect(flag_values, ["score"], kind != "mqm", "with --kind=mqm")
    streams.check_effect(flag_values, ["reference", "overwrite"], judgements is not None, "without --judgements")
    if not flag_values.score:
        raise UserError(f"--kind={kind} needs --score=COLUMN")
    if kind == "esa" and (len(flag_values.score) > 1 or flag_values.score[0].startswith("-")):
        raise UserError("--score: --kind=esa has one score, from 0 to 100, where higher is better")
    if unknown := [name for name in flag_values.agreement if name not in AGREEMENT]:
        raise UserError(f"--agreement={unknown[0]}: choose from {', '.join(AGREEMENT)}")
    if judgements is not None:
        if not judgements.endswith(".tsv"):
            raise UserError(f"--judgements={judgements}: the name must end in .tsv")
        streams.check_new(flag_values, judgements)
    weights = parse_weights(flag_values.weights)
    named = values(flag_values, "system", "item", "rater", "hypothesis", "source")
    columns = AnnotationColumns(**named, scores=tuple(flag_values.score))
    annotations = read_annotations(positional[0], kind, columns, _selection(flag_values.select))
    ratings = make_ratings(annotations, kind, weights)
    if flag_values.z_scores:
        ratings = standardize(ratings)
    agreement = _agreement(ratings, flag_values.agreement, flag_values["agreement"].present > 0)
    if judgements is not None:
        rows = judgement_rows(annotations, ratings, flag_values.reference)
        with whole_file(path_of(judgements)) as file:
            file.write("".join("\t".join(row) + "\n" for row in rows).encode())
    print(annotation_table.WRITERS[flag_values.format](ratings, agreement))
    return 0


def _selection(options: Sequence[str]) -> dict[str, str]:
    """The options COLUMN=VALUE as a mapping."""
    for option in options:
        if not option.partition("=")[0] or "=" not in option:
            raise UserError(f"--select={option}: must be COLUMN=VALUE")
    return {name: value for name, _, value in (option.partition("=") for option in options)}


def _agreement(ratings: Mapping[str, Ratings], names: Sequence[str], requested: bool) -> dict[str, dict[str, float]]:
    """The coefficients of each column of ratings; NaN where all ratings are equal.

    If no text has two ratings, or another condition of a coefficient is not met, this is an error if the coefficients
    were requested; otherwise there are none, and a note on stderr.
    """
    if not names:
        return {}
    try:
        return {column: {name: AGREEMENT[name](one) for name in names} for column, one in ratings.items()}
    except ValueError as error:
        if requested:
            raise UserError(f"--agreement={','.join(names)}: {error}") from None
        print(f"nmt-jax: no agreement of raters: {error}", file=sys.stderr)
        return {}
