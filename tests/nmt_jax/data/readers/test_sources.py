"""Several sources of one line: as text, as tokens, and in batches."""

import numpy as np
import pytest
from ml_collections import ConfigDict

from nmt_jax.data.batching.batches import Batches, PairLayout
from nmt_jax.data.batching.prediction import decoding_batches
from nmt_jax.data.prepared.parallel import prepare
from nmt_jax.data.readers import sources
from nmt_jax.data.readers.parallel_text import open_text
from nmt_jax.data.readers.source_reader import SourceReader
from nmt_jax.data.vocabulary.vocab import EOS, PAD, Vocab
from nmt_jax.errors import UserError

TRIPLES = [(f"the dog {n}", f"le chien numéro {n}", f"der Hund {n} bellt") for n in range(40)]
ODD = [("a\ttab", "two\ttabs\t", "ein\tTab"), ("", "rien", "nichts"), ("full", "\xa0", "leer"), ("w " * 90, "m", "W")]


@pytest.fixture
def data(tmp_path):
    """A corpus of two sources."""
    for language, lines in zip(("en", "fr", "de"), zip(*TRIPLES, *ODD, strict=True), strict=True):
        (tmp_path / f"train.{language}").write_text("".join(f"{line}\n" for line in lines))
    settings = {"corpus": "text", "directory": str(tmp_path), "source": "en,fr", "target": "de", "train": "train"}
    return ConfigDict(settings | {"max_length": 60, "cache": str(tmp_path / "cache")})


def test_tabs_separate_sources_and_are_ordinary_in_a_single_source():
    assert sources.join(["a\tb"]) == "a\tb"
    assert sources.split("a\tb", 1) == ["a\tb"]
    line = sources.join(["a\tb", "", "c"])
    assert sources.split(line, 3) == ["a b", "", "c"]
    assert sources.split("", 3) == sources.split(" ", 3) == ["", "", ""]


def test_a_wrong_number_of_sources_is_reported_with_its_line():
    lines = sources.checked(["a\tb", "", "c\t", "no tab", "d\te"], 2, "stdin")
    assert [next(lines) for _ in range(3)] == ["a\tb", "", "c\t"]
    with pytest.raises(
        UserError, match=r"^stdin:4: 1 of 2 sources: each line must have all sources, separated by tabs$"
    ):
        next(lines)
    with pytest.raises(UserError, match=r"^FILE:1: 3 of 2 sources"):
        next(sources.checked(["a\tb\tc"], 2, "FILE"))


def test_files_of_several_sources_are_read_together(data, tmp_path):
    pairs = list(open_text(data, "train"))
    assert pairs[3] == ("the dog 3\tle chien numéro 3", "der Hund 3 bellt")
    assert pairs[40] == ("a tab\ttwo tabs ", "ein\tTab")
    other_way = ConfigDict(data.to_dict() | {"source": "fr,en"})
    assert open_text(data, "train").fingerprint() != open_text(other_way, "train").fingerprint()
    (tmp_path / "train.fr").write_text("une\n")
    with pytest.raises(
        UserError, match=r"train\.en:2: this line has no counterpart: .*en has 44 lines and .*fr has 1 and .*de has 44;"
    ):
        list(open_text(data, "train"))
    data.source = "en,it"
    with pytest.raises(UserError, match=r"train\.it: no such file"):
        open_text(data, "train")
    data.corpus = "grammar"
    with pytest.raises(
        UserError, match=r"config\.data\.source: the embedded grammar has one source language, not 'en,it'"
    ):
        open_text(data, "train")


@pytest.fixture
def vocab():
    return Vocab.train([text for texts in TRIPLES for text in texts], size=300)


def test_batches_have_one_row_per_source(data, vocab):
    corpus = prepare(data, "train", (vocab, vocab))
    assert corpus.counts == {"kept": 41, "empty": 2, "too_long": 1}
    kept = [*TRIPLES, ("a tab", "two tabs ", "ein\tTab")]
    expected = [[(*vocab.encode(text), EOS) for text in texts] for texts in kept]
    assert corpus.lengths.tolist() == [[max(len(row[0]), len(row[1])), len(row[2])] for row in expected]
    batches = Batches(corpus, batch_tokens=200, num_buckets=2, layout=PairLayout(SourceReader((None,) * 2)))
    found = set()
    for n in range(len(batches)):
        batch = batches[n]
        for source, target in zip(batch["source"], batch["target"], strict=True):
            found.add(tuple(tuple(row[row != PAD].tolist()) for row in (*source, target)))
    assert found - {((), (), ())} == {tuple(row) for row in expected}


def test_random_segmentations_fit_their_rows(data, vocab):
    corpus = prepare(data, "train", (vocab, vocab))
    batches = Batches(
        corpus,
        batch_tokens=200,
        num_buckets=2,
        layout=PairLayout(SourceReader((None,) * 2)),
        sampling_alpha=0.1,
        seed=1,
    )
    texts = set()
    for n in range(len(batches)):
        for source in batches[n]["source"]:
            texts |= {tuple(map(vocab.decode, source))}
    assert texts - {("", "")} == {(*triple[:2],) for triple in TRIPLES} | {("a tab", "two tabs")}


def test_decoding_batches_have_the_layout_of_training(vocab):
    lines = ["the dog\tle chien", "the dog 3\t", "\tle chien numéro 12"]
    ids = [sources.encode(line, 2, vocab.encode) for line in lines]
    seen = []
    for indices, batch in decoding_batches(ids, batch_tokens=4096, reader=SourceReader((None,) * 2)):
        seen += indices.tolist()
        assert batch["source"].shape[1] == 2
        for index, row in zip(indices, batch["source"], strict=False):
            for text, pieces in zip(lines[index].split("\t"), row, strict=True):
                assert pieces[pieces != PAD].tolist() == [*vocab.encode(text), EOS]
    assert sorted(seen) == [0, 1, 2]


def test_fill_of_one_source_is_a_matrix():
    found = sources.fill([[5, EOS], [6, 7, EOS]], (3, 4), 1)
    np.testing.assert_array_equal(found, [[5, EOS, PAD, PAD], [6, 7, EOS, PAD], [PAD] * 4])
