"""Tables with named columns: TSV files with a header, or JSONL files with one object per line."""

import json
import math
import os
import pathlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from nmt_jax.data.lines import read_lines
from nmt_jax.errors import UserError

SUFFIXES = (".tsv", ".jsonl")


class Row(NamedTuple):
    """A row by column name, its location (FILE:LINE), and that of the column names (the header of a TSV file)."""

    fields: dict[str, Any]
    location: str
    header: str

    def column(self, names: str) -> str:
        """The first column of "a|b" that the row has. Raises UserError if it has none."""
        for name in names.split("|"):
            if name in self.fields:
                return name
        raise UserError(f"{self.header}: no column {names!r}; the columns are {', '.join(self.fields)}")

    def value(self, names: str) -> Any:
        """The value of a column, named as in `column`: a string in TSV, any JSON value in JSONL."""
        return self.fields[self.column(names)]

    def texts(self, names: str, at_least: int = 0) -> list[str]:
        """The value of a column that is a text or, in JSONL, a list of texts. Raises UserError for other values."""
        value = self.value(names)
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or len(texts) < at_least or not all(isinstance(text, str) for text in texts):
            raise UserError(f"{self.location}: {self.column(names)!r} is neither a string nor a list of strings")
        return texts

    def number(self, names: str) -> float:
        """The value of a column that is a finite number. Raises UserError for other values, and for an empty one."""
        name, value = self.column(names), self.value(names)
        if value is None or value == "":
            raise UserError(f"{self.location}: {name!r} is empty: remove rows without judgements")
        try:
            number = float(value) if not isinstance(value, bool) else math.nan
        except (TypeError, ValueError, OverflowError):
            raise UserError(f"{self.location}: {name!r} is not a number: {str(value)[:40]!r}") from None
        if not math.isfinite(number):
            raise UserError(f"{self.location}: {name!r} is {value!r}: remove rows without judgements")
        return number


def suffix(path: str | os.PathLike[str]) -> str:
    """The suffix of a file name, ignoring `.gz`."""
    return pathlib.Path(os.fspath(path).removesuffix(".gz")).suffix


def read_table(path: str | os.PathLike[str], what: str) -> Iterator[Row]:
    """The rows of a .tsv or .jsonl file, plain or .gz; `what` names the content in messages.

    A TSV file has a header; fields are separated by tabs, and quotation marks are ordinary characters. Raises UserError
    immediately for other kinds of files, and `FILE:LINE: …` for a row whose length differs from the header, or that is
    not a JSON object.
    """
    kinds = {".tsv": _of_tsv, ".jsonl": _of_jsonl}
    if suffix(path) not in kinds:
        raise UserError(f"{path}: {what} must be in a {' or '.join(kinds)} file, plain or with .gz")
    return kinds[suffix(path)](path)


def _of_tsv(path: str | os.PathLike[str]) -> Iterator[Row]:
    lines = read_lines(path)
    header = next(lines).split("\t")
    if twice := [name for name in dict.fromkeys(header) if header.count(name) > 1]:
        raise UserError(f"{path}:1: the column {twice[0]!r} occurs twice; rename one")
    for number, line in enumerate(lines, start=2):
        fields = line.split("\t")
        if len(fields) != len(header):
            raise UserError(f"{path}:{number}: {len(fields)} tab-separated fields, but the header has {len(header)}")
        yield Row(dict(zip(header, fields, strict=True)), f"{path}:{number}", f"{path}:1")


def _of_jsonl(path: str | os.PathLike[str]) -> Iterator[Row]:
    for number, line in enumerate(read_lines(path), start=1):
        location = f"{path}:{number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{location}: not JSON ({error})") from None
        if not isinstance(row, dict):
            raise UserError(f"{location}: not a JSON object")
        yield Row(row, location, location)
