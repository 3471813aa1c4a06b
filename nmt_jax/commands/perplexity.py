"""`nmt-jax perplexity`: measures the perplexity of a trained language model on the text of stdin."""

import pathlib
from collections.abc import Iterable, Sequence

from absl import flags

from metrics_jax.prediction.perplexity import BitsPerToken, Perplexity
from nmt_jax.commands import streams
from nmt_jax.data.vocabulary.vocab import UNK
from nmt_jax.errors import UserError
from nmt_jax.progress import track
from nmt_jax.training.trained import open_trained
from nmt_jax.workdir import Workdir

LANGUAGE_MODEL = "a trained language model"


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax perplexity`."""
    streams.define_workdir_flag(flag_values, LANGUAGE_MODEL)
    streams.define_input_flag(flag_values)
    streams.define_checkpoint_flags(flag_values, average=False)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Print the measures of the text, one per line."""
    streams.check_no_arguments("perplexity", positional)
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
    task, params = open_trained(Workdir(workdir), "language_model", checkpoint=checkpoint)
    text = list(track(lines, "reading"))
    ids = task.encode(text)
    if len(ids) == len(text):  # nothing but ends of lines
        raise UserError("no text to measure: every line is empty")
    nats, tokens = task.surprise(params, ids)
    unknown = int((ids == UNK).sum())
    perplexity = Perplexity()([-nats], [tokens]).score
    measures = {"perplexity": perplexity, "lines": len(text), "tokens": int(tokens), "unknown": unknown}
    if not unknown:
        characters = sum(len(line) + 1 for line in text)
        measures["bits_per_character"] = BitsPerToken()([-nats], [characters]).score
    return measures
