"""The generated pages of the reference are current, and complete."""

import functools
import re

import pytest

import metrics_jax
from nmt_jax.__main__ import VERBS, verb_flags
from nmt_jax.commands.flag_text import flag_texts
from nmt_jax.reference.__main__ import PAGES
from nmt_jax.reference.api import _prose
from tests.conftest import ROOT


@functools.cache
def generated(name):
    return PAGES[name]()


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_current(name):
    page = (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8")
    assert page == generated(name), "run: python -m nmt_jax.reference docs/reference"


def test_the_flags_page_has_every_flag_of_every_verb():
    sections = re.split(r"^## (\w+)$", generated("flags.md"), flags=re.MULTILINE)[1:]
    assert sections[::2] == list(VERBS)
    for verb, text in zip(sections[::2], sections[1::2], strict=True):
        assert re.findall(r"^\| `--(\w+)`", text, re.MULTILINE) == [
            name for name in verb_flags(verb) if name != "verbose"
        ]


def test_flags_in_words():
    texts = {flag.name: flag for flag in flag_texts(verb_flags("mbr"))}
    assert texts["method"].values == "one of exact, aggregate, prune"
    assert texts["confidence"][1:4] == ("0.99", (), "a number, more than 0 and less than 1")
    assert texts["utility"][1:4] == ("chrf", (), "strings, separated by commas")
    assert (texts["download"].default, texts["download"].values) == ("false", "true or false")
    assert texts["input"].default == ""
    overrides = next(flag for flag in flag_texts(verb_flags("train")) if flag.name == "override")
    assert overrides.values == "a string, repeatable"


def test_the_api_page_has_every_public_name_with_its_docstring():
    parts = re.split(r"^### (`.*`)$", generated("api.md"), flags=re.MULTILINE)
    described = {
        name.rpartition(".")[2]: text
        for names, text in zip(parts[1::2], parts[2::2], strict=True)
        for name in re.findall(r"[\w.]+", names)
    }
    assert {*metrics_jax.__all__} - {"__version__"} <= described.keys()
    assert {"load", "Translation", "LanguageModel", "Classifier", "TextEncoder", "Result"} <= described.keys()
    for name in {*metrics_jax.__all__} - {"__version__", "load"}:
        sentence = getattr(metrics_jax, name).__doc__.partition("\n")[0].replace("<", "&lt;")
        assert re.sub("`", "", sentence) in re.sub("`", "", described[name])
    assert "    smooth_value: float | None = None\n" in described["BLEU"]
    assert described["CDER"].startswith("\n\n```python\nclass CDER:\n    lowercase: bool = False\n```\n")  # inherited
    assert "def n_best(self, lines: Sequence[str], n_best: int = 1, **options: Any)" in described["Translation"]


def test_options_in_docstrings_become_code():
    text = "Rank by beta.\n\nbeta: weight of alpha. alpha, beta (-b): see x:beta: no. gamma: other"
    assert _prose(text, ["alpha", "beta"]) == (
        "Rank by beta.\n\n`beta`: weight of alpha. `alpha`, `beta` (-b): see x:`beta`: no. gamma: other"
    )
