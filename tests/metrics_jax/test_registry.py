import dataclasses
import typing

import pytest

from metrics_jax import BLEU, ChrF, load, parse
from metrics_jax.registry import metric_class, needs


@pytest.mark.parametrize(
    ("text", "metric"),
    [
        ("bleu", BLEU()),
        ("bleu|tokenize:zh|smooth_value:0.5|smooth_method:floor", BLEU("zh", smooth_value=0.5, smooth_method="floor")),
        ("chrf++", ChrF(word_order=2)),
        ("spBLEU", BLEU("flores200")),
        ("chrf++|beta:1", ChrF(word_order=2, beta=1)),
        ("chrf|beta:0.5", ChrF(beta=0.5)),
    ],
)
def test_the_beginning_of_a_signature_is_enough(text, metric):
    assert load(text) == parse(text) == metric


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("blue", "no metric 'blue'; did you mean bleu"),
        ("bleu|tokenise:zh", "no option 'tokenise:zh'; did you mean tokenize"),
        ("bleu|lowercase", r"bleu has no option 'lowercase'.*\(written option:value\)"),
        ("bleu|lowercase:maybe", "'maybe' is not bool"),
        ("bleu|max_ngram_order:four", "'four' is not int"),
        ("bleu|smooth_value:x", "'x' is not float or none"),
        ("bleu|tokenize:zz", "tokenize='zz': choose one of"),
    ],
)
def test_invalid_signatures(text, line):
    with pytest.raises(ValueError, match=line):
        parse(text)


def test_unknown_options_by_keyword():
    with pytest.raises(ValueError, match="bleu has no option 'foo'; its options are tokenize, lowercase, "):
        load("bleu", foo=1)


def test_warning_for_another_version():
    with pytest.warns(UserWarning, match="signature is of version 0.0"):
        assert parse("bleu|version:0.0") == BLEU()


def test_options_without_a_default():
    assert needs("bertscore|layer:9") == ["encoder"]
    assert needs("wmd") == ["vectors"]
    assert needs("chrf++") == []
    assert metric_class("chrf++") is ChrF
    with pytest.raises(ValueError, match="bertscore needs encoder: pass it by keyword"):
        parse("bertscore")


@pytest.mark.parametrize("name", ["bleu", "nist", "chrf", "overlap", "rouge155", "cider", "eed", "gtm", "meteor_nltk"])
def test_numbers_that_make_no_sense_are_refused(name):
    kind = metric_class(name)
    kinds = typing.get_type_hints(kind)
    numbers = [
        field.name for field in dataclasses.fields(kind) if kinds[field.name] in (int, float, float | None, int | float)
    ]
    for option in set(numbers) - {"skip_distance"}:  # any distance is possible
        for text in ("-1", "5000") if kinds[option] is int else ("-1", "nan", "inf"):
            with pytest.raises(ValueError, match=f"^{option}="):
                parse(f"{name}|{option}:{text}")
