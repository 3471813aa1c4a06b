"""Reads the golden files: what public implementations returned for fixed inputs."""

import json
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest


def read(shared: pathlib.Path, name: str) -> dict[str, Any]:
    """The golden file of a metric; skips loudly without it."""
    path = shared / "golden" / f"{name}.json"
    if not path.exists():
        pytest.skip(f"no golden values at {path}")
    return json.loads(path.read_text())


def cases(shared: pathlib.Path, name: str) -> Iterator[tuple[dict[str, Any], list[str], list[list[str]]]]:
    """Every case of a golden file with its hypotheses and references."""
    golden = read(shared, name)
    for case in golden["cases"]:
        given = golden["inputs"][case["input"]]
        sets = (
            [golden["inputs"][part] for part in given["concatenation_of"]] if "concatenation_of" in given else [given]
        )
        hypotheses = [text for texts in sets for text in texts["hypotheses"]]
        references = [group for texts in sets for group in texts["references"]]
        yield case, hypotheses, references
