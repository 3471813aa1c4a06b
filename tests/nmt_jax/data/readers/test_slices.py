"""Slices of a parallel corpus are the corpus, in parts that can be read in any order."""

import gzip
import itertools

import pytest

from nmt_jax.data.readers import slices
from nmt_jax.data.readers.parallel_text import GrammarCorpus, TextCorpus
from nmt_jax.errors import UserError

# A line separator that is text, a lone carriage return, an empty line, both kinds of line ends.
SOURCE = "\ufeffone\u2028line\r\n\ntwo\rparts\nthree\nfour\r\r\nfive\nsix".encode()
TARGET = b"eine Zeile\nnichts\nzwei Teile\r\ndrei\nvier\n\nsechs\n"


def text_corpus(folder, source=SOURCE, target=TARGET, suffix="") -> TextCorpus:
    paths = [folder / f"train.en{suffix}", folder / f"train.de{suffix}"]
    for path, content in zip(paths, (source, target), strict=True):
        path.write_bytes(gzip.compress(content) if suffix else content)
    return TextCorpus((paths[0],), paths[1])


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("block", [1, 5, 1 << 20])
def test_slices_of_text_are_the_text(tmp_path, monkeypatch, suffix, block):
    monkeypatch.setattr(slices, "BLOCK", block)
    corpus = text_corpus(tmp_path, suffix=suffix)
    pairs = list(corpus)
    assert len(pairs) == 7
    for size in (1, 2, 3, 7, 8):
        parts = corpus.slices(size, tmp_path)
        assert [part.number for part in parts] == list(range(-(-7 // size)))
        assert [part.first for part in parts] == list(range(0, 7, size))
        assert sum(part.count for part in parts) == 7
        reversed_parts = [list(part) for part in reversed(parts)][::-1]
        assert list(itertools.chain.from_iterable(reversed_parts)) == pairs


def test_slices_of_the_grammar_are_its_pairs(tmp_path):
    corpus = GrammarCorpus("train", 5, german_first=True)
    parts = corpus.slices(2, tmp_path)
    assert list(itertools.chain.from_iterable(parts)) == list(corpus)


def test_a_slice_reports_the_line_of_the_whole_file(tmp_path):
    corpus = text_corpus(tmp_path, SOURCE.replace(b"five", b"f\xffve"))
    parts = corpus.slices(2, tmp_path)
    assert [len(list(part)) for part in (parts[0], parts[1], parts[3])] == [2, 2, 1]
    with pytest.raises(UserError, match=r"train\.en:6: not UTF-8 .*column 2"):
        list(parts[2])


@pytest.mark.parametrize(
    ("source", "target", "suffix"),
    [
        (SOURCE, b"", ""),
        (SOURCE, TARGET + b"more\n", ""),
        (SOURCE, TARGET + b"more\n", ".gz"),
    ],
)
def test_files_of_unequal_length_raise_what_reading_them_raises(tmp_path, source, target, suffix):
    corpus = text_corpus(tmp_path, source, target, suffix)
    with pytest.raises(UserError) as whole:
        list(corpus)
    with pytest.raises(UserError) as sliced:
        corpus.slices(3, tmp_path)
    assert str(sliced.value) == str(whole.value)


def test_a_truncated_gzip_file_is_reported(tmp_path):
    corpus = text_corpus(tmp_path, suffix=".gz")
    corpus.target.write_bytes(corpus.target.read_bytes()[:-12])
    with pytest.raises(UserError, match=r"train\.de\.gz:\d+: damaged gzip file"):
        corpus.slices(3, tmp_path)
