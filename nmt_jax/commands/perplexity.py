"""`nmt-jax perplexity`: measures the perplexity of a language model on the text of stdin."""

import pathlib
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from absl import flags

from metrics_jax.prediction.perplexity import BitsPerToken, Perplexity
from nmt_jax.commands import streams
from nmt_jax.data.lines import num_lines
from nmt_jax.errors import UserError
from nmt_jax.ngram.files import read_model
from nmt_jax.ngram.model import NgramModel
from nmt_jax.ngram.scoring import LN10, score_lines
from nmt_jax.progress import track
from nmt_jax.workdir import Workdir

LANGUAGE_MODEL = "a trained language model, or folder of GPT-2"
NO_TEXT = "no text to measure: every line is empty"


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax perplexity`."""
    streams.define_workdir_flag(flag_values, LANGUAGE_MODEL)
    help_text = "Instead of a workdir: file of an n-gram model, ARPA or written by nmt-jax ngram."
    flags.DEFINE_string("ngram", None, help_text, flag_values)
    help_text = "Write a JSON object for every line instead of the measures of the text; only with --ngram."
    flags.DEFINE_boolean("segments", False, help_text, flag_values)
    streams.define_input_flag(flag_values)
    streams.define_checkpoint_flags(flag_values, average=False)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Print the measures of the text, one per line, or those of each line."""
    streams.check_no_arguments("perplexity", positional)
    streams.check_effect(flag_values, ["segments"], bool(flag_values.ngram), "without --ngram=FILE")
    streams.check_effect(flag_values, ["workdir", "checkpoint"], not flag_values.ngram, "with --ngram")
    if flag_values.segments:
        model, lines = read_model(flag_values.ngram), streams.open_lines(flag_values.input)
        streams.write_blocks(streams.encoded(segments(model, lines)), "lines", num_lines(flag_values.input))
        return 0
    if flag_values.ngram:
        lines = track(streams.open_lines(flag_values.input), "scoring lines", num_lines(flag_values.input))
        measures = run_ngram(flag_values.ngram, lines)
    else:
        workdir = streams.required_workdir("perplexity", flag_values, LANGUAGE_MODEL)
        measures = run(workdir, streams.open_lines(flag_values.input), checkpoint=flag_values.checkpoint)
    for name, value in measures.items():
        print(f"{name:<20}{value:.6g}" if isinstance(value, float) else f"{name:<20}{value}")
    return 0


def run(workdir: pathlib.Path | str, lines: Iterable[str], *, checkpoint: str | None = None) -> dict[str, float]:
    """Measure the language model of `workdir` on consecutive lines; returns the measures by name.

    perplexity: per token, ends of lines included. lines, tokens, unknown: counts, the last of unknown tokens.
    bits_per_character: only if no token is unknown; unlike perplexity it compares models with different vocabularies.
    Raises UserError if the workdir has no trained language model, and if every line is empty.
    """
    from nmt_jax.training.trained import open_trained  # imports JAX, which an n-gram model does not need

    task, params = open_trained(Workdir(workdir), "language_model", checkpoint=checkpoint)
    text = list(track(lines, "reading"))
    ids = task.encode(text)
    if len(ids) == len(text):  # nothing but ends of lines
        raise UserError(NO_TEXT)
    nats, tokens = task.surprise(params, ids)
    unknown = int((ids == task.vocab.unknown_id).sum())
    perplexity = Perplexity()([-nats], [tokens]).score
    measures = {"perplexity": perplexity, "lines": len(text), "tokens": int(tokens), "unknown": unknown}
    if not unknown:
        characters = sum(len(line) + 1 for line in text)
        measures["bits_per_character"] = BitsPerToken()([-nats], [characters]).score
    return measures


def run_ngram(path: pathlib.Path | str, lines: Iterable[str]) -> dict[str, float]:
    """Measure an n-gram model on lines that do not depend on each other; returns the measures by name.

    known_perplexity: without unknown words, line ends included. The others: those of `run`. Raises UserError if the
    file has no n-gram model, and if every line is empty.
    """
    total, known = np.zeros(2), np.zeros(2)  # sum of log-probabilities, base 10, and number of tokens
    num_lines = characters = 0
    for line, (log_p, unknown) in score_lines(read_model(path), lines):
        total += log_p.sum(), len(log_p)
        known += log_p[~unknown].sum(), (~unknown).sum()
        num_lines, characters = num_lines + 1, characters + len(line) + 1
    if total[1] == num_lines:
        raise UserError(NO_TEXT)
    tokens, unknown_tokens = int(total[1]), int(total[1] - known[1])
    nats = total[0] * LN10
    measures = {
        "perplexity": Perplexity()([nats], [tokens]).score,
        "known_perplexity": Perplexity()([known[0] * LN10], [known[1]]).score,
        "lines": num_lines,
        "tokens": tokens,
        "unknown": unknown_tokens,
    }
    if not unknown_tokens:
        measures["bits_per_character"] = BitsPerToken()([nats], [characters]).score
    return measures


def segments(model: NgramModel, lines: Iterable[str]) -> Iterator[str]:
    """Yield a JSON object for each line: perplexity, tokens, unknown tokens, log10 probability of each token."""
    for number, (_, (log_p, unknown)) in enumerate(score_lines(model, lines), start=1):
        perplexity = Perplexity()([log_p.sum() * LN10], [len(log_p)]).score
        yield streams.json_row(
            line=number,
            perplexity=round(perplexity, 6),
            tokens=len(log_p),
            unknown=int(unknown.sum()),
            log10_probabilities=log_p.round(6).tolist(),
        )
