"""Filters over a corpus: every planted defect is found and counted, whatever does the work and in which order."""

import itertools

import numpy as np
import pytest

from nmt_jax.data.prepared import parallel, verdicts
from nmt_jax.data.prepared.cache import cache_directory
from nmt_jax.data.prepared.engine import this_process
from nmt_jax.data.prepared.parallel import open_filtered, prepare
from nmt_jax.data.vocabulary.vocab import Vocab
from tests.nmt_jax.data.prepared.test_parallel import text_config

CLEAN = [
    (f"the dog with the name {'xyz'[n % 3] * (n + 1)} barks", f"der Hund {'abc'[n % 3] * (n + 1)} bellt")
    for n in range(23)
]
PLANTED = {  # the filter that drops the pair, and pairs with the position where they are inserted
    "identical": [(3, ("not translated", " not translated ")), (9, ("OK", "OK"))],
    "length_ratio:4": [(1, ("short", "a text that is much longer than the other one")), (25, ("long " * 9, "kurz"))],
    "letters:0.5": [
        (0, ("12 : 34 (2019)", "zwölf zu vier")),
        (14, ("twelve to four", "12:34 ....")),
        (30, ("--", "—")),
    ],
    "duplicates": [(7, CLEAN[0]), (20, CLEAN[0]), (31, CLEAN[22]), (33, ("12 : 34 (2019)", "zwölf zu vier"))],
}
EMPTY = ("", "nichts")
FILTERS = ["duplicates", "identical", "length_ratio", "letters:0.5"]


def in_reverse_and_twice(work, items, folder):
    """An engine that starts at the end, and does all work again, as clusters do after failures."""
    for item in [*reversed(items), *items]:
        work(item)


@pytest.fixture
def data(tmp_path):
    pairs = [*CLEAN, EMPTY, EMPTY]
    for position, pair in sorted(itertools.chain.from_iterable(PLANTED.values())):
        pairs.insert(position, pair)
    config = text_config(tmp_path, pairs)
    config.filters = FILTERS
    return config


@pytest.fixture
def small_slices(monkeypatch):
    monkeypatch.setattr(parallel, "PAIRS_A_PART", 4)
    monkeypatch.setattr(verdicts, "SLICES_A_RANGE", 2)


EXPECTED = {"identical": 2, "length_ratio:4": 2, "letters:0.5": 4, "duplicates": 3}


@pytest.mark.parametrize("engine", [this_process, in_reverse_and_twice])
def test_every_planted_defect_is_found(data, small_slices, engine):
    corpus, found = open_filtered(data, "train", engine)
    assert found.counts == EXPECTED
    assert list(found.kept_of_all(corpus)) == [*CLEAN, EMPTY, EMPTY]  # of equal pairs the first is kept
    bytes_ = np.fromfile(found.folder / "verdicts.uint8", np.uint8)
    assert len(bytes_) == len(list(corpus))
    assert np.bincount(bytes_).tolist() == [25, *EXPECTED.values()]


def test_slices_of_any_size_give_the_same_verdicts(data, small_slices, monkeypatch):
    small = (open_filtered(data, "train")[1].folder / "verdicts.uint8").read_bytes()
    monkeypatch.setattr(parallel, "PAIRS_A_PART", 1000)
    data.cache += "-other"
    assert (open_filtered(data, "train")[1].folder / "verdicts.uint8").read_bytes() == small


def test_training_pairs_are_filtered_and_reported(data, small_slices):
    vocab = Vocab.train([text for pair in CLEAN for text in pair], size=300)
    corpus = prepare(data, "train", (vocab, vocab))
    assert corpus.texts(range(len(corpus))) == CLEAN
    assert corpus.counts == {"kept": 23, "too_long": 0, "empty": 2, **EXPECTED}
    assert corpus.report.endswith(
        "23 of 36 pairs; skipped: 2 with an empty side, 2 with identical source and target, "
        "2 with a length ratio above 4, 4 with a share of letters below 0.5, 3 repeated"
    )


def test_only_training_pairs_are_filtered(data):
    data.dev = "train"
    corpus, found = open_filtered(data, "dev")
    assert (found, len(list(corpus))) == (None, 36)


def test_verdicts_are_found_once(data, monkeypatch):
    first = open_filtered(data, "train")[1].folder
    monkeypatch.setattr(verdicts, "_judge_slice", None)
    assert open_filtered(data, "train")[1].folder == first
    assert [path.name for path in cache_directory(data).iterdir()] == [first.name]


def test_texts_with_the_same_characters_in_other_places_are_no_duplicates(tmp_path):
    data = text_config(tmp_path, [("ab", "cd ef"), ("ab cd", "ef"), ("abc", "d ef"), ("ab", "cd ef")])
    data.filters = ["duplicates"]
    assert open_filtered(data, "train")[1].counts == {"duplicates": 1}


def test_each_of_several_sources_is_a_side(tmp_path):
    triples = [("dog", "chien", "Hund"), ("dog", "Hund", "Hund"), ("a dog", "un chien", "12 34 x"), ("x" * 9, "y", "z")]
    data = text_config(tmp_path, CLEAN)
    for language, lines in zip(("en", "fr", "de"), zip(*triples, strict=True), strict=True):
        (tmp_path / f"train.{language}").write_text("\n".join(lines))
    data.source, data.filters = "en,fr", FILTERS
    corpus, found = open_filtered(data, "train")
    assert list(found.kept_of_all(corpus)) == [("dog\tchien", "Hund")]
    assert found.counts == {"identical": 1, "length_ratio:4": 1, "letters:0.5": 1, "duplicates": 0}
