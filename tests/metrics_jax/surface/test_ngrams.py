from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics_jax.surface import ngrams

text = st.text("abc", max_size=8)
groups = st.lists(st.tuples(text, st.lists(text, min_size=1, max_size=3)), min_size=1, max_size=5)
ORDERS = 4


def count(text: str, n: int) -> Counter:
    return Counter(text[i : i + n] for i in range(len(text) - n + 1))


@pytest.mark.parametrize("limits", [(2**62, 2**16), (3000, 2**16), (2**62, 5)], ids=["packed", "ranked", "blocks"])
@given(groups)
@settings(max_examples=60, deadline=None)
def test_matches_equal_counting(limits, pairs):
    ngrams._LIMIT, ngrams._BLOCK = limits
    try:
        flat = [reference for _, references in pairs for reference in references]
        texts = [hypothesis for hypothesis, _ in pairs] + flat
        num_references = np.array([len(references) for _, references in pairs])
        for tokens in (ngrams.encode_characters(texts), ngrams.encode_words(texts)):
            clipped = ngrams.clipped_matches(tokens, num_references, ORDERS)
            pairwise = ngrams.pairwise_matches(tokens, len(pairs), ORDERS)
            for n in range(1, ORDERS + 1):
                for i, (hypothesis, references) in enumerate(pairs):
                    largest = Counter()
                    for reference in references:
                        largest |= count(reference, n)
                    assert clipped[n - 1, i] == (count(hypothesis, n) & largest).total()
                    one_by_one = [(count(hypothesis, n) & count(reference, n)).total() for reference in flat]
                    assert pairwise[n - 1, i].tolist() == one_by_one
    finally:
        ngrams._LIMIT, ngrams._BLOCK = 2**62, 2**16


def test_characters_are_code_points():
    tokens = ngrams.encode_characters(["a🙂", "", "\ud800a"])
    assert tokens.lengths.tolist() == [2, 0, 2]
    assert tokens.ids.tolist() == [0, 2, 1, 0]
    assert tokens.size == 3


def test_num_ngrams():
    assert ngrams.num_ngrams(np.array([0, 1, 5]), 3).tolist() == [[0, 1, 5], [0, 0, 4], [0, 0, 3]]
