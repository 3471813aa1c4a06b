"""The n-gram baseline is a probability distribution, and its counts are those of the paper."""

import numpy as np
import pytest

from benchmarks.ngram import count, ngrams, probabilities, statistics, tuned
from nmt_jax.data.vocabulary.vocab import EOS

TEXT = [4, 5, 6, EOS, 4, 5, 4, 5, 7, EOS, 6, 6, 5, EOS]
WORDS = (1, EOS, 4, 5, 6, 7, 8)  # 1 and 8 do not occur
DISCOUNTS = np.array([[0.5, 0.9, 1.3], [0.7, 1.1, 1.4], [0.8, 1.2, 1.9]])


@pytest.mark.parametrize("history", [(EOS,), (EOS, 4), (4, 5), (5, 4), (6, 8), (8, 8)])
def test_probabilities_sum_to_one_after_any_history(history):
    orders = count(TEXT, 3)
    grams = ([(word,), (*history[-1:], word), (*history, word)][: len(history) + 1] for word in WORDS)
    p = probabilities(statistics(orders, grams), DISCOUNTS, len(WORDS))
    assert p.sum() == pytest.approx(1)
    assert (p > 0).all()


def test_a_probability_computed_by_hand():
    orders = count(TEXT, 2)
    grams = [[(5,), (4, 5)]]
    # Unigrams count their distinct predecessors: of 11 distinct bigrams, 4 and 5 end 2 each, 6 and EOS 3 each, 7 one.
    # "4 5" occurs 3 times, and nothing else follows 4.
    assert statistics(orders, iter(grams)).tolist() == [[[2, 11, 1, 2, 2], [3, 3, 0, 0, 1]]]
    unigram = (2 - 0.9) / 11 + (1 * 0.5 + 2 * 0.9 + 2 * 1.3) / 11 / 7
    expected = (3 - 1.4) / 3 + 1.4 / 3 * unigram
    assert probabilities(statistics(orders, iter(grams)), DISCOUNTS[:2], 7)[0] == pytest.approx(expected)


def test_history_does_not_cross_lines_and_tuning_lowers_perplexity():
    grams = list(ngrams(TEXT, 3))
    assert len(grams) == len(TEXT)
    assert grams[4] == [(4,), (EOS, 4)]
    numbers = statistics(count(TEXT, 3), iter(grams))
    surprise = [-np.log(probabilities(numbers, d, 7)).mean() for d in (DISCOUNTS, tuned(numbers, 7))]
    assert surprise[1] < surprise[0]
