"""Writes the reference page of config keys: `python -m nmt_jax.schema docs/reference/config-keys.md`."""

import pathlib
import sys

from nmt_jax.schema.reference import markdown

if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).write_text(markdown(), encoding="utf-8")
