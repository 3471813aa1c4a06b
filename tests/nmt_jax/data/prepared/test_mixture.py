"""Real and synthetic pairs in one corpus: exact counts, items of the right part, in any order of indices."""

import collections

import numpy as np
import pytest

from nmt_jax.data.prepared.difficulty import of_sources
from nmt_jax.data.prepared.mixture import Mixture
from nmt_jax.data.prepared.parallel import prepare
from nmt_jax.data.vocabulary.vocab import EOS, Vocab
from nmt_jax.errors import UserError
from tests.nmt_jax.data.prepared.test_parallel import text_config

REAL = [(f"the dog number {n} barks", f"der Hund mit der Nummer {n} bellt") for n in range(7)]
SYNTHETIC = [(f"<BT> a cat {n}", f"eine Katze {n} geht nach Haus") for n in range(12)]


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mixture")
    data = text_config(folder, [*REAL, REAL[0]])
    for side, language in enumerate(("en", "de")):
        lines = [*(pair[side] for pair in SYNTHETIC), "same", SYNTHETIC[0][side], ""]
        (folder / f"bt.{language}").write_text("".join(f"{line}\n" for line in lines))
    data.filters, data.synthetic = ["duplicates", "identical"], str(folder / "bt")
    vocab = Vocab.train([text for pair in REAL for text in pair], size=300, symbols=["<BT>"])
    return [prepare(data, split, (vocab, vocab)) for split in ("train", "synthetic")]


def test_synthetic_pairs_are_filtered_as_real_ones(corpora):
    assert [corpus.texts(range(len(corpus))) for corpus in corpora] == [REAL, SYNTHETIC]


@pytest.mark.parametrize(
    ("upsample", "ratio", "synthetic"), [(1, 0.0, 12), (3, 0.0, 12), (2, 1.0, 7), (1, 0.5, 4), (4, 1.5, 10), (1, 9, 12)]
)
def test_counts_are_exact(corpora, upsample, ratio, synthetic):
    mixture = Mixture(*corpora, upsample, ratio)
    assert len(mixture) == len(mixture.lengths) == 7 * upsample + synthetic
    counts = collections.Counter(mixture.texts(range(len(mixture))))
    assert counts == {**dict.fromkeys(REAL, upsample), **dict.fromkeys(SYNTHETIC[:synthetic], 1)}
    assert mixture.report.count("\n") == 0
    assert mixture.report.endswith(f"; {synthetic} used")


def test_items_are_those_of_the_parts_in_any_order(corpora):
    real, synthetic = corpora
    mixture = Mixture(*corpora, 2)
    order = np.array([20, 0, 13, 14, 7, 20, 25])
    expected = [(synthetic, 6), (real, 0), (real, 6), (synthetic, 0), (real, 0), (synthetic, 6), (synthetic, 11)]
    seeds = np.arange(14).reshape(7, 2)
    drawn = mixture.sample(order, 0.1, seeds)
    for n, (item, (corpus, row)) in enumerate(zip(mixture.__getitems__(order), expected, strict=True)):
        for side in (0, 1):
            np.testing.assert_array_equal(item[side], corpus.__getitems__([row])[0][side])
            np.testing.assert_array_equal(drawn[n][side], corpus.sample([row], 0.1, seeds[n : n + 1])[0][side])
        assert mixture.lengths[order[n]].tolist() == [len(item[0]), len(item[1])]
        assert item[0][-1] == EOS


@pytest.mark.parametrize("measure", ["length", "rarity"])
def test_a_curriculum_has_the_difficulty_of_every_pair(corpora, measure):
    mixture, (real, synthetic) = Mixture(*corpora, 2, 1.0), corpora
    parts = [of_sources(real, measure), of_sources(real, measure), of_sources(synthetic, measure)[:7]]
    np.testing.assert_array_equal(of_sources(mixture, measure), np.concatenate(parts))


def test_a_missing_file_is_named(tmp_path):
    data = text_config(tmp_path, REAL)
    data.synthetic = str(tmp_path / "bt")
    with pytest.raises(UserError, match=r"bt\.en: no such file"):
        prepare(data, "synthetic", (None, None))
