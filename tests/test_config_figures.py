"""The figures in the docstrings of configs stand on the pages of docs/results that the docstrings name."""

import ast
import re
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal

import pytest

from tests.conftest import ROOT

CONFIGS = {path.stem: path for path in sorted((ROOT / "configs").glob("*.py")) if path.stem != "common"}
COMMANDS = re.compile(r"(?m)^    (?:nmt-jax|python|zcat|echo) .*(?:\n        .*)*")
SIGNATURE = re.compile(r"\S+\|version:\S+")
QUOTED = re.compile(r"\b(?:[Pp]aper|published|sections?)\b")  # in sentences about what others measured
FIGURE = re.compile(r"(?<![\w.,-])(?:\d+\.\d+(?!\.?\d)|\d+(?= %))")  # counts, sizes and years have no decimals
NUMBER = re.compile(r"(?<![\w.])\d*\.?\d+")
RESULTS = re.compile(r"docs/results/[\w-]+\.md")
UNTRAINED = re.compile(r"not\s+trained\s+by\s+us|have\s+not\s+trained", re.IGNORECASE)


def docstring(name: str) -> str:
    """The docstring of a config."""
    return ast.get_docstring(ast.parse(CONFIGS[name].read_text(encoding="utf-8"))) or ""


def figures(text: str) -> list[str]:
    """The figures of a docstring, but for its commands and what it quotes."""
    sentences = re.split(r"(?<=[.:;])\s+", SIGNATURE.sub("", COMMANDS.sub("", text)))
    return FIGURE.findall(" ".join(sentence for sentence in sentences if not QUOTED.search(sentence)))


def missing(found: Sequence[str], page: str) -> list[str]:
    """The figures that no number of a page is when it is rounded, as itself or in percent."""
    numbers = [Decimal(number) for number in NUMBER.findall(page)]

    def stands(figure: str) -> bool:
        unit = Decimal(1).scaleb(-len(figure.partition(".")[2]))
        return any(
            Decimal(figure) == (scale * one).quantize(unit, ROUND_HALF_UP) for one in numbers for scale in (1, 100)
        )

    return [figure for figure in found if not stands(figure)]


@pytest.mark.parametrize("name", CONFIGS)
def test_figures_stand_on_the_pages_named(name):
    text = docstring(name)
    pages = [(ROOT / page).read_text(encoding="utf-8") for page in RESULTS.findall(text)]
    assert pages or UNTRAINED.search(text), "name the page of docs/results, or say that the config is not trained by us"
    assert missing(figures(text), "\n".join(pages)) == []


def test_few_configs_are_untrained():
    untrained = {name for name in CONFIGS if not RESULTS.search(docstring(name))}
    assert untrained == {"bert_base", "bert_large", "transformer"}


def test_other_figures_are_found():
    text = "BLEU 22.4 and 0.21 of pairs, 93 %, on 3 cores.\n\n    nmt-jax train 9.9\n\nThe paper reports 27.3."
    assert figures(text) == ["22.4", "0.21", "93"]
    assert missing(figures(text), "| 22.37 | .2051 | 0.93 |") == []
    assert missing(figures(text), "| 22.31 | .194 | 92 |") == ["22.4", "0.21", "93"]
