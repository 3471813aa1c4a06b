"""`nmt-jax retrieve`: reads a query per line, writes the nearest of many candidates."""

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from absl import flags

from nmt_jax.commands import streams
from nmt_jax.data.lines import chunks, num_lines, read_lines
from nmt_jax.errors import UserError
from nmt_jax.schema.number_flags import define_integer
from nmt_jax.training.trained import open_trained
from nmt_jax.workdir import Workdir

if TYPE_CHECKING:
    from nmt_jax.tasks.retrieval import Found

CHUNK = 512


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax retrieve`."""
    streams.define_workdir_flag(flag_values, "a trained dual encoder")
    streams.define_input_flag(flag_values)
    flags.DEFINE_string("candidates", None, "File of candidates, one per line.", flag_values)
    help_text = "Side of the queries; the candidates are of the other side."
    flags.DEFINE_enum("queries", "source", ["source", "target"], help_text, flag_values)
    help_text = "Candidates per query: 1 = the line of the best, more = rows of LINE, COSINE, CANDIDATE."
    define_integer(flag_values, "count", 1, help_text, low=1)
    flags.DEFINE_enum("format", "text", ["text", "json"], "Output format.", flag_values)
    streams.define_checkpoint_flags(flag_values, average=False)
    streams.define_chunk_flag(flag_values, CHUNK)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Write the nearest candidates of each line of the input."""
    streams.check_no_arguments("retrieve", positional)
    folder = Workdir(streams.required_workdir("retrieve", flag_values, "a trained dual encoder"))
    if not flag_values.candidates:
        raise UserError("nmt-jax retrieve needs --candidates=FILE, one candidate per line")
    total, candidates = num_lines(flag_values.input), list(read_lines(flag_values.candidates))
    task, params = open_trained(folder, "retrieval", checkpoint=flag_values.checkpoint)
    vectors = task.vectors(params, candidates, "target" if flag_values.queries == "source" else "source")

    def answers() -> Iterator[bytes]:
        numbers = itertools.count(1)
        for lines in chunks(streams.open_lines(flag_values.input), streams.chunk_size(flag_values)):
            queries = task.vectors(params, lines, flag_values.queries)
            for best in task.nearest(queries, vectors, flag_values.count):
                yield shown(next(numbers), best, candidates, flag_values.count, flag_values.format == "json")

    streams.write_blocks(answers(), "answered", total)
    return 0


def shown(number: int, best: Sequence["Found"], candidates: Sequence[str], count: int, as_json: bool) -> bytes:
    """Return the output for query `number`, counted from 1, in UTF-8."""
    if as_json:
        found = [
            {"candidate": one.number + 1, "cosine": round(one.cosine, 4), "text": candidates[one.number]}
            for one in best
        ]
        return f"{streams.json_row(line=number, candidates=found)}\n".encode()
    if count == 1:
        return f"{candidates[best[0].number] if best else ''}\n".encode()
    return "".join(f"{number}\t{one.cosine:.4f}\t{candidates[one.number]}\n" for one in best).encode()
