"""A text as a stream of word numbers: what a text and a word are, and when it is prepared again."""

import pytest
from ml_collections import ConfigDict

from nmt_jax.data.prepared.streams import prepare_words, read_texts
from nmt_jax.data.vocabulary.words import Words
from nmt_jax.errors import UserError


def data(folder, **changes) -> ConfigDict:
    """`config.data` of a file of two documents and a file of running text."""
    (folder / "lines.txt").write_text("The cat, the dog.\nA cat!\n\nDogs -- the dog.\n")
    (folder / "book.txt").write_text("The whale\nis a dog.\n\nThe cat\n")
    settings = {"corpus": "text", "directory": str(folder), "train": ["lines.txt"], "running": ["book.txt"]}
    settings |= {"paragraphs": 40, "dev_share": 0.34, "size": 0, "cache": str(folder / "cache")}
    settings |= {"tokenizer": "intl", "lower_case": True, "punctuation": False}
    return ConfigDict(settings | changes)


def test_texts_are_lines_and_paragraphs_of_running_text(tmp_path):
    settings = data(tmp_path)
    train = [*read_texts(settings, "train")]
    assert train == [["the", "cat", "the", "dog"], ["a", "cat"], ["dogs", "the", "dog"]]
    assert [*read_texts(settings, "dev")] == [["the", "whale", "is", "a", "dog"], ["the", "cat"]]
    kept = [*read_texts(data(tmp_path, punctuation=True, lower_case=False), "train")]
    assert kept[0] == ["The", "cat", ",", "the", "dog", "."]


def test_prepared_once_per_content_words_and_settings(tmp_path):
    settings = data(tmp_path)
    words = Words.count(read_texts(settings, "train"), min_count=2, size=10)
    assert words.words == ("the", "cat", "dog")
    ids = prepare_words(settings, "train", words)
    assert ids.tolist() == [1, 2, 1, 3, 0, 2, 0, 1, 3, 0]
    assert prepare_words(settings, "dev", words).tolist() == [1, 3, 0, 1, 2, 0]
    files = {*(tmp_path / "cache").rglob("*.int32")}
    prepare_words(settings, "train", words)
    assert {*(tmp_path / "cache").rglob("*.int32")} == files
    prepare_words(data(tmp_path, lower_case=False), "train", words)
    assert len([*(tmp_path / "cache").rglob("*.int32")]) == len(files) + 1


def test_invalid_text_and_settings(tmp_path):
    with pytest.raises(UserError, match=r"config\.data\.tokenizer: tokenize='moses': choose one of"):
        list(read_texts(data(tmp_path, tokenizer="moses"), "train"))
    with pytest.raises(UserError, match="the train text contains none of the 1 words"):
        prepare_words(data(tmp_path), "train", Words(("zebra",), (5,)))
    (tmp_path / "bad.txt").write_bytes(b"good\nb\xff\n")
    with pytest.raises(UserError, match=r"bad\.txt:2: "):
        list(read_texts(data(tmp_path, train=["bad.txt"]), "train"))
