"""Hidden words: their share, and what stays."""

import jax
import numpy as np

from nmt_jax.data.vocabulary.vocab import BOS, UNK
from nmt_jax.models.layers.hidden_words import HiddenWords

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
