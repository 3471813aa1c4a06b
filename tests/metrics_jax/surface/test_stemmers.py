"""Stems against those of ROUGE-1.5.5.pl."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics_jax.surface import stemmers

# Stems by the script.
STEMS = {
    "caresses": "caress",
    "ponies": "poni",
    "agreed": "agre",
    "hopping": "hop",
    "filing": "file",
    "yielding": "yield",
    "happy": "happi",
    "relational": "relat",
    "analogy": "analog",
    "possibly": "possibl",
    "controlling": "control",
    "adjustment": "adjust",
    "replacement": "replac",
}
STEP_4 = {
    "element": "elem",
    "agreement": "agreem",
    "accidental": "accid",
    "abolitionism": "abolit",
}  # differ from Porter's


@pytest.mark.parametrize(("word", "expected"), [*STEMS.items(), *STEP_4.items()])
def test_porter_equals_the_script(word, expected):
    assert stemmers.rouge_porter(word) == expected


@pytest.mark.parametrize("word", STEP_4)
def test_step_4_differs_from_porter(word):
    assert stemmers.porter("MARTIN_EXTENSIONS")(word) != stemmers.rouge_porter(word)


@given(st.text("aeioybdlmnstz1", max_size=4), st.sampled_from(["", "s", "ies", "ed", "ing", "y", "ful", "ness", "ize"]))
def test_porter_equals_the_published_one_except_for_step_4(word, ending):
    word = word.replace("yy", "y") + ending
    if not any(suffix in word for suffix in ("ment", "ent", "ion")):
        assert stemmers.rouge_porter(word) == stemmers.porter("MARTIN_EXTENSIONS")(word)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("children", "child"),
        ("running", "run"),  # by Porter's rules
        ("went", "go"),
        ("better", "good"),
        ("felt", "feel"),
        ("aurar", "eyrir"),  # the last of two entries
        ("ashes", "ash"),  # by Porter's rules: an exception only since WordNet 3.0
        ("morses", "mors"),
    ],
)
def test_irregular_forms(princeton, monkeypatch, word, expected):
    monkeypatch.setenv("WNSEARCHDIR", str(princeton))
    assert stemmers.rouge_stem(word) == expected


def test_wordnet_unpacked(princeton, monkeypatch, tmp_path):
    for path in princeton.glob("*.exc.gz"):
        (tmp_path / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
    monkeypatch.setenv("WNSEARCHDIR", str(tmp_path))
    assert len(stemmers.irregular_forms()) == 5630
    (tmp_path / "verb.exc").write_text("went walk\n")
    stemmers._read_exceptions.cache_clear()
    with pytest.raises(ValueError, match="has another version"):
        stemmers.irregular_forms()


def test_no_wordnet(monkeypatch, tmp_path):
    monkeypatch.setenv("WNSEARCHDIR", str(tmp_path / "none"))
    with pytest.raises(ValueError, match="WNSEARCHDIR"):
        stemmers.irregular_forms()
