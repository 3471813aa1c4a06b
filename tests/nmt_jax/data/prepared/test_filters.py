"""What filters say about single pairs, in several scripts."""

import pytest

from nmt_jax.data.prepared.filters import identical, length_ratio, make_predicate, share_of_letters
from nmt_jax.schema.filters import parse_filter


def test_share_of_letters():
    assert share_of_letters(["ab cd", "12 ab"]) == 0.5
    assert share_of_letters(["Überall"]) == share_of_letters(["हिन्दी में"]) == share_of_letters(["我们"]) == 1
    assert share_of_letters([" \xa0 7 \t"]) == 0


def test_length_ratio_counts_characters_of_all_texts():
    assert length_ratio([" ab ", "abcdef"]) == 3
    assert length_ratio(["abcd", "我", "ab"]) == 4


def test_identical_ignores_spaces_around_a_text():
    assert identical(["a b ", " a b"])
    assert identical(["other", "same", "same"])
    assert not identical(["same", "same", "other"])


@pytest.mark.parametrize(("text", "dropped"), [("length_ratio:3", False), ("length_ratio:2.9", True)])
def test_a_pair_at_the_threshold_is_kept(text, dropped):
    assert make_predicate(parse_filter(text))(("ab", "abcdef")) is dropped
    assert not make_predicate(parse_filter("letters:0.5"))(("a1",))
