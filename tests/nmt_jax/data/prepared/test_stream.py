"""Text as one stream: which lines belong to which split, what the ids are, and that the file is whole or absent."""

import errno
import gzip
import os

import numpy as np
import pytest
from ml_collections import ConfigDict

from nmt_jax.data import grammar
from nmt_jax.data.prepared import stream
from nmt_jax.data.prepared.parallel import cache_directory
from nmt_jax.data.prepared.stream import open_lines, prepare
from nmt_jax.data.vocabulary.vocab import EOS, UNK, Vocab
from nmt_jax.errors import UserError

LINES = [f"the dog number n{n} barks" for n in range(20)]


@pytest.fixture(scope="module")
def vocab() -> Vocab:
    return Vocab.train(LINES[:10], size=100, algorithm="word")


@pytest.fixture
def data(tmp_path):
    """Settings, and the train file that they name."""
    (tmp_path / "train.txt").write_text("".join(f"{line}\n" for line in LINES))
    settings = {"corpus": "text", "directory": str(tmp_path), "train": "train.txt", "dev": "", "test": ""}
    return ConfigDict(settings | {"dev_share": 0.1, "test_share": 0.15, "size": 5, "cache": str(tmp_path / "cache")})


def test_the_end_of_the_train_file_is_held_out(data):
    train, dev, test = (list(open_lines(data, split)) for split in ("train", "dev", "test"))
    assert (train, dev, test) == (LINES[:15], LINES[15:17], LINES[17:])
    assert open_lines(data, "dev").name.endswith("train.txt, lines 16 to 17")
    assert len({open_lines(data, split).fingerprint() for split in ("train", "dev", "test")}) == 3


def test_a_split_with_a_file_takes_nothing_of_the_train_file(data, tmp_path):
    with gzip.open(tmp_path / "dev.txt.gz", "wt") as file:
        file.write("a dog\n")
    data.dev = "dev.txt"
    assert list(open_lines(data, "dev")) == ["a dog"]
    assert list(open_lines(data, "train")) == LINES[:17]
    data.test_share = 0.0
    assert list(open_lines(data, "train")) == LINES


def test_the_grammar_gives_its_german_side(data):
    data.corpus = "grammar"
    assert list(open_lines(data, "train")) == [german for _, german in grammar.pairs("train", 5)]
    assert open_lines(data, "train").fingerprint() != open_lines(data, "dev").fingerprint()


@pytest.mark.parametrize(
    ("changes", "split", "line"),
    [
        ({"corpus": "tfds"}, "train", "config.data.corpus: 'tfds' is not one of grammar, text"),
        ({"directory": ""}, "train", "config.data.directory: name the folder"),
        ({"train": "nowhere.txt"}, "train", r"nowhere\.txt: no such file, plain or with \.gz"),
        ({"dev": "nowhere.txt"}, "dev", r"nowhere\.txt: no such file"),
        ({"dev_share": 0.0}, "dev", r"config\.data\.dev: name a file, or hold out .* config\.data\.dev_share=0\.1"),
        ({"dev_share": -0.1}, "train", "shares are at least 0, and less than 1 together"),
        ({"dev_share": 0.5, "test_share": 0.5}, "train", "shares are at least 0, and less than 1 together"),
        ({"dev_share": 0.01}, "dev", "20 lines are too few to hold out 0 for dev and 3 for test"),
    ],
)
def test_what_cannot_be_meant_is_named(data, changes, split, line):
    data.update(changes)
    with pytest.raises(UserError, match=line):
        open_lines(data, split)


def test_a_line_is_its_pieces_and_an_end(data, vocab):
    ids = prepare(data, "dev", vocab).ids
    assert ids.dtype == np.int32
    assert ids.tolist() == [*vocab.encode("the dog number"), UNK, *vocab.encode("barks"), EOS] * 2


def test_every_unknown_word_is_one_unk(vocab):
    ids = [UNK, UNK, *vocab.encode("barks"), EOS]
    assert list(stream.encode(["cats cats barks", "  <unk>  <unk> barks "], vocab)) == [ids, ids]


def test_an_empty_line_is_an_end(data, vocab, tmp_path):
    data.update(test_share=0.0, dev_share=0.0, train="gaps.txt")
    (tmp_path / "gaps.txt").write_text("\nbarks\n\n")
    assert prepare(data, "train", vocab).ids.tolist() == [EOS, *vocab.encode("barks"), EOS, EOS]
    (tmp_path / "gaps.txt").write_text("\n \n\n")
    with pytest.raises(UserError, match=r"gaps\.txt: no text, only empty lines"):
        prepare(data, "train", vocab)
    (tmp_path / "gaps.txt").write_text("")
    with pytest.raises(UserError, match=r"gaps\.txt: the file is empty"):
        prepare(data, "train", vocab)


def test_prepared_once_for_a_content_and_a_vocabulary(data, vocab, tmp_path, monkeypatch):
    written = []
    write = stream._write
    monkeypatch.setattr(stream, "_write", lambda *args: (written.append(args), write(*args)))
    for _ in range(2):
        prepare(data, "train", vocab)
    assert len(written) == 1
    prepare(data, "train", Vocab.train(LINES, size=100, algorithm="word"))
    (tmp_path / "train.txt").write_text("the dog\n" * 20)
    prepare(data, "train", vocab)
    assert len(written) == 3
    assert len(os.listdir(cache_directory(data))) == 3


def test_what_is_not_finished_leaves_nothing_behind(data, vocab, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(UserError, match=r"No space left on device; name another folder with config\.data\.cache"):
            prepare(data, "train", vocab)
    with open(tmp_path / "train.txt", "ab") as file:
        file.write(b"\xff\n")
    data.update(dev_share=0.0, test_share=0.0)
    with pytest.raises(UserError, match=r"train\.txt:21: not UTF-8"):
        prepare(data, "train", vocab)
    assert os.listdir(cache_directory(data)) == []


def test_the_report_counts_tokens_ends_and_unknown_words(data, vocab):
    assert prepare(data, "dev", vocab).report.endswith(
        "lines 16 to 17: 12 tokens with the ends of 2 lines; 16.7% unknown"
    )
    data.update(train="train.txt", dev_share=0.0, test_share=0.5)
    assert prepare(data, "train", vocab).report.endswith("lines 1 to 10: 60 tokens with the ends of 10 lines")
