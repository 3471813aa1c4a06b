"""`nmt-jax features`: reads the path of an image per line, writes the features of its patches to a file."""

import itertools
import json
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from absl import flags

from nmt_jax.commands import streams
from nmt_jax.errors import UserError
from nmt_jax.schema.number_flags import define_integer
from nmt_jax.storage.files import whole_file
from nmt_jax.storage.paths import local_path_of, path_of

BATCH = 16
RECORD = "features.json"  # in the folder: what its files were made from


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax features`."""
    streams.define_input_flag(flag_values, ": the paths of images, relative to the working directory")
    help_text = "Folder of a ViT or CLIP in Hugging Face's format, with model.safetensors and preprocessor_config.json."
    flags.DEFINE_string("encoder", None, help_text, flag_values)
    help_text = (
        "New folder for the files, 1.npy for the first line; their paths are written to stdout. After an interruption, "
        "the same command continues it."
    )
    flags.DEFINE_string("output", None, help_text, flag_values)
    flags.DEFINE_enum("dtype", "float32", ["float32", "bfloat16"], "Type of the matrix products.", flag_values)
    define_integer(flag_values, "batch", BATCH, "Images per batch.", low=1, high=4096)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Write a file of features for each line of the input."""
    from nmt_jax.pretrained.vision import load_vision

    streams.check_no_arguments("features", positional)
    if not flag_values.encoder or not flag_values.output:
        raise UserError("nmt-jax features needs --encoder=FOLDER and --output=FOLDER")
    folder = path_of(flag_values.output)
    images = [line.strip() for line in streams.open_lines(flag_values.input)]
    if "" in images:
        where = f"{flag_values.input or 'stdin'}:{images.index('') + 1}"
        raise UserError(f"{where}: the line is empty; it must name an image")
    record = {"encoder": flag_values.encoder, "dtype": flag_values.dtype, "images": images}
    num_done = _num_done(folder, record)
    encoder = load_vision(local_path_of(flag_values.encoder), flag_values.dtype)

    def written() -> Iterator[pathlib.Path]:
        numbers = itertools.count(1)
        yield from (folder / f"{number}.npy" for number in itertools.islice(numbers, num_done))
        for first in range(num_done, len(images), flag_values.batch):
            found = encoder.features(images[first : first + flag_values.batch], flag_values.batch)
            if first == num_done:
                with whole_file(folder / RECORD) as file:
                    file.write(json.dumps(record).encode())
            for rows in found:
                path = folder / f"{next(numbers)}.npy"
                with whole_file(path) as file:
                    np.save(file, rows)
                yield path

    streams.write_blocks((f"{path}\n".encode() for path in written()), "written", len(images))
    return 0


def _num_done(folder: pathlib.Path, record: dict[str, Any]) -> int:
    """Return the number of files that an interrupted command left. Raises UserError if it was another command."""
    names = {path.name for path in folder.iterdir()} if folder.exists() else set()
    if not names:
        return 0
    done = next(number for number in itertools.count() if f"{number + 1}.npy" not in names)
    try:
        found = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        same = {**found, "images": found["images"][:done]} == {**record, "images": record["images"][:done]}
    except (OSError, ValueError, KeyError, TypeError):
        same = False
    if not same:
        raise UserError(f"{folder}: exists already and was not made by this command; name a new folder")
    return done
