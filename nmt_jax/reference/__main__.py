"""Writes the generated pages into a folder: `python -m nmt_jax.reference docs/reference`."""

import pathlib
import sys

from nmt_jax.reference import api, flags

PAGES = {"flags.md": flags.markdown, "api.md": api.markdown}

if __name__ == "__main__":
    for name, markdown in PAGES.items():
        (pathlib.Path(sys.argv[1]) / name).write_text(markdown(), encoding="utf-8")
