"""`nmt-jax classify`: texts on stdin, one a line, their labels (or scores) on stdout, line N for line N."""

import json
import pathlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from absl import flags

from nmt_jax.data.lines import chunks, decode_lines, num_lines, read_lines
from nmt_jax.errors import UserError
from nmt_jax.progress import track
from nmt_jax.training.trained import open_trained
from nmt_jax.workdir import Workdir

TASKS = ("classify", "sentences")
CHUNK = 512  # texts of like size are classified together: enough for full batches, few enough to see output soon


class Prediction(Protocol):
    """What a text was taken for: a label (or a score as text), "" for a text without a word, and float32[C]."""

    label: Any
    probabilities: Any


def define_flags(flag_values: flags.FlagValues) -> None:
    """The flags of `nmt-jax classify`."""
    given: dict[str, Any] = {"flag_values": flag_values}
    flags.DEFINE_string("workdir", None, "The folder of a trained model.", **given)
    flags.DEFINE_string("input", None, "Read this file instead of stdin; .gz is unpacked.", **given)
    flags.DEFINE_integer("average", None, "Classify with the mean of the last n checkpoints.", lower_bound=1, **given)
    flags.DEFINE_enum("checkpoint", None, ["best", "last"], "Classify with one checkpoint; best if not given.", **given)
    flags.DEFINE_enum("format", "text", ["text", "json"], "json: one object a line, with probabilities.", **given)
    flags.DEFINE_integer(
        "chunk", CHUNK, "Lines classified together; on a terminal each at once.", lower_bound=1, **given
    )


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Flags in, lines through."""
    if positional:
        raise UserError(f"nmt-jax classify reads stdin: … < {positional[0]}, or --input={positional[0]}")
    if not flag_values.workdir:
        raise UserError("nmt-jax classify needs --workdir=FOLDER of a trained model")
    if flag_values.checkpoint and flag_values.average:
        raise UserError("--checkpoint and --average exclude each other: one checkpoint, or the mean of several")
    interactive = not flag_values.input and sys.stdin.isatty()
    lines = read_lines(flag_values.input) if flag_values.input else decode_lines(sys.stdin.buffer, "stdin")
    labels, results = run(
        pathlib.Path(flag_values.workdir),
        lines,
        checkpoint=flag_values.checkpoint or flag_values.average,
        chunk=1 if interactive else flag_values.chunk,
    )
    if not sys.stdout.isatty():  # on a terminal the labels themselves show how far it is
        results = track(results, "classified", total=num_lines(flag_values.input))
    write(labels, results, flag_values.format)
    return 0


def run(
    workdir: pathlib.Path | str, lines: Iterable[str], *, checkpoint: str | int | None = None, chunk: int = CHUNK
) -> tuple[list[str], Iterator["Prediction"]]:
    """Classify `lines` with the model of `workdir` -> its labels, and a prediction for each line while lines come in.

    The sentences (or columns) of a text stand between tabs. No labels: predictions are scores. checkpoint: "best",
    "last", or n for the mean of the last n. UserError for a workdir with nothing to classify with, before any line is
    read, and for a line that lacks one of a pair of texts.
    """
    task, params = open_trained(Workdir(pathlib.Path(workdir)), *TASKS, checkpoint=checkpoint)
    columns = task.columns if task.config.task == "sentences" else None
    groups = chunks(split(lines, columns), chunk)
    return task.labels, (prediction for group in groups for prediction in task.predict(params, group))


def split(lines: Iterable[str], columns: int | None) -> Iterator[list[str]]:
    """Lines -> the texts between their tabs, exactly `columns` of them where that is given (an empty line: all empty).

    Of a single column tabs are blanks. UserError `line N` for another number.
    """
    for number, line in enumerate(lines, start=1):
        texts = [line.replace("\t", " ")] if columns == 1 else line.split("\t")
        if not line.strip():
            texts = [""] * (columns or 1)
        if columns and len(texts) != columns:
            raise UserError(f"line {number}: {len(texts)} texts between tabs; the model reads {columns}")
        yield texts


def write(labels: Sequence[str], results: Iterable["Prediction"], form: str) -> None:
    """One line a result on stdout, as UTF-8; a text without a word gives an empty line, and null in JSON.

    labels: none where results are scores.
    """
    for number, result in enumerate(results, start=1):
        row = result.label
        if form == "json":
            row = json.dumps({"line": number, **_found(labels, result)}, ensure_ascii=False)
        sys.stdout.buffer.write(f"{row}\n".encode())
        sys.stdout.buffer.flush()


def _found(labels: Sequence[str], result: Prediction) -> dict[str, Any]:
    if not labels:
        scores = [float(one) for one in result.label.split("\t") if one]
        return {"score": (scores if len(scores) > 1 else scores[0]) if scores else None}
    if not result.label:
        return {"label": None}
    pairs = zip(labels, result.probabilities, strict=True)
    return {"label": result.label, "probabilities": {label: round(float(value), 6) for label, value in pairs}}
