"""An output folder that is created completely or not at all."""

import contextlib
import pathlib
from collections.abc import Iterator

from nmt_jax import files
from nmt_jax.errors import UserError


def check_new(output: pathlib.Path) -> None:
    """Raises UserError if `output` is a file or a folder that is not empty."""
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise UserError(f"{output}: already exists; name a new folder")


@contextlib.contextmanager
def whole_folder(output: pathlib.Path) -> Iterator[pathlib.Path]:
    """Provide a temporary folder that becomes `output` at the end, and is removed if writing fails.

    Raises UserError if it cannot be written.
    """
    try:
        with files.whole_folder(output) as folder:
            yield folder
    except OSError as error:
        raise UserError(f"{output}: cannot be written: {error.strerror or error}") from error
