import dataclasses

import numpy as np

from metrics_jax import BLEU, EED, WMD, BERTScore, ChrF, Vectors, WordOverlap, __version__, parse
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


def test_the_precision_of_an_encoder_is_shown():
    encoder = tiny_encoder.make()
    assert f"|encoder:{'a' * 16}|" in BERTScore(encoder).signature
    assert f"|encoder:{'a' * 16}.bfloat16|" in BERTScore(dataclasses.replace(encoder, dtype="bfloat16")).signature


def test_signs_of_signatures_may_occur_in_words():
    vectors = Vectors(["a"], np.ones((1, 2), np.float32))
    for words in (("+", "a"), ("a|b", "c:d"), ("%", "100%25", "%2B"), ("a", "b")):
        metric = WMD(vectors, stop_words=words)
        assert parse(metric.signature, vectors=vectors) == metric
    assert "|stop_words:%2B+%7C+%25+é|" in WMD(vectors, stop_words=("+", "|", "%", "é")).signature
    assert parse("wmd|stop_words:100%", vectors=vectors).stop_words == ("100%",)  # as earlier versions wrote it


def test_equal_metrics_have_equal_signatures():
    for one, other in (
        (WordOverlap(beta=2), WordOverlap(beta=2.0)),
        (ChrF(beta=2), ChrF(beta=2.0)),
        (EED(alpha=2), EED()),
    ):
        assert one == other
        assert one.signature == other.signature
    assert "|beta:2.0|" in WordOverlap(beta=2).signature
    assert "|beta:0.5|" in ChrF(beta=0.5).signature
