"""A text as one token stream: its ids, its report, and when it is prepared again."""

import os

import numpy as np
import pytest
from ml_collections import ConfigDict

from nmt_jax.data.prepared import streams
from nmt_jax.data.prepared.cache import cache_directory
from nmt_jax.data.prepared.streams import prepare_tokens
from nmt_jax.data.vocabulary.vocab import EOS, UNK, Vocab
from nmt_jax.errors import UserError

LINES = [f"the dog number n{n} barks" for n in range(20)]


@pytest.fixture(scope="module")
def vocab() -> Vocab:
    return Vocab.train(LINES[:10], size=100, algorithm="word")


@pytest.fixture
def data(tmp_path):
    """`config.data`, and the training file that it names."""
    (tmp_path / "train.txt").write_text("".join(f"{line}\n" for line in LINES))
    settings = {"corpus": "text", "directory": str(tmp_path), "train": "train.txt", "dev": "", "test": ""}
    return ConfigDict(settings | {"dev_share": 0.1, "test_share": 0.15, "size": 5, "cache": str(tmp_path / "cache")})


def test_eos_ends_every_line(data, vocab):
    ids = prepare_tokens(data, "dev", vocab).ids
    assert ids.dtype == np.int32
    assert ids.tolist() == [*vocab.encode("the dog number"), UNK, *vocab.encode("barks"), EOS] * 2


def test_every_unknown_word_is_one_unk(vocab):
    ids = [UNK, UNK, *vocab.encode("barks"), EOS]
    assert list(streams.encode(["cats cats barks", "  <unk>  <unk> barks "], vocab)) == [ids, ids]


def test_an_empty_line_is_eos(data, vocab, tmp_path):
    data.update(test_share=0.0, dev_share=0.0, train="gaps.txt")
    (tmp_path / "gaps.txt").write_text("\nbarks\n\n")
    assert prepare_tokens(data, "train", vocab).ids.tolist() == [EOS, *vocab.encode("barks"), EOS, EOS]
    (tmp_path / "gaps.txt").write_text("\n \n\n")
    with pytest.raises(UserError, match=r"gaps\.txt: no text, only empty lines"):
        prepare_tokens(data, "train", vocab)
    (tmp_path / "gaps.txt").write_text("")
    with pytest.raises(UserError, match=r"gaps\.txt: the file is empty"):
        prepare_tokens(data, "train", vocab)


def test_prepared_once_per_content_and_vocabulary(data, vocab, tmp_path):
    for _ in range(2):
        prepare_tokens(data, "train", vocab)
    assert len(os.listdir(cache_directory(data))) == 1
    prepare_tokens(data, "train", Vocab.train(LINES, size=100, algorithm="word"))
    (tmp_path / "train.txt").write_text("the dog\n" * 20)
    prepare_tokens(data, "train", vocab)
    assert len(os.listdir(cache_directory(data))) == 3


def test_invalid_text_leaves_nothing_behind(data, vocab, tmp_path):
    with open(tmp_path / "train.txt", "ab") as file:
        file.write(b"\xff\n")
    data.update(dev_share=0.0, test_share=0.0)
    with pytest.raises(UserError, match=r"train\.txt:21: not UTF-8"):
        prepare_tokens(data, "train", vocab)
    assert os.listdir(cache_directory(data)) == []


def test_the_report_counts_tokens_lines_and_unknown_words(data, vocab):
    assert prepare_tokens(data, "dev", vocab).report.endswith(
        "lines 16 to 17: 12 tokens, including 2 ends of lines; 16.7% unknown"
    )
    data.update(train="train.txt", dev_share=0.0, test_share=0.5)
    assert prepare_tokens(data, "train", vocab).report.endswith("lines 1 to 10: 60 tokens, including 10 ends of lines")
