"""`nmt-jax neighbours`: words or analogies on stdin, one a line, the words nearest to each on stdout."""

import pathlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from absl import flags

from metrics_jax.embedding.nearest import Neighbours, UnknownWordError
from metrics_jax.embedding.vectors import Vectors
from nmt_jax.data.lines import decode_lines, read_lines
from nmt_jax.errors import UserError
from nmt_jax.training.trained import open_trained
from nmt_jax.workdir import Workdir


def define_flags(flag_values: flags.FlagValues) -> None:
    """The flags of `nmt-jax neighbours`."""
    given: dict[str, Any] = {"flag_values": flag_values}
    flags.DEFINE_string("workdir", None, "The folder of trained word vectors.", **given)
    flags.DEFINE_string("vectors", None, "A file of word vectors instead: word2vec's or GloVe's, .gz too.", **given)
    flags.DEFINE_string("input", None, "Read this file instead of stdin; .gz is unpacked.", **given)
    flags.DEFINE_integer("count", 10, "Neighbours of each line.", lower_bound=1, **given)
    flags.DEFINE_bool("lower_case", None, "Lower-case what is asked for; if not given as the workdir's text.", **given)
    flags.DEFINE_enum("checkpoint", None, ["best", "last"], "Vectors of one checkpoint; best if not given.", **given)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Flags in, lines through."""
    if positional:
        raise UserError(f"nmt-jax neighbours reads stdin: … < {positional[0]}, or --input={positional[0]}")
    if bool(flag_values.workdir) == bool(flag_values.vectors):
        raise UserError(
            "nmt-jax neighbours needs --workdir=FOLDER of trained word vectors or --vectors=FILE, one of them"
        )
    if flag_values.vectors and flag_values.checkpoint:
        raise UserError("--checkpoint is for --workdir; a file of vectors has none")
    name = flag_values.input or "stdin"
    lines = read_lines(flag_values.input) if flag_values.input else decode_lines(sys.stdin.buffer, "stdin")
    lower_case = bool(flag_values.lower_case)
    if flag_values.vectors:
        neighbours = of_file(flag_values.vectors)
    else:
        neighbours, lower_case = of_workdir(flag_values.workdir, flag_values.checkpoint)
        lower_case = lower_case if flag_values.lower_case is None else flag_values.lower_case
    for found in run(neighbours, (line.lower() if lower_case else line for line in lines), flag_values.count, name):
        row = "\t".join(f"{word} {cosine:.3f}" for word, cosine in found)
        sys.stdout.buffer.write(f"{row}\n".encode())
        sys.stdout.buffer.flush()
    return 0


def of_file(path: pathlib.Path | str) -> Neighbours:
    """The neighbours of a file of vectors; UserError `FILE:LINE` for one that is damaged."""
    try:
        return Neighbours(Vectors.load(path))
    except ValueError as error:
        raise UserError(str(error)) from None


def of_workdir(workdir: pathlib.Path | str, checkpoint: str | None = None) -> tuple[Neighbours, bool]:
    """The neighbours of trained word vectors, with n-grams those of any word; and whether its text is lower-cased."""
    task, params = open_trained(Workdir(pathlib.Path(workdir)), "word_vectors", checkpoint=checkpoint)
    return Neighbours(task.vectors(params), lambda word: task.compose(params, word)), task.config.data.lower_case


def run(neighbours: Neighbours, lines: Iterable[str], count: int, name: str) -> Iterator[list[tuple[str, float]]]:
    """For each line the nearest words and their cosines; none, and a word on stderr, where a line has no answer."""
    for number, line in enumerate(lines, start=1):
        try:
            yield neighbours(line, count) if line.strip() else []
        except UnknownWordError as error:
            print(f"nmt-jax: warning: {name}:{number}: {error}", file=sys.stderr)
            yield []
        except ValueError as error:
            raise UserError(f"{name}:{number}: {error}") from None
