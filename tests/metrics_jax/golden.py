"""Reads the golden files: what public implementations returned for fixed inputs."""

import json
import pathlib
import re
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


def mteval(shared: pathlib.Path) -> tuple[list[str], list[str]]:
    """The 100 segments that mteval-v13a was run on, and their references; skips loudly without them."""
    folder = shared / "data" / "mteval13a_golden"
    if not folder.is_dir():
        pytest.skip(f"no data at {folder}")

    def segments(side: str) -> list[str]:
        text = (folder / f"newstest2015-100sents-enru-{side}.ru.sgm").read_text(encoding="utf-8")
        return re.findall(r"<seg[^>]*>(.*?)</seg>", text, re.DOTALL)

    return segments("google"), segments("ref")
