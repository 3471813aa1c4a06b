"""Words and counts: the order, the file, the stream of numbers."""

import pytest
from ml_collections import ConfigDict

from nmt_jax.data.prepared.words import Words, prepare, read_texts
from nmt_jax.errors import UserError

TEXTS = [["b", "a", "c"], ["a", "b", "a"], ["d"]]


def data(folder, **changes) -> ConfigDict:
    """`config.data` of two documents in one file and of a running text."""
    (folder / "lines.txt").write_text("The cat, the dog.\nA cat!\n\nDogs -- the dog.\n")
    (folder / "book.txt").write_text("The whale\nis a dog.\n\nThe cat\n")
    settings = {"corpus": "text", "directory": str(folder), "train": ["lines.txt"], "running": ["book.txt"]}
    settings |= {"paragraphs": 40, "dev_share": 0.34, "size": 0, "cache": str(folder / "cache")}
    settings |= {"tokenizer": "intl", "lower_case": True, "punctuation": False}
    return ConfigDict(settings | changes)


def test_the_most_frequent_come_first():
    words = Words.count(TEXTS, min_count=1, size=10)
    assert words.words == ("a", "b", "c", "d")
    assert words.counts == (3, 2, 1, 1)
    assert words.frequencies.tolist() == [0, 3, 2, 1, 1]
    assert len(words) == 5
    assert Words.count(TEXTS, min_count=2, size=10).words == ("a", "b")
    assert Words.count(TEXTS, min_count=1, size=3).words == ("a", "b", "c")
    assert words.encode(["d", "x", "a"]) == [4, 1, 0]


def test_what_is_saved_is_loaded(tmp_path):
    words = Words(("ß", "\u2028", "a"), (3, 2, 1))
    words.save(tmp_path / "deeper" / "words.txt")
    assert Words.load(tmp_path / "deeper" / "words.txt") == words
    assert words.fingerprint != Words(("ß", "\u2028", "a"), (3, 2, 2)).fingerprint


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("a 3\nb\n", "words.txt:2: not a word, a blank and its count"),
        ("a 3\nb x\n", "words.txt:2: not a word"),
        ("a 3\nb 0\n", "words.txt:2: not a word"),
        ("a 3\nb 2\na 1\n", "words.txt:3: 'a' is there already"),
    ],
)
def test_a_damaged_file_is_told_with_its_line(content, line, tmp_path):
    (tmp_path / "words.txt").write_text(content)
    with pytest.raises(UserError, match=line):
        Words.load(tmp_path / "words.txt")


def test_settings_that_leave_no_word():
    with pytest.raises(UserError, match=r"min_count=4: no word of the text comes so often \(7 words, 4 different ones"):
        Words.count(TEXTS, min_count=4, size=10)
    with pytest.raises(UserError, match=r"min_count=0 and config.vocab.size=3 must be at least 1"):
        Words.count(TEXTS, min_count=0, size=3)


def test_texts_are_lines_and_paragraphs_of_running_text(tmp_path):
    settings = data(tmp_path)
    train = [*read_texts(settings, "train")]
    assert train == [["the", "cat", "the", "dog"], ["a", "cat"], ["dogs", "the", "dog"]]
    assert [*read_texts(settings, "dev")] == [["the", "whale", "is", "a", "dog"], ["the", "cat"]]
    kept = [*read_texts(data(tmp_path, punctuation=True, lower_case=False), "train")]
    assert kept[0] == ["The", "cat", ",", "the", "dog", "."]


def test_a_text_is_prepared_once_for_its_words_and_settings(tmp_path):
    settings = data(tmp_path)
    words = Words.count(read_texts(settings, "train"), min_count=2, size=10)
    assert words.words == ("the", "cat", "dog")
    ids = prepare(settings, "train", words)
    assert ids.tolist() == [1, 2, 1, 3, 0, 2, 0, 1, 3, 0]
    assert prepare(settings, "dev", words).tolist() == [1, 3, 0, 1, 2, 0]
    files = {*(tmp_path / "cache").rglob("*.int32")}
    prepare(settings, "train", words)
    assert {*(tmp_path / "cache").rglob("*.int32")} == files
    prepare(data(tmp_path, lower_case=False), "train", words)
    assert len([*(tmp_path / "cache").rglob("*.int32")]) == len(files) + 1


def test_text_that_cannot_be_used(tmp_path):
    with pytest.raises(UserError, match=r"config\.data\.tokenizer: tokenize='moses' is none of"):
        list(read_texts(data(tmp_path, tokenizer="moses"), "train"))
    with pytest.raises(UserError, match="the train text has none of the 1 words"):
        prepare(data(tmp_path), "train", Words(("zebra",), (5,)))
    (tmp_path / "bad.txt").write_bytes(b"good\nb\xff\n")
    with pytest.raises(UserError, match=r"bad\.txt:2: "):
        list(read_texts(data(tmp_path, train=["bad.txt"]), "train"))
