"""`nmt-jax encoders`: lists published encoders that load."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from absl import flags

from nmt_jax.errors import UserError
from nmt_jax.pretrained.catalogue import PUBLISHED

Row = dict[str, Any]


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax encoders`."""
    families = [*dict.fromkeys(one.family for one in PUBLISHED.values())]
    help_text = "List only models of this family, the model_type in their config.json."
    flags.DEFINE_enum("family", None, families, help_text, flag_values)
    help_text = "Output format: an aligned table (text), columns separated by tabs (tsv), a list of objects (json)."
    flags.DEFINE_enum("format", "text", list(WRITERS), help_text, flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Print a row for every known model, or for those of a family."""
    if positional:
        raise UserError(f"nmt-jax encoders takes flags only, not {positional[0]!r}")
    chosen = {name: one for name, one in PUBLISHED.items() if flag_values.family in (None, one.family)}
    rows = [{"name": name, **one._asdict()} for name, one in chosen.items()]
    for row in rows:
        row["bertscore_layer"] = row.pop("layer")
    print(WRITERS[flag_values.format](rows))
    return 0


def _cells(rows: Sequence[Row]) -> list[list[str]]:
    return [[*rows[0]], *(["" if value is None else str(value) for value in row.values()] for row in rows)]


def _write_text(rows: Sequence[Row]) -> str:
    cells = _cells(rows)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)
    return "\n".join(line.rstrip() for line in lines)


def _write_tsv(rows: Sequence[Row]) -> str:
    return "\n".join(map("\t".join, _cells(rows)))


def _write_json(rows: Sequence[Row]) -> str:
    return json.dumps(rows, indent=2)


WRITERS: dict[str, Callable[[Sequence[Row]], str]] = {"text": _write_text, "tsv": _write_tsv, "json": _write_json}
