"""Output of the verbs that write something for each line: to stdout, or to a file that several processes may share."""

import contextlib
import os
import pathlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from absl import flags

from nmt_jax.commands import streams
from nmt_jax.data.lines import chunks, find
from nmt_jax.distributed import process_spec
from nmt_jax.distributed.parts import Part, digest
from nmt_jax.errors import UserError
from nmt_jax.progress import track
from nmt_jax.storage.files import whole_file
from nmt_jax.storage.paths import path_of
from nmt_jax.workdir import Workdir

if TYPE_CHECKING:
    from nmt_jax.distributed.shared_output import SharedOutput

Answer = Callable[[int, Sequence[Any]], Iterable[bytes]]  # number of the first item, items -> the output for each item

NOT_IN_JOB = ("output", "overwrite", "verbose", "chunk", *process_spec.FLAGS)  # flags that do not change the output


def define_output_flags(flag_values: flags.FlagValues) -> None:
    """Define `--output`, `--overwrite`, and the flags that launchers set."""
    help_text = "Write this file instead of stdout; after an interruption, the same command continues it."
    flags.DEFINE_string("output", None, help_text, flag_values)
    streams.define_overwrite_flag(flag_values)
    process_spec.define_process_flags(flag_values)


@contextlib.contextmanager
def open_output(
    verb: str,
    flag_values: flags.FlagValues,
    inputs: Sequence[str | None],
    block_size: int,
    num_items: int | None = None,
    arguments: Sequence[str] = (),
    workdirs: Sequence[pathlib.Path | str] = (),
) -> Iterator["Output"]:
    """Yield the output of a verb, to which `Output.write` writes.

    inputs: the files that are read, None for stdin. block_size: number of items that are processed together. num_items:
    their number, if it is known. arguments: those of the verb that are not flags. workdirs: of the models; if one is
    split over devices (`mesh.model`), all processes compute together. Raises UserError for flags that exclude each
    other, and for an output that cannot be written or continued.
    """
    spec = process_spec.find_process_spec(flag_values, os.environ, coordinated=False)
    if not flag_values.output:
        streams.check_effect(flag_values, ["overwrite"], False, "without --output=FILE")
        if spec:
            raise UserError(f"nmt-jax {verb}: {spec.processes} processes write one file: name it by --output=FILE")
        yield Output(None, block_size)
        return
    streams.check_distinct(inputs, [flag_values.output])
    if spec:
        check_share(verb, spec, inputs, num_items)
    present = {name: flag_values[name].value for name in flag_values if flag_values[name].present}
    job = {name: value for name, value in present.items() if name not in NOT_IN_JOB} | {"chunk": block_size}
    if arguments:
        job["arguments"] = list(arguments)
    from nmt_jax.distributed.shared_output import SharedOutput  # imported late, since few commands need it

    with SharedOutput(
        path_of(flag_values.output),
        job,
        spec,
        overwrite=flag_values.overwrite,
        together=spec is not None and bool(spec.coordinator) and is_split(workdirs),
        join_seconds=flag_values.join_seconds,
        lost_seconds=flag_values.lost_seconds,
    ) as shared:
        yield Output(shared, block_size)


def is_split(workdirs: Sequence[pathlib.Path | str]) -> bool:
    """Return whether a model is split over devices."""
    configs = [Workdir(one).config() for one in workdirs]
    return any("mesh" in config and config.mesh.model > 1 for config in configs)


def check_share(verb: str, spec: process_spec.ProcessSpec, inputs: Sequence[str | None], num_items: int | None) -> None:
    """Raise UserError if several processes would read stdin, or if there are fewer items than processes."""
    for name in inputs:
        if name is None or name == "-" or not find(name).is_file():
            raise UserError(
                f"nmt-jax {verb}: {spec.processes} processes cannot share {name or 'stdin'}: name a file that all of "
                "them can read"
            )
    if num_items is not None and num_items < spec.processes:
        raise UserError(
            f"{inputs[0]}: {num_items} lines are too few for {spec.processes} processes; use at most {num_items}"
        )


class Output:
    """The output of a verb, in blocks of items: `shared` with other processes, or stdout if None."""

    def __init__(self, shared: "SharedOutput | None", block_size: int):
        self.shared = shared
        self._block_size = block_size

    def write(
        self,
        items: Iterable[Any],
        answer: Answer,
        done: str,
        total: int | None = None,
        *,
        heading: bytes = b"",
        ending: bytes = b"",
        summarize: Callable[[], Any] = lambda: None,
    ) -> list[Any]:
        """Write what `answer` returns for each block of items; returns the summaries of all blocks.

        done: the word for what is counted, of which there are `total`. heading, ending: what is written before and
        after. summarize: called after each block, returns a JSON value for it. With several processes, only the one
        that joins the parts returns summaries.
        """
        blocks = enumerate(chunks(items, self._block_size))
        if self.shared is None:
            return self._to_stdout(blocks, answer, done, total, heading, ending, summarize)
        digests: list[str] = []
        rows = self._own_rows(self.shared, blocks, answer, summarize, digests)
        for _ in track(rows, done, total=total and -(-total // self.shared.num_shares)):
            pass
        if not self.shared.is_joiner(len(digests)):
            return []
        summaries = []
        for block, expected in enumerate(digests):
            self.shared.parts.check_input(block, expected)
            summaries.append(self.shared.parts.read(block).summary)
        self.shared.parts.join(len(digests), heading, ending)
        return summaries

    def write_text(self, text: str) -> None:
        """Write a text and a line feed as the whole output, when nothing else has been written."""
        if self.shared is None:
            print(text)
            return
        with whole_file(self.shared.parts.output) as file:
            file.write(f"{text}\n".encode())
        self.shared.parts.discard()

    def _to_stdout(
        self,
        blocks: Iterable[tuple[int, list[Any]]],
        answer: Answer,
        done: str,
        total: int | None,
        heading: bytes,
        ending: bytes,
        summarize: Callable[[], Any],
    ) -> list[Any]:
        summaries = []

        def rows() -> Iterator[bytes]:
            before = heading
            for number, items in blocks:
                for row in answer(number * self._block_size, items):
                    yield before + row
                    before = b""
                summaries.append(summarize())
            sys.stdout.buffer.write(before + ending)

        streams.write_blocks(rows(), done, total)
        return summaries

    def _own_rows(
        self,
        shared: "SharedOutput",
        blocks: Iterable[tuple[int, list[Any]]],
        answer: Answer,
        summarize: Callable[[], Any],
        digests: list[str],
    ) -> Iterator[bytes]:
        """Write the parts of this process, and yield their rows; appends the digest of each block to `digests`."""
        for number, items in blocks:
            digests.append(digest(items))
            if not shared.takes(number, digests[-1]):
                continue
            rows = []
            for row in answer(number * self._block_size, items):
                rows.append(row)
                yield row
            shared.write(number, Part(b"".join(rows), digests[-1], summarize()))
        if 0 < len(digests) <= shared.spec.process and not shared.together:
            print(
                f"nmt-jax: process {shared.spec.process} has nothing to do: --chunk={self._block_size} makes "
                f"{len(digests)} blocks; a smaller --chunk occupies more processes",
                file=sys.stderr,
            )
