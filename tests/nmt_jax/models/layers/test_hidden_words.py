"""Hidden words: their share, and what stays."""

import jax
import numpy as np

from nmt_jax.data.vocabulary.vocab import BOS, EOS, PAD, UNK
from nmt_jax.models.layers.features import Features, Mixed
from nmt_jax.models.layers.hidden_words import HiddenWords, hide_source_words

WORDS = np.random.default_rng(0).integers(4, 9, (50, 40))
WORDS[:, 0] = BOS


def test_a_share_of_the_words_is_unknown_but_never_the_beginning():
    found = np.asarray(HiddenWords(0.3).apply({}, WORDS, True, rngs={"dropout": jax.random.key(0)}))
    hidden = found == UNK
    assert 0.27 < hidden[:, 1:].mean() < 0.33
    assert (found[:, 0] == BOS).all()
    np.testing.assert_array_equal(found[~hidden], WORDS[~hidden])


def test_outside_training_all_words_are_seen():
    np.testing.assert_array_equal(HiddenWords(0.3).apply({}, WORDS, False), WORDS)


def test_words_of_all_texts_are_hidden_but_not_ends_or_features():
    words = np.tile(np.array([5, 6, 7, 8, EOS, PAD, PAD]), (500, 1))
    rows = Features(np.ones((500, 7, 2), np.float32), np.full(500, 7))
    found = hide_source_words(jax.random.key(0), Mixed((words, rows, words)), 0.3)
    assert found.parts[1] is rows
    first, second = np.asarray(found.parts[0]), np.asarray(found.parts[2])
    for one in (first, second):
        changed = one != words
        assert (one[changed] == UNK).all()
        assert not changed[:, 4:].any()
        np.testing.assert_allclose(changed[:, :4].mean(axis=0), 0.3, atol=0.1)
    assert (first != second).any()
    np.testing.assert_array_equal(hide_source_words(jax.random.key(0), words, 0.0), words)
