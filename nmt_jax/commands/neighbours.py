"""`nmt-jax neighbours`: reads a word or an analogy per line, writes the nearest words."""

import pathlib
import sys
from collections.abc import Iterable, Iterator, Sequence

from absl import flags

from metrics_jax.embedding.nearest import Neighbours, UnknownWordError
from metrics_jax.embedding.vectors import Vectors
from nmt_jax.commands import streams
from nmt_jax.commands.output import define_output_flags, open_output
from nmt_jax.data.lines import num_lines
from nmt_jax.errors import UserError
from nmt_jax.schema.number_flags import define_integer
from nmt_jax.training.trained import open_trained
from nmt_jax.workdir import Workdir

CHUNK = 512


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax neighbours`."""
    streams.define_workdir_flag(flag_values, "trained word vectors")
    help_text = "File of word vectors to use instead of a workdir: word2vec or GloVe format, plain or .gz."
    flags.DEFINE_string("vectors", None, help_text, flag_values)
    streams.define_input_flag(flag_values)
    define_integer(flag_values, "count", 10, "Number of neighbours per line.", low=1)
    help_text = "Convert the input to lower case; default: as the training text of the workdir."
    flags.DEFINE_bool("lower_case", None, help_text, flag_values)
    streams.define_checkpoint_flags(flag_values, average=False)
    streams.define_chunk_flag(flag_values, CHUNK)
    define_output_flags(flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Write one line of neighbours and cosines per line of the input."""
    streams.check_no_arguments("neighbours", positional)
    if bool(flag_values.workdir) == bool(flag_values.vectors):
        raise UserError(
            "nmt-jax neighbours needs --workdir=FOLDER of trained word vectors or --vectors=FILE, but not both"
        )
    if flag_values.vectors and flag_values.checkpoint:
        raise UserError("--checkpoint needs --workdir: a file of vectors has no checkpoints")
    path, total = flag_values.input, num_lines(flag_values.input)
    with open_output("neighbours", flag_values, [path], streams.chunk_size(flag_values), total) as output:
        if flag_values.vectors:
            neighbours, lower_case = of_file(flag_values.vectors), False
        else:
            neighbours, lower_case = of_workdir(flag_values.workdir, flag_values.checkpoint)
        if flag_values.lower_case is not None:
            lower_case = flag_values.lower_case

        def answer(first: int, words: Sequence[str]) -> Iterator[bytes]:
            found = run(neighbours, words, flag_values.count, path or "stdin", first)
            return streams.encoded("\t".join(f"{word} {cosine:.3f}" for word, cosine in row) for row in found)

        lines = streams.open_lines(path)
        output.write((line.lower() for line in lines) if lower_case else lines, answer, "answered", total)
    return 0


def of_file(path: str) -> Neighbours:
    """Open a file of word vectors; raises UserError `FILE:LINE` if it is damaged."""
    try:
        return Neighbours(Vectors.load(path))
    except ValueError as error:
        raise UserError(str(error)) from None


def of_workdir(workdir: pathlib.Path | str, checkpoint: str | None = None) -> tuple[Neighbours, bool]:
    """Open trained word vectors; also returns whether their training text was in lower case.

    Vectors with character n-grams have neighbours for unknown words, too.
    """
    task, params = open_trained(Workdir(workdir), "word_vectors", checkpoint=checkpoint)
    return Neighbours(task.vectors(params), lambda word: task.compose(params, word)), task.config.data.lower_case


def run(
    neighbours: Neighbours, lines: Iterable[str], count: int, name: str, first: int = 0
) -> Iterator[list[tuple[str, float]]]:
    """Yield the nearest words of each line with their cosines; first: number of lines before.

    A line with an unknown word has no neighbours and a warning on stderr. Raises UserError `name:LINE` for a line that
    is neither a word nor an analogy.
    """
    for number, line in enumerate(lines, start=first + 1):
        try:
            yield neighbours(line, count) if line.strip() else []
        except UnknownWordError as error:
            print(f"nmt-jax: warning: {name}:{number}: {error}", file=sys.stderr)
            yield []
        except ValueError as error:
            raise UserError(f"{name}:{number}: {error}") from None
