"""Texts as ids of distinct words, and words as characters."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nmt_jax.data.vocabulary import word_types
from nmt_jax.data.vocabulary.vocab import EOS
from nmt_jax.data.vocabulary.word_types import FIRST, LINE_END, NOTHING, NUM_CHARACTERS, WORD_BEGIN, WORD_END, WordTypes


def test_words_are_numbered_in_order_of_appearance():
    text = WordTypes.read([["b", "a"], [], ["b"]])
    assert text.words == ("b", "a")
    assert text.ids.tolist() == [FIRST, FIRST + 1, EOS, EOS, FIRST, EOS]
    assert WordTypes.read([]).ids.tolist() == []


def test_words_are_separated_by_spaces_only():
    assert word_types.split(" a  b\u00a0c\td \u2028") == ["a", "b\u00a0c\td", "\u2028"]


def test_special_ids_have_their_own_characters():
    characters = WordTypes.read([["é"]]).characters(6)
    assert (characters[:EOS] == NOTHING).all()
    assert characters[EOS].tolist() == [WORD_BEGIN, LINE_END, WORD_END, 0, 0, 0]
    assert characters[FIRST].tolist() == [WORD_BEGIN, 0xC3 + 1, 0xA9 + 1, WORD_END, 0, 0]


@given(st.lists(st.text(min_size=1), max_size=5), st.integers(3, 12))
def test_spelling_keeps_the_bytes_that_fit(words, length):
    characters = word_types.spell(words, length)
    assert characters.shape == (len(words), length)
    assert ((characters >= 0) & (characters < NUM_CHARACTERS)).all()
    for word, row in zip(words, characters, strict=True):
        content = row[(row != NOTHING)]
        assert content[0] == WORD_BEGIN
        assert content[-1] == WORD_END
        assert bytes((content[1:-1] - 1).astype(np.uint8)) == word.encode("utf-8", "replace")[: length - 2]
