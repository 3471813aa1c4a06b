"""Documents of files, their segments and examples, and that a prepared text is whole or absent."""

import errno
import gzip
import itertools
import os

import numpy as np
import pytest
from ml_collections import ConfigDict

from nmt_jax.data.prepared import segments
from nmt_jax.data.prepared.parallel import cache_directory
from nmt_jax.data.prepared.segments import open_documents, prepare
from nmt_jax.errors import UserError

SPECIAL = (0, 1, 2, 3, 4)


class Letters:
    """A token a letter; `?` is unknown, `#` is spelt by a special piece, a blank is nothing."""

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
    """The documents as lists of examples, each a list of its segments."""
    ends = [0, *text.ends]
    parts = ["".join(map(chr, text.ids[a:b])) for a, b in itertools.pairwise(ends)]
    examples = [parts[a:b] for a, b in itertools.pairwise(text.examples)]
    return [examples[a:b] for a, b in itertools.pairwise(text.documents)]


def test_a_blank_line_ends_a_document_and_every_tenth_is_held_out(data):
    train, dev = (list(open_documents(data, split)) for split in ("train", "dev"))
    assert dev == [["a19.", "b19."], ["a29.", "b29."]]
    assert train == [[f"a{n}.", f"b{n}."] for n in range(10, 30) if n not in (19, 29)]
    assert open_documents(data, "train").fingerprint() != open_documents(data, "dev").fingerprint()


def test_running_text_is_paragraphs_of_joined_lines(data, tmp_path):
    with gzip.open(tmp_path / "book.txt.gz", "wt") as file:
        file.write("\n \nIt was\nthe best.\n\n\nIt\nwas.\n\nThe worst.\n")
    data.update(train=[], running=["book.txt"], dev_share=0.01)
    assert list(open_documents(data, "train")) == [["It was the best.", "It was."], ["The worst."]]
    data.train = ["documents.txt"]
    assert len(list(open_documents(data, "train"))) == 22


def test_segments_fill_examples_within_their_document(data, tmp_path):
    (tmp_path / "documents.txt").write_text("aaaaaaaa\nbbbbbbbb\ncccc\nd\neeee\n\n\nf\n\n")
    data.dev_share = 0.01
    text = text_of(data)
    assert (text.room, text.longest) == (20, 10)
    assert spelt(text) == [[["aaaaaaaa", "bbbbbbbb", "cccc"], ["d", "eeee"]], [["f"]]]
    assert len(text) == 3
    assert "26 tokens in 6 segments of 2 documents: 3 examples, 43% full" in text.report


def test_a_long_line_becomes_segments_that_fit(data, tmp_path):
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


def test_what_spells_a_special_piece_is_left_out_but_for_the_unknown(data, tmp_path):
    (tmp_path / "documents.txt").write_text("a#b\n#\n <unk> c\n\n#\n")
    data.dev_share = 0.01
    text = text_of(data)
    assert text.ids.tolist() == [ord("a"), ord("b"), 1, ord("c")]
    assert (len(text.ends), len(text.documents) - 1) == (2, 1)


def test_the_grammar_has_documents_of_two_languages(data):
    data.corpus = "grammar"
    documents = list(open_documents(data, "train"))
    assert [len(document) for document in documents] == [8] * 10
    words = [set(" ".join(document).split()) for document in documents]
    assert all(("der" in text or "die" in text or "das" in text) == bool(n % 2) for n, text in enumerate(words))


def test_prepared_once_and_whole_or_not_at_all(data, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(segments.pathlib.Path, "replace", full)
        with pytest.raises(UserError, match=r"No space left on device; name another folder with config\.data\.cache"):
            text_of(data)
    with open(tmp_path / "documents.txt", "ab") as file:
        file.write(b"\xff\n")
    with pytest.raises(UserError, match=r"documents\.txt:61: not UTF-8"):
        text_of(data)
    assert os.listdir(cache_directory(data)) == []
    (tmp_path / "documents.txt").write_text("a\nb\n" * 9)
    data.dev_share = 0.01
    first = text_of(data)
    monkeypatch.setattr(segments, "_Writer", None)
    assert isinstance(first.ids, np.memmap)
    monkeypatch.undo()
    text_of(data)
    assert len(os.listdir(cache_directory(data))) == 1
    data.max_length = 30
    text_of(data)
    assert len(os.listdir(cache_directory(data))) == 2


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"corpus": "tfds"}, "config.data.corpus: 'tfds' is not one of grammar, text"),
        ({"directory": ""}, r"config\.data\.directory, config\.data\.train, config\.data\.running: name"),
        ({"train": []}, r"config\.data\.train, config\.data\.running: name"),
        ({"train": ["nowhere.txt"]}, r"nowhere\.txt: no such file, plain or with \.gz"),
        ({"running": ["nowhere.txt"]}, r"nowhere\.txt: no such file"),
        ({"dev_share": 0.0}, r"config\.data\.dev_share=0.0: more than 0"),
        ({"dev_share": 1.0}, r"config\.data\.dev_share=1.0: more than 0"),
        ({"paragraphs": 1}, r"config\.data\.paragraphs=1 must be at least 2"),
        ({"max_length": 4}, r"config\.data\.max_length=4: at least 5"),
        ({"train": ["blank.txt"]}, r"blank\.txt: no text, only empty lines"),
    ],
)
def test_what_cannot_be_meant_is_named(data, tmp_path, changes, line):
    (tmp_path / "blank.txt").write_text("\n \n#\n")
    data.update(changes)
    with pytest.raises(UserError, match=line):
        text_of(data)
