"""`nmt-jax tag`: reads a sentence per line, its words separated by blanks, and writes every word with its tag."""

import itertools
import pathlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from absl import flags

from nmt_jax.commands import streams
from nmt_jax.commands.output import define_output_flags, open_output
from nmt_jax.data.lines import num_lines
from nmt_jax.training.trained import open_trained
from nmt_jax.workdir import Workdir

if TYPE_CHECKING:
    from nmt_jax.tasks.tag import Prediction

CHUNK = 512


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax tag`."""
    streams.define_prediction_flags(flag_values, CHUNK)
    define_output_flags(flag_values)
    help_text = "Output format: conll, one word and tag per line and a blank line after each sentence; json."
    flags.DEFINE_enum("format", "conll", ["conll", "json"], help_text, flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Tag the words of the input."""
    options = streams.prediction_options("tag", flag_values, positional)
    name, total = flag_values.input, num_lines(flag_values.input)
    show = _json if flag_values.format == "json" else _conll
    chunk, workdirs = options.pop("chunk"), [options["workdir"]]
    with open_output("tag", flag_values, [name], chunk, total, workdirs=workdirs) as output:
        task, params = open_tagger(**options)

        def answer(first: int, sentences: Sequence[list[str]]) -> Iterator[bytes]:
            numbers = itertools.count(first + 1)
            return streams.encoded(map(show, numbers, sentences, task.predict(params, sentences)))

        output.write((line.split() for line in streams.open_lines(name)), answer, "tagged", total)
    return 0


def open_tagger(workdir: pathlib.Path | str, checkpoint: str | int | None = None) -> tuple[Any, Any]:
    """Return the task and the parameters of a tagger; raises UserError if the workdir has none."""
    return open_trained(Workdir(workdir), "tag", "feature_tagger", checkpoint=checkpoint)


def run(
    workdir: pathlib.Path | str, lines: Iterable[str], *, checkpoint: str | int | None = None, chunk: int = CHUNK
) -> Iterator[tuple[list[str], "Prediction"]]:
    """Tag lines with the model of `workdir`; returns an iterator of the words of each line and their prediction.

    checkpoint: "best", "last", or n for the mean of the last n. Raises UserError if the workdir has no trained tagger.
    """
    task, params = open_tagger(workdir, checkpoint)
    return streams.predict_in_chunks(task, params, (line.split() for line in lines), chunk)


def _conll(number: int, words: Sequence[str], prediction: "Prediction") -> str:
    return "".join(f"{word}\t{tag}\n" for word, tag in zip(words, prediction.tags, strict=True))


def _json(number: int, words: Sequence[str], prediction: "Prediction") -> str:
    best = [round(float(value), 6) for value in prediction.probabilities.max(axis=1)] if words else []
    return streams.json_row(line=number, words=words, tags=prediction.tags, probabilities=best)
