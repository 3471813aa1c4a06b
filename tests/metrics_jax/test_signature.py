import dataclasses

import pytest

from metrics_jax import BLEU, BERTScore, ChrF, __version__, parse
from tests.fixtures import tiny_encoder


def test_a_signature_holds_every_option():
    assert ChrF(word_order=2).signature == (
        "chrf|char_order:6|word_order:2|beta:2|lowercase:false|whitespace:false|eps_smoothing:false"
        f"|version:{__version__}"
    )


def test_the_number_of_references_belongs_to_the_call():
    assert "|nrefs:2|" in BLEU()(["a"], [["a", "b"]]).signature
    assert "|nrefs:var|" in BLEU()(["a", "b"], [["a", "b"], ["c"]]).signature
    assert parse(BLEU()(["a"], [["a", "b"]]).signature) == BLEU()


@pytest.mark.parametrize(
    ("text", "metric"),
    [
        ("bleu", BLEU()),
        ("bleu|tokenize:zh|smooth_value:0.5|smooth_method:floor", BLEU("zh", smooth_value=0.5, smooth_method="floor")),
        ("chrf++", ChrF(word_order=2)),
        ("chrf++|beta:1", ChrF(word_order=2, beta=1)),
    ],
)
def test_the_beginning_of_a_signature_is_enough(text, metric):
    assert parse(text) == metric


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


def test_warning_for_another_version():
    with pytest.warns(UserWarning, match="signature is of version 0.0"):
        assert parse("bleu|version:0.0") == BLEU()


def test_the_precision_of_an_encoder_is_shown():
    encoder = tiny_encoder.make()
    assert f"|encoder:{'a' * 16}|" in BERTScore(encoder).signature
    assert f"|encoder:{'a' * 16}.bfloat16|" in BERTScore(dataclasses.replace(encoder, dtype="bfloat16")).signature
