"""`nmt-jax classify`: reads a text per line, writes its label or score."""

import pathlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from absl import flags

from nmt_jax.commands import streams
from nmt_jax.commands.output import define_output_flags, open_output
from nmt_jax.data.lines import num_lines
from nmt_jax.errors import UserError
from nmt_jax.training.trained import open_trained
from nmt_jax.workdir import Workdir

CHUNK = 512


class Prediction(Protocol):
    """A label, or a score as text; "" for a text without words. probabilities: float32[C], one per label."""

    label: Any
    probabilities: Any


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax classify`."""
    streams.define_prediction_flags(flag_values, CHUNK)
    define_output_flags(flag_values)
    help_text = "Output format; json writes one object per line, with probabilities."
    flags.DEFINE_enum("format", "text", ["text", "json"], help_text, flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Classify the lines of the input."""
    options = streams.prediction_options("classify", flag_values, positional)
    name, total = flag_values.input, num_lines(flag_values.input)
    chunk, workdirs = options.pop("chunk"), [options["workdir"]]
    with open_output("classify", flag_values, [name], chunk, total, workdirs=workdirs) as output:
        task, params = open_classifier(**options)

        def answer(first: int, texts: Sequence[Any]) -> Iterator[bytes]:
            rows = format_rows(task.labels, task.predict(params, texts), flag_values.format == "json", first)
            return streams.encoded(rows)

        texts = split_columns(streams.open_lines(name), columns_of(task), name or "stdin")
        output.write(texts, answer, "classified", total)
    return 0


def open_classifier(workdir: pathlib.Path | str, checkpoint: str | int | None = None) -> tuple[Any, Any]:
    """Return the task and the parameters of a classifier; raises UserError if the workdir has none."""
    return open_trained(Workdir(workdir), "classify", "sentences", checkpoint=checkpoint)


def columns_of(task: Any) -> int | None:
    """Return how many texts a line must have, None for any number."""
    return task.columns if task.config.task == "sentences" else None


def run(
    workdir: pathlib.Path | str,
    lines: Iterable[str],
    *,
    name: str = "stdin",
    checkpoint: str | int | None = None,
    chunk: int = CHUNK,
) -> tuple[list[str], Iterator[Prediction]]:
    """Classify the lines of the file `name` with the model of `workdir`; returns its labels, and predictions as read.

    The sentences (or columns) of a text are separated by tabs. A model without labels predicts scores. checkpoint:
    "best", "last", or n for the mean of the last n. Raises UserError at once if the workdir has no trained classifier,
    and while reading if a line has the wrong number of columns.
    """
    task, params = open_classifier(workdir, checkpoint)
    found = streams.predict_in_chunks(task, params, split_columns(lines, columns_of(task), name), chunk)
    return task.labels, (prediction for _, prediction in found)


def split_columns(lines: Iterable[str], columns: int | None, name: str = "stdin") -> Iterator[list[str]]:
    """Yield the tab-separated texts of each line: `columns` of them, or any number if None.

    A blank line stands for empty texts. If there is one column, tabs are blanks. Raises UserError `name:LINE`
    for a line with another number of texts.
    """
    for number, line in enumerate(lines, start=1):
        texts = [line.replace("\t", " ")] if columns == 1 else line.split("\t")
        if not line.strip():
            texts = [""] * (columns or 1)
        if columns and len(texts) != columns:
            raise UserError(f"{name}:{number}: {len(texts)} tab-separated texts, but the model reads {columns}")
        yield texts


def format_rows(
    labels: Sequence[str], predictions: Iterable[Prediction], as_json: bool, first: int = 0
) -> Iterator[str]:
    """Yield the label or score of each prediction, or as JSON an object that also has the probabilities.

    labels: empty if the predictions are scores. first: number of lines before. For a text without words the row is
    empty, and null in JSON.
    """
    for number, prediction in enumerate(predictions, start=first + 1):
        fields = _fields(labels, prediction) if as_json else {}
        yield streams.json_row(line=number, **fields) if as_json else prediction.label


def _fields(labels: Sequence[str], prediction: Prediction) -> dict[str, Any]:
    if not labels:
        scores = [float(score) for score in prediction.label.split("\t") if score]
        return {"score": (scores if len(scores) > 1 else scores[0]) if scores else None}
    if not prediction.label:
        return {"label": None}
    pairs = zip(labels, prediction.probabilities, strict=True)
    return {"label": prediction.label, "probabilities": {label: round(float(value), 6) for label, value in pairs}}
