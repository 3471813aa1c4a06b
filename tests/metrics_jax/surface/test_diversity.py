import pytest

from metrics_jax.surface.diversity import distinct


def test_counts_by_hand():
    texts = ["the cat sat", "the cat ran", "no"]
    assert distinct(texts, 1) == 5 / 7
    assert distinct(texts, 2) == 3 / 4  # "the cat" twice; nothing reaches from one text to the next
    assert distinct(texts, 3) == 1.0


def test_equal_replies_have_no_diversity():
    assert distinct(["i do not know"] * 10, 1) == 4 / 40
    assert distinct(["a a a a"], 2) == 1 / 3


def test_texts_without_ngrams():
    assert distinct(["", "one"], 2) == distinct([], 1) == 0.0


def test_bad_input():
    with pytest.raises(TypeError, match="sequence of strings"):
        distinct("a b", 1)
    with pytest.raises(ValueError, match="order"):
        distinct(["a"], 0)
