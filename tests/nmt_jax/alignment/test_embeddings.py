"""Links by the vectors of an encoder: words and pieces, neighbours, layers."""

import dataclasses

import jax
import numpy as np
import pytest

from nmt_jax.alignment.embeddings import EmbeddingAligner, between_words, middle
from nmt_jax.alignment.links import Alignment
from nmt_jax.alignment.sentence_pairs import SentencePairs
from nmt_jax.alignment.similarity import METHODS
from nmt_jax.errors import UserError
from nmt_jax.pretrained import load
from tests.fixtures import minilm, tiny_encoder_folder

SENTENCES = [
    ["the", "good", "film", "was", "dull"],
    [],
    ["jérôme's", "man", "in", "paris", ",", "unseen-words", "sees", "anna"],
    ["great"],
    ("a bad man sees karl in bonn . " * 8).split(),  # longer than the encoder reads
]
PAIRS = SentencePairs(SENTENCES, SENTENCES)


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    return load(tiny_encoder_folder.write(tmp_path_factory.mktemp("encoder")))


def test_equal_sentences_are_linked_word_by_word(pretrained):
    found = [*EmbeddingAligner(pretrained, PAIRS).align_lines(0, 4)]
    assert [one.links for one in found] == [[(n, n) for n in range(len(words))] for words in SENTENCES[:4]]
    assert all(p == pytest.approx(1, abs=1e-6) for one in found for p in one.posteriors)


@pytest.mark.parametrize("method", METHODS)
def test_neighbours_and_padding_do_not_change_links(pretrained, method):
    pairs = SentencePairs(SENTENCES, SENTENCES[::-1])
    aligner = EmbeddingAligner(pretrained, pairs, method, threshold=0.2)
    whole = [*aligner.align_lines(0, 5)]
    assert [bool(one.links) for one in whole] == [True, False, True, False, True]
    assert [*aligner.align_lines(2, 1)] == whole[2:3]
    alone = SentencePairs(*([side[4]] for side in pairs))
    assert [*EmbeddingAligner(pretrained, alone, method, threshold=0.2).align_lines(0, 1)] == whole[4:]
    for one, *words in zip(whole, *pairs, strict=True):
        assert all(0 <= place < len(side) for link in one.links for place, side in zip(link, words, strict=True))
        assert all(0 <= p <= 1 for p in one.posteriors)


def test_words_are_linked_if_any_of_their_pieces_are():
    scores = np.array([[0.9, 0.2, 0.4], [0.1, 0.8, 0.7], [0.3, 0.6, 0.5]])
    linked = np.array([[1, 0, 0], [0, 1, 1], [0, 1, 0]], bool)
    found = between_words(scores, linked, np.array([0, 0, 1]), np.array([0, 1, 1]))
    assert found == Alignment([(0, 0), (0, 1), (1, 1)], [0.9, 0.8, 0.6])


def test_layers(pretrained):
    assert [middle(layers) for layers in (1, 2, 6, 12, 24)] == [1, 1, 4, 8, 16]
    first, last = (
        [*EmbeddingAligner(pretrained, SentencePairs(SENTENCES[:1], SENTENCES[2:3]), "match", layer).align_lines(0, 1)]
        for layer in (0, 2)
    )
    assert first != last
    for layer in (-1, 3):
        with pytest.raises(UserError, match=r"--layer=.*: the encoder has layers 0 .* to 2"):
            EmbeddingAligner(pretrained, PAIRS, layer=layer)


def test_damaged_weights_are_an_error(pretrained):
    params = jax.tree.map(lambda one: np.full_like(one, np.nan), pretrained.params)
    damaged = dataclasses.replace(pretrained, params=params)
    with pytest.raises(UserError, match="NaN"):
        next(EmbeddingAligner(damaged, PAIRS).align_lines(0, 1))


@pytest.mark.slow
def test_paraphrases_of_a_trained_encoder():
    minilm.load()  # skips without it
    source = ["the", "doctor", "quickly", "bought", "a", "new", "car"]
    target = ["a", "new", "automobile", "was", "quickly", "purchased", "by", "the", "physician"]
    (found,) = EmbeddingAligner(load(minilm.PACKAGE), SentencePairs([source], [target])).align_lines(0, 1)
    assert {(1, 8), (2, 4), (3, 5), (5, 1), (6, 2)} <= set(found.links)
