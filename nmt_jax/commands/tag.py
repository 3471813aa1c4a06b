"""`nmt-jax tag`: reads a sentence per line, its words separated by blanks, and writes every word with its tag."""

import itertools
import pathlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from absl import flags

from nmt_jax.commands import streams
from nmt_jax.data.lines import num_lines
from nmt_jax.training.trained import open_trained
from nmt_jax.workdir import Workdir

if TYPE_CHECKING:
    from nmt_jax.tasks.tag import Prediction

CHUNK = 512


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax tag`."""
    streams.define_prediction_flags(flag_values, CHUNK)
    help_text = "Output format: conll, one word and tag per line and a blank line after each sentence; json."
    flags.DEFINE_enum("format", "conll", ["conll", "json"], help_text, flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Tag the words of the input."""
    options = streams.prediction_options("tag", flag_values, positional)
    tagged = run(lines=streams.open_lines(flag_values.input), **options)
    show = _json if flag_values.format == "json" else _conll
    rows = itertools.starmap(show, ((number, *pair) for number, pair in enumerate(tagged, start=1)))
    streams.write_rows(rows, "tagged", num_lines(flag_values.input))
    return 0


def run(
    workdir: pathlib.Path | str, lines: Iterable[str], *, checkpoint: str | int | None = None, chunk: int = CHUNK
) -> Iterator[tuple[list[str], "Prediction"]]:
    """Tag lines with the model of `workdir`; returns an iterator of the words of each line and their prediction.

    checkpoint: "best", "last", or n for the mean of the last n. Raises UserError if the workdir has no trained tagger.
    """
    task, params = open_trained(Workdir(pathlib.Path(workdir)), "tag", "feature_tagger", checkpoint=checkpoint)
    return streams.predict_in_chunks(task, params, (line.split() for line in lines), chunk)


def _conll(number: int, words: Sequence[str], prediction: "Prediction") -> str:
    return "".join(f"{word}\t{tag}\n" for word, tag in zip(words, prediction.tags, strict=True))


def _json(number: int, words: Sequence[str], prediction: "Prediction") -> str:
    best = [round(float(value), 6) for value in prediction.probabilities.max(axis=1)] if words else []
    return streams.json_row(line=number, words=words, tags=prediction.tags, probabilities=best)
