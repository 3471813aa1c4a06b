"""`nmt-jax perplexity`: how surprised a trained language model is by the text on stdin."""

import pathlib
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from absl import flags

from metrics_jax.prediction.perplexity import BitsPerToken, Perplexity
from nmt_jax.data.lines import decode_lines, read_lines
from nmt_jax.data.vocabulary.vocab import UNK
from nmt_jax.errors import UserError
from nmt_jax.progress import track
from nmt_jax.training.trained import open_trained
from nmt_jax.workdir import Workdir


def define_flags(flag_values: flags.FlagValues) -> None:
    """The flags of `nmt-jax perplexity`."""
    given: dict[str, Any] = {"flag_values": flag_values}
    flags.DEFINE_string("workdir", None, "The folder of a trained language model.", **given)
    flags.DEFINE_string("input", None, "Read this file instead of stdin; .gz is unpacked.", **given)
    flags.DEFINE_enum("checkpoint", None, ["best", "last"], "Which checkpoint to measure; best if not given.", **given)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Flags in, a few numbers out."""
    if positional:
        raise UserError(f"nmt-jax perplexity reads stdin: … < {positional[0]}, or --input={positional[0]}")
    if not flag_values.workdir:
        raise UserError("nmt-jax perplexity needs --workdir=FOLDER of a trained language model")
    lines = read_lines(flag_values.input) if flag_values.input else decode_lines(sys.stdin.buffer, "stdin")
    for name, value in run(pathlib.Path(flag_values.workdir), lines, checkpoint=flag_values.checkpoint).items():
        print(f"{name:<20}{value:.6g}" if isinstance(value, float) else f"{name:<20}{value}")
    return 0


def run(workdir: pathlib.Path | str, lines: Iterable[str], *, checkpoint: str | None = None) -> dict[str, float]:
    """Measure the model of `workdir` on lines that follow each other -> name: value.

    perplexity a token, the end of each line among them; lines, tokens, and how many of these are unknown; and
    bits_per_character where all are known: unlike perplexity it compares models of different vocabularies.
    UserError for a workdir without a trained language model, before any line is read, and for no text.
    """
    task, params = open_trained(Workdir(pathlib.Path(workdir)), "language_model", checkpoint=checkpoint)
    text = list(track(lines, "reading"))
    ids = task.encode(text)
    if len(ids) == len(text):  # nothing but ends of lines
        raise UserError("no text to measure: every line is empty")
    nats, tokens = task.surprise(params, ids)
    unknown = int((ids == UNK).sum())
    measures = {
        "perplexity": Perplexity()([-nats], [tokens]).score,
        "lines": len(text),
        "tokens": int(tokens),
        "unknown": unknown,
    }
    if not unknown:
        characters = sum(len(line) + 1 for line in text)
        measures["bits_per_character"] = BitsPerToken()([-nats], [characters]).score
    return measures
