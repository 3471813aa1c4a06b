"""`nmt-jax classify`: texts on stdin, one a line, their labels on stdout, line N for line N."""

import json
import pathlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from absl import flags

from nmt_jax.counting import counted
from nmt_jax.data.lines import chunks, decode_lines, num_lines, read_lines
from nmt_jax.errors import UserError
from nmt_jax.trained import open_trained
from nmt_jax.workdir import Workdir

if TYPE_CHECKING:
    from nmt_jax.tasks.classify import Prediction

CHUNK = 512  # texts of like size are classified together: enough for full batches, few enough to see output soon


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
        results = counted(results, "classified", total=num_lines(flag_values.input))
    write(labels, results, flag_values.format)
    return 0


def run(
    workdir: pathlib.Path | str, lines: Iterable[str], *, checkpoint: str | int | None = None, chunk: int = CHUNK
) -> tuple[list[str], Iterator["Prediction"]]:
    """Classify `lines` with the model of `workdir` -> its labels, and a prediction for each line while lines come in.

    The sentences (or columns) of a text stand between tabs. checkpoint: "best", "last", or n for the mean of the last
    n. UserError for a workdir with nothing to classify with, before any line is read.
    """
    task, params = open_trained(Workdir(pathlib.Path(workdir)), "classify", checkpoint=checkpoint)
    groups = chunks(lines, chunk)
    return task.labels, (
        prediction for group in groups for prediction in task.predict(params, [line.split("\t") for line in group])
    )


def write(labels: Sequence[str], results: Iterable["Prediction"], form: str) -> None:
    """One line a result on stdout, as UTF-8; a text without a word gives an empty line, and null in JSON."""
    for number, result in enumerate(results, start=1):
        row = result.label
        if form == "json":
            probabilities = {
                label: round(float(value), 6) for label, value in zip(labels, result.probabilities, strict=True)
            }
            found = {"label": result.label, "probabilities": probabilities} if result.label else {"label": None}
            row = json.dumps({"line": number, **found}, ensure_ascii=False)
        sys.stdout.buffer.write(f"{row}\n".encode())
        sys.stdout.buffer.flush()
