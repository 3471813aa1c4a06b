import dataclasses

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


def test_the_precision_of_an_encoder_is_shown():
    encoder = tiny_encoder.make()
    assert f"|encoder:{'a' * 16}|" in BERTScore(encoder).signature
    assert f"|encoder:{'a' * 16}.bfloat16|" in BERTScore(dataclasses.replace(encoder, dtype="bfloat16")).signature
