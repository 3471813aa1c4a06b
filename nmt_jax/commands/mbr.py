"""`nmt-jax mbr`: of many candidates for each line the one that metrics expect to be best, on stdout."""

import itertools
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from absl import flags

from nmt_jax.data.lines import chunks, decode_lines, read_lines
from nmt_jax.decoding.minimum_bayes_risk import METHODS, WEIGHTS, Choice, MinimumBayesRisk, Utility
from nmt_jax.errors import UserError
from nmt_jax.pretrained.metrics import define_metric_flags, metric_options, open_metric
from nmt_jax.progress import track

EVALUATED = ("bleu|effective_order:true", "chrf", "ter")  # the first that is not optimised
CHUNK = 16  # lines whose candidates are read together


class Candidates(NamedTuple):
    """Those of one line; NaN for a score that is not given."""

    texts: list[str]
    scores: list[float]


def define_flags(flag_values: flags.FlagValues) -> None:
    """The flags of `nmt-jax mbr`."""
    given: dict[str, Any] = {"flag_values": flag_values}
    flags.DEFINE_string(
        "input",
        None,
        "Candidates as `nmt-jax translate --nbest=N` writes them, text or json; stdin if not given.",
        **given,
    )
    flags.DEFINE_string(
        "references",
        None,
        "Pseudo-references of the same lines, in the same form; the candidates if not given.",
        **given,
    )
    flags.DEFINE_list(
        "utility",
        ["chrf"],
        "Metrics to expect the best of; several are mixed: chrf@2,bleu@1 weighs chrf twice.",
        **given,
    )
    flags.DEFINE_string(
        "evaluate",
        None,
        f"A metric that is not optimised, for the report; {EVALUATED[0]} if not given, or chrf.",
        **given,
    )
    flags.DEFINE_enum("method", "exact", METHODS, "Compare all pairs, one aggregate, or prune candidates.", **given)
    flags.DEFINE_integer(
        "finalists", 1, "With aggregate: so many are compared with every pseudo-reference.", lower_bound=1, **given
    )
    flags.DEFINE_float("confidence", 0.99, "With prune: how sure to be that what is dropped is not best.", **given)
    flags.DEFINE_enum("weights", "uniform", WEIGHTS, "Of pseudo-references: samples alike, n-best by score.", **given)
    flags.DEFINE_float("temperature", 1.0, "With probability: above 1 they weigh more alike.", **given)
    flags.DEFINE_integer("seed", 0, "With prune: which pseudo-references come first.", lower_bound=0, **given)
    flags.DEFINE_enum("format", "text", ["text", "json"], "json: one object a line, with what is expected.", **given)
    define_metric_flags(flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Flags in, a line for each list of candidates out, and what it gained on stderr."""
    if positional:
        raise UserError(f"nmt-jax mbr reads stdin: … < {positional[0]}, or --input={positional[0]}")
    decide, spec = make_decision(
        flag_values.utility,
        flag_values.evaluate,
        metric_options(flag_values),
        method=flag_values.method,
        weights=flag_values.weights,
        temperature=flag_values.temperature,
        finalists=flag_values.finalists,
        confidence=flag_values.confidence,
        seed=flag_values.seed,
    )
    results = run(decide, _open(flag_values.input), _open(flag_values.references) if flag_values.references else None)
    gains = Gains(spec)
    for number, (text, choice) in enumerate(track(results, "decided"), start=1):
        line = " ".join(text.split("\n"))
        if flag_values.format == "json":
            line = json.dumps({"line": number, "text": line, **_row(choice)}, ensure_ascii=False)
        sys.stdout.buffer.write(line.encode() + b"\n")
        sys.stdout.buffer.flush()
        gains.add(choice)
    if not gains.num_lines:
        raise UserError(f"{flag_values.input or 'stdin'}: no candidates")
    print(gains, file=sys.stderr)
    return 0


class Gains:
    """What was gained over all lines, the metric that was not optimised among it."""

    def __init__(self, evaluated: str) -> None:
        self.evaluated = evaluated
        self.num_lines = 0
        self.totals = np.zeros((2, 2))

    def add(self, choice: Choice) -> None:
        """One line more."""
        self.num_lines += 1
        self.totals += [choice.chosen, choice.first]

    def __str__(self) -> str:
        (utility, other), (first_utility, first_other) = (self.totals / max(self.num_lines, 1)).tolist()
        return (
            f"nmt-jax: {self.num_lines} lines: expected utility {utility:.4f}, of the first candidates "
            f"{first_utility:.4f}; {self.evaluated}, not optimised, {other:.4g}, of the first candidates "
            f"{first_other:.4g}"
        )


def make_decision(
    items: Sequence[str], evaluate: str | None, options: dict[str, Any], **how: Any
) -> tuple[MinimumBayesRisk, str]:
    """Utilities as `SPEC` or `SPEC@WEIGHT`, with what metrics read -> what decides, and by what it is evaluated.

    evaluate: a metric, or None for the first of EVALUATED that is not optimised. how: options of `MinimumBayesRisk`.
    """
    utilities = tuple(_utility(item, options) for item in items)
    names = {utility.metric.name for utility in utilities}
    spec = evaluate or next((one for one in EVALUATED if one.partition("|")[0] not in names), "")
    if not spec:
        raise UserError("--evaluate=METRIC: name one that is not optimised, such as meteor15 or rougeL")
    return MinimumBayesRisk(utilities, open_metric(spec, **options), **how), spec


def run(
    decide: MinimumBayesRisk, candidates: Iterable[Candidates], references: Iterable[Candidates] | None = None
) -> Iterator[tuple[str, Choice]]:
    """The text chosen for each line, and why, while lines come in.

    UserError for pseudo-references of fewer or more lines, for weights="probability" without scores, and for what a
    metric cannot do.
    """
    paired = zip(candidates, itertools.repeat(None)) if references is None else _together(candidates, references)
    number = 0
    for group in chunks(paired, CHUNK):
        texts = [own.texts for own, _ in group]
        weighed = [other or own for own, other in group]
        if decide.weights == "probability":
            for line, (_, scores) in enumerate(weighed, start=number + 1):
                if np.isnan(scores).any():
                    raise UserError(f"line {line}: --weights=probability needs a score for every candidate")
        try:
            choices = decide(texts, [one.scores for one in weighed], [one.texts for one in weighed])
        except (ValueError, MemoryError) as error:  # what a metric or its model says of a text
            raise UserError(f"--utility: {error}") from error
        yield from ((own[choice.index], choice) for own, choice in zip(texts, choices, strict=True))
        number += len(group)


def read_candidates(lines: Iterable[str], name: str) -> Iterator[Candidates]:
    """Rows LINE, SCORE, TEXT, parted by tabs, or JSON objects with "line" and "hypotheses" -> those of each line.

    UserError `name:LINE` for a row that is neither, and for lines that are not 1, 2, 3 ...: that of the output would
    not be that of the source.
    """
    expected = 1
    for line, group in itertools.groupby(_rows(lines, name), key=lambda row: row.line):
        rows = list(group)
        where = f"{name}:{rows[0].number}"
        if line != expected:
            raise UserError(f"{where}: line {line} where candidates of line {expected} must come: sort them, omit none")
        texts = [text for row in rows for text in row.texts]
        if not texts:
            raise UserError(f"{where}: no candidates for line {line}")
        yield Candidates(texts, [score for row in rows for score in row.scores])
        expected += 1


class _Row(NamedTuple):
    """A row of the input by its number, the line it belongs to, and what it holds."""

    number: int
    line: int
    texts: list[str]
    scores: list[float]


def _rows(lines: Iterable[str], name: str) -> Iterator[_Row]:
    """What the rows say."""
    for number, text in enumerate(lines, start=1):
        try:
            if text.startswith("{"):
                entry = json.loads(text)
                found = entry["hypotheses"]
                texts, scores = [one["text"] for one in found], [float(one.get("score", np.nan)) for one in found]
                if not all(isinstance(one, str) for one in texts):
                    raise ValueError
                row = _Row(number, int(entry["line"]), texts, scores)
            else:
                line, score, single = text.split("\t", 2)
                row = _Row(number, int(line), [single], [float(score)])
        except (ValueError, KeyError, TypeError, AttributeError):
            raise UserError(
                f"{name}:{number}: neither LINE, SCORE and TEXT with tabs between nor a JSON object with line and "
                "hypotheses: nmt-jax translate --nbest=N writes both"
            ) from None
        yield row


def _open(name: str | None) -> Iterator[Candidates]:
    """The candidates of a file, or of stdin for None."""
    return read_candidates(read_lines(name) if name else decode_lines(sys.stdin.buffer, "stdin"), name or "stdin")


def _together(
    candidates: Iterable[Candidates], references: Iterable[Candidates]
) -> Iterator[tuple[Candidates, Candidates]]:
    """Line N with line N; UserError where one of them ends first."""
    for number, (own, other) in enumerate(itertools.zip_longest(candidates, references), start=1):
        if own is None or other is None:
            raise UserError(
                f"--references: they have {'no' if other is None else 'a'} line {number}, the candidates not so"
            )
        yield own, other


def _utility(item: str, options: dict[str, Any]) -> Utility:
    """`SPEC` or `SPEC@WEIGHT`."""
    spec, at, weight = item.partition("@")
    try:
        return Utility(open_metric(spec, **options), float(weight) if at else 1.0)
    except ValueError:
        raise UserError(f"--utility={item}: {weight!r} is no weight: {spec}@2 weighs it twice") from None


def _row(choice: Choice) -> dict[str, Any]:
    """What the json says of a choice; null for a utility that is not known."""
    utilities = [None if np.isnan(one) else round(one, 6) for one in choice.utilities.tolist()]
    return {
        "index": choice.index,
        "utility": round(choice.chosen.utility, 6),
        "evaluated": round(choice.chosen.evaluated, 6),
        "first": {"utility": round(choice.first.utility, 6), "evaluated": round(choice.first.evaluated, 6)},
        "utilities": utilities,
    }
