"""`nmt-jax mbr`: reads candidates for each line, writes the one with the highest expected utility."""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from absl import flags

from nmt_jax.commands import streams
from nmt_jax.commands.output import define_output_flags, open_output
from nmt_jax.commands.shared_flags import define_metric_flags, metric_options, values
from nmt_jax.data.lines import read_lines
from nmt_jax.decoding.minimum_bayes_risk import METHODS, WEIGHTS, Choice
from nmt_jax.errors import UserError
from nmt_jax.pretrained.metrics import NO_EFFECT
from nmt_jax.schema.number_flags import define_float, define_integer, define_seed
from nmt_jax.translation.candidates import Candidates, beside, read_candidates
from nmt_jax.translation.reranking import CHUNK, EVALUATED, Gains, Pair, choose_texts, make_decision, paired


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax mbr`."""
    streams.define_input_flag(flag_values, ": candidates as nmt-jax translate --nbest=N writes them, text or json")
    define_output_flags(flag_values)
    help_text = "File of pseudo-references for the same lines, in the same format; default: the candidates."
    flags.DEFINE_string("references", None, help_text, flag_values)
    help_text = "File whose line N was translated, for metrics that read it."
    flags.DEFINE_string("source", None, help_text, flag_values)
    help_text = "Metrics to optimize, with optional weights: chrf@2,bleu@1 gives chrf twice the weight of bleu."
    flags.DEFINE_list("utility", ["chrf"], help_text, flag_values)
    help_text = f"Metric for the report on stderr, not one of those optimized; default: {EVALUATED[0]}, or chrf."
    flags.DEFINE_string("evaluate", None, help_text, flag_values)
    help_text = "Comparisons: exact, all pairs; aggregate, one with all references first; prune, some references first."
    flags.DEFINE_enum("method", "exact", METHODS, help_text, flag_values)
    help_text = "With aggregate: number of candidates that are compared with every pseudo-reference."
    define_integer(flag_values, "finalists", 1, help_text, low=1)
    help_text = "With prune: required probability that a dropped candidate is not the best."
    define_float(flag_values, "confidence", 0.99, help_text, above=0, below=1)
    help_text = "Weights of the pseudo-references: uniform for samples, probability for n-best lists with scores."
    flags.DEFINE_enum("weights", "uniform", WEIGHTS, help_text, flag_values)
    help_text = "With probability: softmax temperature of the weights; above 1 makes them more equal."
    define_float(flag_values, "temperature", 1.0, help_text, above=0)
    help_text = "With prune: random seed for the order of the pseudo-references."
    define_seed(flag_values, 0, help_text)
    help_text = "Output format; json writes one object per line, with expected utilities."
    flags.DEFINE_enum("format", "text", ["text", "json"], help_text, flag_values)
    define_metric_flags(flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Write the chosen text of each line, and the gain in utility on stderr."""
    streams.check_no_arguments("mbr", positional)
    method, weights = flag_values.method, flag_values.weights
    streams.check_effect(flag_values, ("finalists",), method == "aggregate", "without --method=aggregate")
    streams.check_effect(flag_values, ("confidence", "seed"), method == "prune", "without --method=prune")
    streams.check_effect(flag_values, ("temperature",), weights == "probability", "without --weights=probability")
    settings = values(flag_values, "method", "weights", "temperature", "finalists", "confidence", "seed")
    options = {**metric_options(flag_values), "sources": flag_values.source is not None}
    decide, evaluated = make_decision(flag_values.utility, flag_values.evaluate, options, **settings)
    if flag_values.source is not None and not decide.reads_sources:
        raise UserError(NO_EFFECT)
    gains = Gains(evaluated)
    inputs = [flag_values.input, *filter(None, (flag_values.references, flag_values.source))]
    with open_output("mbr", flag_values, inputs, CHUNK) as output:

        def answer(first: int, group: Sequence[Pair]) -> Iterator[bytes]:
            choices = choose_texts(decide, group, flag_values.input or "stdin", first)
            return streams.encoded(_rows(choices, gains, flag_values.format == "json", first))

        pairs = paired(_open(flag_values.input), flag_values.references and _open(flag_values.references))
        if name := flag_values.source:
            beside_sources = beside(pairs, flag_values.input or "stdin", read_lines(name), name)
            pairs = (pair._replace(source=source) for source, pair in beside_sources)
        summaries = output.write(not_empty(pairs, flag_values.input), answer, "lines", summarize=gains.take)
    if summaries:
        print(gains.report(summaries), file=sys.stderr)
    return 0


def not_empty(pairs: Iterator[Pair], name: str | None) -> Iterator[Pair]:
    """Yield the pairs; raises UserError if there are none."""
    first = next(pairs, None)
    if first is None:
        raise UserError(f"{name or 'stdin'}: no candidates")
    yield first
    yield from pairs


def _open(path: str | None) -> Iterator[Candidates]:
    """Open the candidates of a file, or of stdin if None."""
    return read_candidates(streams.open_lines(path), path or "stdin")


def _rows(choices: Iterator[tuple[str, Choice]], gains: Gains, as_json: bool, first: int) -> Iterator[str]:
    """Yield the output for each choice, which is added to the gains; first: number of lines before."""
    for number, (text, choice) in enumerate(choices, start=first + 1):
        line = " ".join(text.split("\n"))
        yield streams.json_row(line=number, text=line, **_fields(choice)) if as_json else line
        gains.add(choice)


def _fields(choice: Choice) -> dict[str, Any]:
    """Return a choice as fields of JSON; an unknown utility is null."""
    return {
        "index": choice.index,
        "utility": round(choice.chosen.utility, 6),
        "evaluated": round(choice.chosen.evaluated, 6),
        "first": {"utility": round(choice.first.utility, 6), "evaluated": round(choice.first.evaluated, 6)},
        "utilities": [None if np.isnan(one) else round(one, 6) for one in choice.utilities.tolist()],
    }
