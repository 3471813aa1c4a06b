"""Segments and examples of a text, and when it is prepared again."""

import itertools
import os

import numpy as np
import pytest
from ml_collections import ConfigDict

from nmt_jax.data.prepared import segments
from nmt_jax.data.prepared.cache import cache_directory
from nmt_jax.data.prepared.segments import prepare
from nmt_jax.errors import UserError

SPECIAL = (0, 1, 2, 3, 4)


class Letters:
    """One token per letter; `?` is unknown, `#` spells a special token, a space has no token."""

    model = "letters"

    def encode(self, texts):
        known = {"?": 1, "#": 4}
        return [
            [known.get(letter, ord(letter)) for letter in text.replace("[UNK]", "?").replace(" ", "")] for text in texts
        ]


@pytest.fixture
def data(tmp_path):
    (tmp_path / "documents.txt").write_text("".join(f"a{n}.\nb{n}.\n\n" for n in range(10, 30)))
    settings = {"corpus": "text", "directory": str(tmp_path), "train": ["documents.txt"], "running": []}
    more = {"paragraphs": 2, "dev_share": 0.1, "size": 80, "max_length": 23, "cache": str(tmp_path / "cache")}
    return ConfigDict(settings | more)


def text_of(data, split="train"):
    return prepare(data, split, Letters(), SPECIAL, 1)


def spelt(text):
    """Documents as lists of examples, which are lists of segments."""
    ends = [0, *text.ends]
    parts = ["".join(map(chr, text.ids[a:b])) for a, b in itertools.pairwise(ends)]
    examples = [parts[a:b] for a, b in itertools.pairwise(text.examples)]
    return [examples[a:b] for a, b in itertools.pairwise(text.documents)]


def test_examples_are_filled_with_segments_of_one_document(data, tmp_path):
    (tmp_path / "documents.txt").write_text("aaaaaaaa\nbbbbbbbb\ncccc\nd\neeee\n\n\nf\n\n")
    data.dev_share = 0.01
    text = text_of(data)
    assert (text.capacity, text.longest) == (20, 10)
    assert spelt(text) == [[["aaaaaaaa", "bbbbbbbb", "cccc"], ["d", "eeee"]], [["f"]]]
    assert len(text) == 3
    assert "26 tokens in 6 segments of 2 documents: 3 examples, 43% full" in text.report


def test_long_lines_are_split_into_segments(data, tmp_path):
    line = "One two. Three four five. Six seven eight nine ten eleven."
    (tmp_path / "documents.txt").write_text(f"{line}\n\n{'x' * 33}\n")
    data.dev_share = 0.01
    first, second = spelt(text_of(data))
    for document, whole in ((first, line.replace(" ", "")), (second, "x" * 33)):
        parts = [part for example in document for part in example]
        assert "".join(parts) == whole
        assert max(map(len, parts)) <= 10
        assert all(sum(map(len, example)) <= 20 for example in document)
    assert any(part.endswith("four") or part.endswith("two.") for example in first for part in example)


def test_spellings_of_special_tokens_are_dropped_except_unknown(data, tmp_path):
    (tmp_path / "documents.txt").write_text("a#b\n#\n <unk> c\n\n#\n")
    data.dev_share = 0.01
    text = text_of(data)
    assert text.ids.tolist() == [ord("a"), ord("b"), 1, ord("c")]
    assert (len(text.ends), len(text.documents) - 1) == (2, 1)


def test_prepared_once_per_content_and_length(data, tmp_path, monkeypatch):
    (tmp_path / "documents.txt").write_text("a\nb\n" * 9)
    data.dev_share = 0.01
    assert isinstance(text_of(data).ids, np.memmap)
    with monkeypatch.context() as patch:
        patch.setattr(segments._Writer, "_encode", None)
        text_of(data)
    assert len(os.listdir(cache_directory(data))) == 1
    data.max_length = 30
    text_of(data)
    assert len(os.listdir(cache_directory(data))) == 2


def test_invalid_text_leaves_nothing_behind(data, tmp_path):
    with open(tmp_path / "documents.txt", "ab") as file:
        file.write(b"\xff\n")
    with pytest.raises(UserError, match=r"documents\.txt:61: not UTF-8"):
        text_of(data)
    assert os.listdir(cache_directory(data)) == []


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"max_length": 4}, r"config\.data\.max_length=4 must be at least 5"),
        ({"train": ["blank.txt"]}, r"blank\.txt: no text, only empty lines"),
    ],
)
def test_settings_without_tokens(data, tmp_path, changes, line):
    (tmp_path / "blank.txt").write_text("\n \n#\n")
    data.update(changes)
    with pytest.raises(UserError, match=line):
        text_of(data)
