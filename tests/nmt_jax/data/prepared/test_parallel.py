"""Prepared corpora: pairs are returned by index, skipped pairs are counted, and failures leave nothing behind."""

import errno
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import pytest
from ml_collections import ConfigDict

from nmt_jax.data.prepared import parallel as prepared
from nmt_jax.data.prepared import records
from nmt_jax.data.prepared.cache import cache_directory
from nmt_jax.data.prepared.parallel import prepare
from nmt_jax.data.readers.parallel_text import open_text
from nmt_jax.data.vocabulary.vocab import EOS, UNK, Vocab
from nmt_jax.errors import UserError

PAIRS = [(f"the dog number {n} barks", f"der Hund mit der Nummer {n} bellt sehr laut") for n in range(11)]
ODD = [("one\u2028line \x00 😀", "eine\xa0Zeile \x00\t😀\x00"), ("  two  spaces ", "zwei  Leerzeichen")]
LONG = ("word " * 10_000, "Wort")
EMPTY = [("", "nichts"), ("nothing", " "), ("\xa0", "\t")]


@pytest.fixture(scope="module")
def vocabs() -> tuple[Vocab, Vocab]:
    english, german = zip(*PAIRS, strict=True)
    return Vocab.train(english, size=300), Vocab.train(german, size=320, algorithm="bpe")


def text_config(directory: pathlib.Path, pairs, max_length: int = 60) -> ConfigDict:
    for language, lines in zip(("en", "de"), zip(*pairs, strict=True), strict=True):
        (directory / f"train.{language}").write_text(
            "".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n"
        )
    data = {"corpus": "text", "directory": str(directory), "source": "en", "target": "de", "train": "train"}
    return ConfigDict(data | {"max_length": max_length, "cache": str(directory / "cache")})


def entries(data: ConfigDict) -> list[str]:
    return sorted(os.listdir(cache_directory(data)))


def test_no_temporary_files_are_left(vocabs, tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    prepare(text_config(tmp_path, PAIRS), "train", vocabs)
    assert not os.listdir(temporary)


def test_pairs_are_returned_by_index(vocabs, tmp_path):
    data = text_config(tmp_path, [*PAIRS, *ODD])
    corpus = prepare(data, "train", vocabs)
    assert len(corpus) == len(PAIRS) + len(ODD)
    order = [12, 0, 11, 3, 3]
    expected = [list(open_text(data, "train"))[i] for i in order]
    assert corpus.texts(order) == expected
    for (source, target), texts, lengths in zip(
        corpus.__getitems__(order), expected, corpus.lengths[order], strict=True
    ):
        assert source.dtype == target.dtype == np.int32
        assert source.tolist() == [*vocabs[0].encode(texts[0]), EOS]
        assert target.tolist() == [*vocabs[1].encode(texts[1]), EOS]
        assert lengths.tolist() == [len(source), len(target)]


def test_large_vocabularies_keep_their_ids(vocabs, tmp_path, monkeypatch):
    monkeypatch.setattr(Vocab, "__len__", lambda self: 1 << 17)
    monkeypatch.setattr(Vocab, "encode", lambda self, text, unknown: [5, (1 << 17) - 1, 256])
    corpus = prepare(text_config(tmp_path, PAIRS), "train", vocabs)
    assert corpus.__getitems__([3])[0][1].tolist() == [5, (1 << 17) - 1, 256, EOS]


def test_the_largest_id_of_an_unknown_word_fits(vocabs, tmp_path, monkeypatch):
    monkeypatch.setattr(Vocab, "__len__", lambda self: (1 << 16) - 1)
    monkeypatch.setattr(Vocab, "unknown", lambda self, text, limit: [])
    monkeypatch.setattr(Vocab, "encode", lambda self, text, unknown: [5, 1 << 16])
    corpus = prepare(text_config(tmp_path, PAIRS), "train", vocabs, 2)
    assert corpus.__getitems__([3])[0][1].tolist() == [5, 1 << 16, EOS]


def test_skipped_pairs_are_counted_and_reported_in_one_line(vocabs, tmp_path):
    corpus = prepare(
        text_config(tmp_path, [EMPTY[0], *PAIRS[:4], LONG, *EMPTY[1:], *PAIRS[4:], LONG[::-1]]), "train", vocabs
    )
    assert corpus.texts(range(len(corpus))) == PAIRS
    assert corpus.counts == {"kept": 11, "too_long": 2, "empty": 3}
    assert corpus.report.endswith("11 of 16 pairs; skipped: 2 longer than 60 tokens, 3 with an empty side")
    assert "\n" not in corpus.report
    everything = prepare(text_config(tmp_path, PAIRS), "train", vocabs)
    assert everything.report.endswith("11 of 11 pairs")


def test_max_length_counts_tokens_and_eos(vocabs, tmp_path):
    longest = int(prepare(text_config(tmp_path, PAIRS), "train", vocabs).lengths.max())
    assert prepare(text_config(tmp_path, PAIRS, max_length=longest), "train", vocabs).counts["too_long"] == 0
    fewer = prepare(text_config(tmp_path, PAIRS, max_length=longest - 1), "train", vocabs)
    assert fewer.counts["too_long"] > 0
    assert fewer.lengths.max() < longest


def test_nothing_left(vocabs, tmp_path):
    data = text_config(tmp_path, [LONG, *EMPTY])
    with pytest.raises(
        UserError, match=r"no pair is left: 1 are longer than config\.data\.max_length = 60 tokens .* 3 have an empty"
    ):
        prepare(data, "train", vocabs)
    assert entries(data) == []


def test_prepared_once_per_content_vocabulary_and_length(vocabs, tmp_path, monkeypatch):
    data = text_config(tmp_path, PAIRS)
    first = prepare(data, "train", vocabs).directory
    with monkeypatch.context() as patch:
        patch.setattr(prepared, "_encode", None)
        assert prepare(data, "train", vocabs).directory == first
    prepare(text_config(tmp_path, PAIRS, max_length=61), "train", vocabs)
    prepare(data, "train", vocabs[::-1])
    prepare(text_config(tmp_path, PAIRS[1:]), "train", vocabs)
    prepare(data, "train", vocabs, 3)
    prepare(data, "train", vocabs, 4)
    assert len(entries(data)) == 6


def test_unknown_source_words_have_the_same_ids_on_both_sides(tmp_path):
    vocab = Vocab.train(["the dog barks"] * 3, size=20, algorithm="word", byte_fallback=False)
    the, dog, own = *vocab.encode("the dog"), len(vocab)
    data = text_config(tmp_path, [("the Zebra the Yak Gnu Zebra", "Yak dog Auk Zebra Gnu"), ("dog Gnu", "Gnu Zebra")])
    corpus = prepare(data, "train", (vocab, vocab), 2)
    (source, target), (other_source, other_target) = corpus.__getitems__([0, 1])
    assert source.tolist() == [the, own, the, own + 1, UNK, own, EOS]
    assert target.tolist() == [own + 1, dog, UNK, own, UNK, EOS]
    assert (other_source.tolist(), other_target.tolist()) == ([dog, own, EOS], [own, UNK, EOS])


def test_a_sample_uses_the_same_ids_for_unknown_words(tmp_path):
    vocab = Vocab.train(["der Hund bellt laut"] * 9, size=40, byte_fallback=False)
    corpus = prepare(text_config(tmp_path, [("Hund 😀 bellt", "😀 laut")]), "train", (vocab, vocab), 2)
    for seed in range(5):
        for drawn, best in zip(
            corpus.sample([0], 0.2, np.array([[seed, seed]]))[0], corpus.__getitems__([0])[0], strict=True
        ):
            assert len(vocab) in best
            assert len(vocab) in drawn
            assert UNK not in drawn


def test_a_long_corpus_is_written_in_parts(vocabs, tmp_path, monkeypatch):
    monkeypatch.setattr(prepared, "PAIRS_A_PART", 4)
    corpus = prepare(text_config(tmp_path, [*PAIRS[:4], *EMPTY, *PAIRS[4:]]), "train", vocabs)
    assert len(list(corpus.directory.glob("part-*"))) == 4  # of 4 lines of the text
    assert corpus.texts(range(11)) == PAIRS


def contents(folder: pathlib.Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_the_prepared_bytes_depend_neither_on_the_process_nor_on_the_order_of_work(vocabs, tmp_path, monkeypatch):
    def in_reverse_and_twice(work, items, folder):
        for item in [*reversed(items), *items]:
            work(item)

    monkeypatch.setattr(prepared, "PAIRS_A_PART", 4)
    data = text_config(tmp_path, [*PAIRS, LONG, *ODD])
    here = prepare(data, "train", vocabs).directory
    data.cache += "-reverse"
    assert contents(prepare(data, "train", vocabs, 0, in_reverse_and_twice).directory) == contents(here)
    for vocab, name in zip(vocabs, ("source", "target"), strict=True):
        vocab.save(tmp_path / f"{name}.model")
    data.cache += "-process"
    script = f"""
import json
from ml_collections import ConfigDict
from nmt_jax.data.prepared import parallel
from nmt_jax.data.vocabulary.vocab import Vocab
parallel.PAIRS_A_PART = 4
vocabs = [Vocab.load(f"{tmp_path}/{{name}}.model") for name in ("source", "target")]
print(parallel.prepare(ConfigDict(json.loads({json.dumps(data.to_json())})), "train", vocabs).directory)
"""
    # In an Example with several features, their order differs from process to process.
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert contents(pathlib.Path(done.stdout.strip())) == contents(here)


def test_an_error_in_the_text_leaves_nothing_behind(vocabs, tmp_path):
    data = text_config(tmp_path, PAIRS)
    with open(tmp_path / "train.de", "rb+") as file:
        file.seek(-3, os.SEEK_END)
        file.write(b"\xff")
    with pytest.raises(UserError, match=r"train\.de:11: not UTF-8"):
        prepare(data, "train", vocabs)
    assert entries(data) == []


def test_a_full_disk_is_a_clear_error_and_leaves_nothing_behind(vocabs, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    data = text_config(tmp_path, PAIRS)
    with monkeypatch.context() as patch:
        patch.setattr(records.PreparedPairs, "download_and_prepare", lambda self, **_: full())
        with pytest.raises(UserError, match=r"No space left on device; free some space or set config\.data\.cache"):
            prepare(data, "train", vocabs)
    assert entries(data) == []
    assert len(prepare(data, "train", vocabs)) == 11


def test_sampled_pairs_are_other_segmentations_of_the_same_text(vocabs, tmp_path):
    corpus = prepare(text_config(tmp_path, PAIRS), "train", vocabs)
    seeds = np.arange(22, dtype=np.uint32).reshape(11, 2)
    drawn = corpus.sample(range(11), 0.3, seeds)
    for pair, texts in zip(drawn, PAIRS, strict=True):
        assert tuple(vocab.decode(ids) for vocab, ids in zip(vocabs, pair, strict=True)) == texts
        assert all(ids[-1] == EOS for ids in pair)
    best = corpus.__getitems__(range(11))
    assert any(len(a[1]) != len(b[1]) for a, b in zip(drawn, best, strict=True))
    again = corpus.sample([4], 0.3, seeds[4:5])[0]
    assert [ids.tolist() for ids in again] == [ids.tolist() for ids in drawn[4]]


def test_neither_tensorflow_nor_torch_is_imported_and_nothing_is_printed(vocabs, tmp_path):
    data = text_config(tmp_path, PAIRS)
    vocabs[0].save(tmp_path / "source.model")
    script = f"""
import json, sys
from ml_collections import ConfigDict
from nmt_jax.data.batching import batches
from nmt_jax.data.prepared import parallel
from nmt_jax.data.vocabulary import vocab
data = ConfigDict(json.loads({json.dumps(data.to_json())}))
loaded = vocab.Vocab.load({str(tmp_path / "source.model")!r})
source = batches.Batches(parallel.prepare(data, "train", (loaded, loaded)), batch_tokens=100, num_buckets=2)
next(batches.iterator(source))
assert not {{"tensorflow", "torch"}} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
