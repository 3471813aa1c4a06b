"""BM25 against the package rank_bm25 and by hand."""

import json
import math
import unicodedata

import numpy as np
import pytest

from nmt_jax.retrieval.bm25 import BM25, words
from tests.conftest import ROOT

GOLDEN = json.loads((ROOT / "tests" / "fixtures" / "bm25_golden.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("setting", GOLDEN["settings"], ids=lambda one: f"k1={one['k1']}")
def test_scores_equal_the_package(setting):
    ranker = BM25(GOLDEN["texts"], setting["k1"], setting["b"])
    found = [ranker.scores(query) for query in GOLDEN["queries"]]
    np.testing.assert_allclose(found, setting["scores"], rtol=0, atol=1e-9)


def test_a_score_by_hand():
    """Two words of three texts with lengths 2, 1 and 3: `rare` is in one, twice; `both` is in two, so its idf is 0."""
    scores = BM25(["Both, x", "both", "rare y Rare"], k1=1.2, b=0.5).scores("both rare?")
    gain = math.log(2.5 / 1.5) * 2 * 2.2 / (2 + 1.2 * (0.5 + 0.5 * 3 / 2))
    np.testing.assert_allclose(scores, [0, 0, gain], rtol=1e-12)


def test_words_have_no_punctuation():
    assert words("It's the U.S., “Zürich” & 3,5") == ["it", "s", "the", "u", "s", "zürich", "3", "5"]


def test_combining_marks_are_part_of_words():
    assert words("हिन्दी भाषा ❤️") == ["हिन्दी", "भाषा"]
    assert words(unicodedata.normalize("NFD", "Cafés")) == [unicodedata.normalize("NFD", "cafés")]


def test_collections_without_words():
    assert BM25([]).scores("a").tolist() == []
    assert BM25(["", "?"]).scores("a").tolist() == [0, 0]
