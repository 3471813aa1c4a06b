"""Tables: rows whose columns have names, of a TSV file or, as JSON objects, of a JSONL file, a line each."""

import json
import os
import pathlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from nmt_jax.data.lines import read_lines
from nmt_jax.errors import UserError

SUFFIXES = (".tsv", ".jsonl")


class Row(NamedTuple):
    """A row by the names of its columns, where it stands, and where the names do (FILE:LINE, of a TSV its header)."""

    fields: dict[str, Any]
    where: str
    header: str

    def column(self, names: str) -> str:
        """The name of a column, the first of "a|b" that the row has; UserError where it has none."""
        for name in names.split("|"):
            if name in self.fields:
                return name
        raise UserError(f"{self.header}: no column {names!r}; there are {', '.join(self.fields)}")

    def value(self, names: str) -> Any:
        """What stands in a column, named as for `column`: of a TSV a text, of JSONL whatever JSON has."""
        return self.fields[self.column(names)]


def suffix(path: str | os.PathLike[str]) -> str:
    """How the name ends, `.gz` not counted."""
    return pathlib.Path(os.fspath(path).removesuffix(".gz")).suffix


def read_table(path: str | os.PathLike[str], what: str) -> Iterator[Row]:
    """The rows of a .tsv or .jsonl file, plain or .gz; `what` they are, for messages.

    TSV: a header, then rows; fields end at tabs, and a quotation mark is a character like any other. UserError for
    another kind of file, at once, and `FILE:LINE: …` for a row of another length than the header or no JSON object.
    """
    kinds = {".tsv": _of_tsv, ".jsonl": _of_jsonl}
    if suffix(path) not in kinds:
        raise UserError(f"{path}: {what} are in {' or '.join(kinds)} files, plain or with .gz")
    return kinds[suffix(path)](path)


def _of_tsv(path: str | os.PathLike[str]) -> Iterator[Row]:
    lines = read_lines(path)
    header = next(lines).split("\t")
    for number, line in enumerate(lines, start=2):
        fields = line.split("\t")
        if len(fields) != len(header):
            raise UserError(f"{path}:{number}: {len(fields)} fields between tabs, the header has {len(header)}")
        yield Row(dict(zip(header, fields, strict=True)), f"{path}:{number}", f"{path}:1")


def _of_jsonl(path: str | os.PathLike[str]) -> Iterator[Row]:
    for number, line in enumerate(read_lines(path), start=1):
        where = f"{path}:{number}"
        try:
            row = json.loads(line)
        except ValueError as error:
            raise UserError(f"{where}: not JSON ({error})") from None
        if not isinstance(row, dict):
            raise UserError(f"{where}: not a JSON object")
        yield Row(row, where, where)
