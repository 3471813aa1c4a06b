"""The parts shared by the verbs that read lines and write lines: flags and their checks, input, output."""

import json
import os
import pathlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from absl import flags

from nmt_jax.data.lines import chunks, decode_lines, find, read_lines
from nmt_jax.errors import UserError
from nmt_jax.progress import track
from nmt_jax.schema.number_flags import define_integer
from nmt_jax.storage.paths import is_remote, path_of

Item = TypeVar("Item")

# Flags


def define_workdir_flag(flag_values: flags.FlagValues, contents: str = "a trained model") -> None:
    """Define `--workdir`."""
    flags.DEFINE_string("workdir", None, f"Folder of {contents}.", flag_values)


def define_input_flag(flag_values: flags.FlagValues, contents: str = "") -> None:
    """Define `--input`; contents: what the file holds, if not just lines of text."""
    help_text = f"Read this file instead of stdin{contents}; .gz files are decompressed."
    flags.DEFINE_string("input", None, help_text, flag_values)


def define_checkpoint_flags(flag_values: flags.FlagValues, average: bool = True) -> None:
    """Define `--checkpoint`, and `--average` if the verb can use the mean of several checkpoints."""
    if average:
        help_text = (
            "Use the mean of the last N checkpoints; 1: the last one. Default: decode.average of the workdir's config "
            "if it is above 1, else the best checkpoint."
        )
        define_integer(flag_values, "average", None, help_text, low=1, high=1000)
    default = "the mean of the last decode.average checkpoints if that is above 1, else best" if average else "best"
    flags.DEFINE_enum("checkpoint", None, ["best", "last"], f"Checkpoint to use; default: {default}.", flag_values)


def define_chunk_flag(flag_values: flags.FlagValues, default: int) -> None:
    """Define `--chunk`: larger chunks make fuller batches, smaller ones show output sooner."""
    help_text = "Number of inputs processed together; 1 if stdin is a terminal."
    define_integer(flag_values, "chunk", default, help_text, low=1, high=1_000_000)


def define_prediction_flags(flag_values: flags.FlagValues, chunk: int, input_contents: str = "") -> None:
    """Define the flags of a verb that applies a trained model to each line; chunk: the default of `--chunk`."""
    define_workdir_flag(flag_values)
    define_input_flag(flag_values, input_contents)
    define_checkpoint_flags(flag_values)
    define_chunk_flag(flag_values, chunk)


def check_no_arguments(verb: str, positional: Sequence[str], instead: str = "") -> None:
    """Raise UserError for an argument that is not a flag; instead: the flag to use if the verb does not read stdin."""
    if positional and instead:
        raise UserError(f"nmt-jax {verb}: unexpected argument {positional[0]!r}; use {instead}")
    if positional:
        raise UserError(f"nmt-jax {verb} reads stdin: … < {positional[0]}, or --input={positional[0]}")


def required_workdir(verb: str, flag_values: flags.FlagValues, contents: str = "a trained model") -> Any:
    """Return the value of `--workdir`; raises UserError if it is missing."""
    if not flag_values.workdir:
        raise UserError(f"nmt-jax {verb} needs --workdir=FOLDER of {contents}")
    return flag_values.workdir


def existing_folders(parts: Sequence[str]) -> list[pathlib.Path]:
    """Return the workdirs of a list that was split at commas, which may occur in the name of a sweep's workdir."""
    folders: list[pathlib.Path] = []
    start = 0
    while start < len(parts):
        joined = (",".join(parts[start:stop]) for stop in range(len(parts), start, -1))
        name = next((one for one in joined if path_of(one).is_dir()), parts[start])
        folders.append(path_of(name))
        start += name.count(",") + 1
    return folders


def check_effect(flag_values: flags.FlagValues, names: Iterable[str], has_effect: bool, because: str) -> None:
    """Raise UserError for a flag that was given but has no effect; because: `without` or `with` what other flag."""
    for name in names:
        if flag_values[name].present and not has_effect:
            raise UserError(f"--{name} has no effect {because}")


def chosen_checkpoint(flag_values: flags.FlagValues) -> str | int | None:
    """Return "best", "last", n for the mean of the last n checkpoints, or None for the default.

    Raises UserError if both `--checkpoint` and `--average` are given.
    """
    if flag_values.checkpoint and flag_values.average:
        raise UserError("--checkpoint and --average exclude each other: use one checkpoint or the mean of several")
    return flag_values.checkpoint or flag_values.average


def chunk_size(flag_values: flags.FlagValues) -> int:
    """Return the value of `--chunk`, or 1 if a person types the input and waits for each result."""
    return 1 if not flag_values.input and sys.stdin.isatty() else flag_values.chunk


def prediction_options(verb: str, flag_values: flags.FlagValues, positional: Sequence[str]) -> dict[str, Any]:
    """Check the flags of such a verb; returns workdir, checkpoint and chunk. Raises UserError for a wrong request."""
    check_no_arguments(verb, positional)
    return {
        "workdir": required_workdir(verb, flag_values),
        "checkpoint": chosen_checkpoint(flag_values),
        "chunk": chunk_size(flag_values),
    }


# Input


def open_lines(path: str | None) -> Iterator[str]:
    """Return the lines of a file, or of stdin if `path` is None."""
    return read_lines(path) if path else decode_lines(sys.stdin.buffer, "stdin")


def predict_in_chunks(task: Any, params: Any, items: Iterable[Item], size: int) -> Iterator[tuple[Item, Any]]:
    """Yield each item with its prediction, reading `size` items at a time."""
    for group in chunks(items, size):
        yield from zip(group, task.predict(params, group), strict=True)


# Output


def define_overwrite_flag(flag_values: flags.FlagValues, default: str = "") -> None:
    """Define `--overwrite`; default: the output that is replaced without it, if there is one."""
    help_text = "Replace the output if it exists." + (f" {default} is always replaced." if default else "")
    flags.DEFINE_boolean("overwrite", False, help_text, flag_values)


def check_new(flag_values: flags.FlagValues, *outputs: str | os.PathLike[str]) -> None:
    """Raise UserError for an output file that exists, unless `--overwrite` is set, or that cannot be written."""
    for path in map(path_of, outputs):
        if path.exists() and not path.is_file():
            raise UserError(f"{path}: is {'a folder' if path.is_dir() else 'not a regular file'}; name another file")
        if not flag_values.overwrite and (path.is_file() or path.is_symlink()):
            raise UserError(f"{path}: already exists; name another file, or replace it with --overwrite")
        if not is_remote(path):
            folder = next(parent for parent in path.absolute().parents if parent.exists())
            if not (folder.is_dir() and os.access(folder, os.W_OK)):
                raise UserError(f"{path}: {folder} is not a writable folder; name a file in another folder")


def check_distinct(inputs: Iterable[str | None], outputs: Iterable[str | None]) -> None:
    """Raise UserError if an output file is also an input, or another output; None and "-" are not files."""
    used = {_identity(find(name)) for name in inputs if name and name != "-"}
    for output in filter(None, outputs):
        if (identity := _identity(path_of(output))) in used:
            raise UserError(f"{output}: a file would be used twice; name another output")
        used.add(identity)


def _identity(path: pathlib.Path) -> str:
    return str(path) if is_remote(path) else os.path.realpath(path)


def parallel_files(prefix: str, source: str, target: str | None) -> list[str]:
    """Return the names of output files, whose suffixes are those of the input files, without .gz; only one without
    `target`.

    Raises UserError if the suffixes of two files are missing or equal.
    """
    suffixes = [pathlib.PurePath(name.removesuffix(".gz")).suffix for name in (source, target) if name]
    if target and (not all(suffixes) or suffixes[0] == suffixes[1]):
        raise UserError(
            f"--source={source} --target={target}: the names of the output files end as these do; "
            "use names that end in different languages, such as book.en and book.de"
        )
    return [f"{prefix}{suffix}" for suffix in suffixes]


def encoded(rows: Iterable[str]) -> Iterator[bytes]:
    """Yield each row and a line feed as UTF-8."""
    return (f"{row}\n".encode() for row in rows)


def write_blocks(blocks: Iterable[bytes], done: str, total: int | None = None) -> None:
    """Write each block to stdout as soon as it is there.

    Unless stdout is a terminal, stderr shows the number of blocks after the word `done`, and the time left if there is
    a `total`.
    """
    for block in blocks if sys.stdout.isatty() else track(blocks, done, total=total):
        sys.stdout.buffer.write(block)
        sys.stdout.buffer.flush()


def json_row(**fields: Any) -> str:
    """Return the fields as one line of JSON."""
    return json.dumps(fields, ensure_ascii=False)
