"""The vocabulary of word vectors: its order, and its file."""

import pytest

from nmt_jax.data.vocabulary.words import Words
from nmt_jax.errors import UserError

TEXTS = [["b", "a", "c"], ["a", "b", "a"], ["d"]]


def test_words_are_sorted_by_frequency():
    words = Words.count(TEXTS, min_count=1, size=10)
    assert words.words == ("a", "b", "c", "d")
    assert words.counts == (3, 2, 1, 1)
    assert words.frequencies.tolist() == [0, 3, 2, 1, 1]
    assert len(words) == 5
    assert Words.count(TEXTS, min_count=2, size=10).words == ("a", "b")
    assert Words.count(TEXTS, min_count=1, size=3).words == ("a", "b", "c")
    assert words.encode(["d", "x", "a"]) == [4, 1, 0]


def test_save_and_load(tmp_path):
    words = Words(("ß", "\u2028", "a"), (3, 2, 1))
    words.save(tmp_path / "deeper" / "words.txt")
    assert Words.load(tmp_path / "deeper" / "words.txt") == words
    assert words.fingerprint != Words(("ß", "\u2028", "a"), (3, 2, 2)).fingerprint


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("a 3\nb\n", "words.txt:2: not a word and its count"),
        ("a 3\nb x\n", "words.txt:2: not a word"),
        ("a 3\nb 0\n", "words.txt:2: not a word"),
        ("a 3\nb 2\na 1\n", "words.txt:3: duplicate word 'a'"),
    ],
)
def test_a_damaged_file_is_reported_with_its_line(content, line, tmp_path):
    (tmp_path / "words.txt").write_text(content)
    with pytest.raises(UserError, match=line):
        Words.load(tmp_path / "words.txt")


def test_settings_without_words():
    with pytest.raises(UserError, match=r"min_count=4: no word occurs that often in the text \(7 words, 4 distinct\)"):
        Words.count(TEXTS, min_count=4, size=10)
    with pytest.raises(UserError, match=r"min_count=0 and config.vocab.size=3 must be at least 1"):
        Words.count(TEXTS, min_count=0, size=3)
