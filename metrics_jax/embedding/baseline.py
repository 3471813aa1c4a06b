"""Baselines that rescale BERTScore: the mean scores of unrelated sentences for each layer."""

import csv
import dataclasses
import functools
import hashlib
import math
import os
import pathlib

HEADER = ["LAYER", "P", "R", "F"]
LONGEST = 1 << 20  # characters of a file: a device such as /dev/zero has no end


@dataclasses.dataclass(frozen=True)
class Baseline:
    """Mean precision, recall and F of unrelated pairs (Zhang et al., 2020, section 3), one row per layer.

    Layer 0 is the embedding layer. Raises ValueError if a number is not finite or not below 1.
    """

    rows: tuple[tuple[float, float, float], ...]

    def __post_init__(self) -> None:
        for layer, row in enumerate(self.rows):
            if not all(math.isfinite(value) and value < 1 for value in row):
                raise ValueError(f"baseline of layer {layer}: {row} are not three numbers below 1")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Baseline":
        """Read a CSV file in bert-score's format: a header `LAYER,P,R,F`, then one line per layer.

        Raises ValueError with `FILE:LINE` if the file has another format.
        """
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read(LONGEST + 1)
            lines = list(csv.reader(text.splitlines()))
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise ValueError(f"{path}: cannot read the baseline ({error})") from error
        if not lines or lines[0] != HEADER or len(text) > LONGEST:
            raise ValueError(f"{path}:1: a baseline file must begin with the line {','.join(HEADER)}")
        rows: list[tuple[float, float, float]] = []
        for number, line in enumerate(lines[1:], start=2):
            try:
                layer, (p, r, f) = int(line[0]), map(float, line[1:])
            except (ValueError, IndexError) as error:
                raise ValueError(f"{path}:{number}: {','.join(line)!r} is not a layer and three numbers") from error
            if layer != len(rows):
                raise ValueError(f"{path}:{number}: expected layer {len(rows)}, found {layer}; layers must be in order")
            rows.append((p, r, f))
        try:
            return cls(tuple(rows))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file that `load` reads."""
        pathlib.Path(path).write_text(self._text, encoding="utf-8")

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the file's content."""
        return hashlib.sha256(self._text.encode()).hexdigest()

    @property
    def _text(self) -> str:
        lines = [HEADER, *([str(layer), *map(repr, row)] for layer, row in enumerate(self.rows))]
        return "".join(",".join(line) + "\n" for line in lines)
