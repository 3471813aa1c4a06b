"""`nmt-jax features`: reads the path of an image per line, writes the features of its patches to a file."""

import itertools
import pathlib
from collections.abc import Iterator, Sequence

import numpy as np
from absl import flags

from nmt_jax.commands import streams
from nmt_jax.data.lines import chunks, num_lines
from nmt_jax.errors import UserError
from nmt_jax.schema.number_flags import define_integer
from nmt_jax.storage.files import whole_file

BATCH = 16


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax features`."""
    streams.define_input_flag(flag_values, ": the paths of images, relative to the working directory")
    help_text = "Folder of a ViT or CLIP in Hugging Face's format, with model.safetensors and preprocessor_config.json."
    flags.DEFINE_string("encoder", None, help_text, flag_values)
    help_text = "Folder for the files, 1.npy for the first line; their paths are written to stdout. Must not exist."
    flags.DEFINE_string("output", None, help_text, flag_values)
    flags.DEFINE_enum("dtype", "float32", ["float32", "bfloat16"], "Type of the matrix products.", flag_values)
    define_integer(flag_values, "batch", BATCH, "Images per batch.", low=1, high=4096)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Write a file of features for each line of the input."""
    from nmt_jax.pretrained.vision import load_vision

    streams.check_no_arguments("features", positional)
    if not flag_values.encoder or not flag_values.output:
        raise UserError("nmt-jax features needs --encoder=FOLDER and --output=FOLDER")
    folder, total = pathlib.Path(flag_values.output), num_lines(flag_values.input)
    if folder.exists():
        raise UserError(f"{folder}: exists already; name a new folder")
    encoder = load_vision(pathlib.Path(flag_values.encoder), flag_values.dtype)
    folder.mkdir(parents=True)

    def written() -> Iterator[bytes]:
        numbers = itertools.count(1)
        for lines in chunks(streams.open_lines(flag_values.input), flag_values.batch):
            if empty := [number for number, line in enumerate(lines) if not line.strip()]:
                where = f"{flag_values.input or 'stdin'}:{next(numbers) + empty[0]}"
                raise UserError(f"{where}: the line is empty; it must name an image")
            for rows in encoder.features([line.strip() for line in lines], flag_values.batch):
                path = folder / f"{next(numbers)}.npy"
                with whole_file(path) as file:
                    np.save(file, rows)
                yield f"{path}\n".encode()

    streams.write_blocks(written(), "written", total)
    return 0
