"""`nmt-jax tag`: sentences on stdin, one a line, its words between blanks; on stdout every word with its tag."""

import json
import pathlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from absl import flags

from nmt_jax.data.lines import chunks, decode_lines, num_lines, read_lines
from nmt_jax.errors import UserError
from nmt_jax.progress import track
from nmt_jax.training.trained import open_trained
from nmt_jax.workdir import Workdir

if TYPE_CHECKING:
    from nmt_jax.tasks.tag import Prediction

CHUNK = 512  # sentences of like length are tagged together


def define_flags(flag_values: flags.FlagValues) -> None:
    """The flags of `nmt-jax tag`."""
    given: dict[str, Any] = {"flag_values": flag_values}
    flags.DEFINE_string("workdir", None, "The folder of a trained model.", **given)
    flags.DEFINE_string("input", None, "Read this file instead of stdin; .gz is unpacked.", **given)
    flags.DEFINE_integer("average", None, "Tag with the mean of the last n checkpoints.", lower_bound=1, **given)
    flags.DEFINE_enum("checkpoint", None, ["best", "last"], "Tag with one checkpoint; best if not given.", **given)
    help_text = "conll: a word and its tag a line, a blank line after each sentence; json: one object a sentence."
    flags.DEFINE_enum("format", "conll", ["conll", "json"], help_text, **given)
    flags.DEFINE_integer("chunk", CHUNK, "Lines tagged together; on a terminal each at once.", lower_bound=1, **given)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Flags in, lines through."""
    if positional:
        raise UserError(f"nmt-jax tag reads stdin: … < {positional[0]}, or --input={positional[0]}")
    if not flag_values.workdir:
        raise UserError("nmt-jax tag needs --workdir=FOLDER of a trained model")
    if flag_values.checkpoint and flag_values.average:
        raise UserError("--checkpoint and --average exclude each other: one checkpoint, or the mean of several")
    interactive = not flag_values.input and sys.stdin.isatty()
    lines = read_lines(flag_values.input) if flag_values.input else decode_lines(sys.stdin.buffer, "stdin")
    results = run(
        pathlib.Path(flag_values.workdir),
        lines,
        checkpoint=flag_values.checkpoint or flag_values.average,
        chunk=1 if interactive else flag_values.chunk,
    )
    if not sys.stdout.isatty():  # on a terminal the tags themselves show how far it is
        results = track(results, "tagged", total=num_lines(flag_values.input))
    write(results, flag_values.format)
    return 0


def run(
    workdir: pathlib.Path | str, lines: Iterable[str], *, checkpoint: str | int | None = None, chunk: int = CHUNK
) -> Iterator[tuple[list[str], "Prediction"]]:
    """Tag `lines` with the model of `workdir` -> the words of each line and their tags, while lines come in.

    checkpoint: "best", "last", or n for the mean of the last n. UserError for a workdir with nothing to tag with,
    before any line is read.
    """
    task, params = open_trained(Workdir(pathlib.Path(workdir)), "tag", "feature_tagger", checkpoint=checkpoint)
    groups = chunks((line.split() for line in lines), chunk)
    return (both for group in groups for both in zip(group, task.predict(params, group), strict=True))


def write(results: Iterable[tuple[list[str], "Prediction"]], form: str) -> None:
    """Words and tags on stdout, as UTF-8; a line without a word gives a blank line, and empty lists in JSON."""
    for number, (words, result) in enumerate(results, start=1):
        block = "".join(f"{word}\t{tag}\n" for word, tag in zip(words, result.tags, strict=True)) + "\n"
        if form == "json":
            chosen = [round(float(value), 6) for value in result.probabilities.max(axis=1)] if words else []
            row = {"line": number, "words": words, "tags": result.tags, "probabilities": chosen}
            block = json.dumps(row, ensure_ascii=False) + "\n"
        sys.stdout.buffer.write(block.encode())
        sys.stdout.buffer.flush()
