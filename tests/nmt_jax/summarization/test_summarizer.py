"""Extractive summaries against the equations of the papers, on small texts."""

import random
from collections import Counter

import numpy as np
import pytest

from nmt_jax.summarization import summarizer
from nmt_jax.summarization.summarizer import summarize

CATS = [text.split() for text in ("the cat sat", "a cat ate fish", "the cat ate fish fast", "rain fell")]


def test_lead_is_the_order_of_the_text():
    assert summarizer.lead(CATS) == [0, 1, 2, 3]
    assert summarizer.lead([]) == []


def test_sum_basic_avoids_repetition():
    """By hand: of three cats and two fish, cat weighs 0.6, and 0.36 once it is covered; then fish, 0.4, comes first."""
    assert summarizer.sum_basic([["cat", "cat"], ["cat", "fish"], ["fish"]]) == [0, 2, 1]
    assert summarizer.sum_basic([["the"], ["of"]]) == [0, 1]


def restated_sum_basic(sentences):
    counts = Counter(word for words in sentences for word in words)
    weights = {word: count / counts.total() for word, count in counts.items()}
    order, left = [], list(range(len(sentences)))
    while candidates := [number for number in left if sentences[number]]:
        top = max((word for number in candidates for word in sentences[number]), key=weights.get)
        candidates = [number for number in candidates if top in sentences[number]]
        means = [sum(map(weights.get, sentences[number])) / len(sentences[number]) for number in candidates]
        order.append(candidates[means.index(max(means))])
        left.remove(order[-1])
        for word in set(sentences[order[-1]]):
            weights[word] **= 2
    return order + left


def test_sum_basic_is_that_of_the_definition():
    for seed in range(50):
        rng = random.Random(seed)
        words = [f"w{number}" for number in range(rng.randint(1, 30))]
        text = [rng.choices(words, k=rng.randint(0, 6)) for _ in range(rng.randint(0, 25))]
        assert summarizer.sum_basic(text) == restated_sum_basic(text)


@pytest.mark.parametrize(
    "sentences",
    [
        ['He said "Go home!"', "Then he left."],
        ["(It rained.)", "«Ja.»", "3 cats came."],
        ["It cost 3.5 pounds. no small letter begins one."],
        ["Er ging. über uns flog es."],
    ],
)
def test_where_sentences_end(sentences):
    assert summarizer.split_sentences(" ".join(sentences)) == sentences


def test_sentences_without_white_space():
    assert summarizer.split_sentences("一。二！「三。」四？！五") == ["一。", "二！", "「三。」", "四？！", "五"]


def test_tf_idf_by_hand():
    found = summarizer.tf_idf([["a", "b"], ["a", "c"], ["d"]])
    rare, common = np.log(3), np.log(1.5)
    assert found[0, 1] == pytest.approx(common**2 / (common**2 + rare**2))
    assert found[0, 2] == 0
    np.testing.assert_allclose(np.diag(found), 1)
    assert np.isfinite(summarizer.tf_idf([["a"], ["a"], []])).all()


def test_shared_words_by_hand():
    found = summarizer.shared_words([["a", "b", "c"], ["b", "c", "d", "e"], ["x"], ["x"]])
    assert found[0, 1] == found[1, 0] == pytest.approx(2 / (np.log(3) + np.log(4)))
    assert found[2, 3] == 0  # the logarithm of length one is 0
    assert not np.diag(found).any()


def test_the_distribution_is_stationary_and_sums_to_one():
    weights = np.random.default_rng(0).random((6, 6))
    weights[4] = 0  # from a node without edges, the walk jumps anywhere
    share = summarizer.stationary_distribution(weights)
    out = weights.sum(axis=1, keepdims=True)
    step = np.where(out > 0, weights / np.where(out > 0, out, 1), 1 / 6)
    np.testing.assert_allclose(share, 0.15 / 6 + 0.85 * share @ step, atol=1e-8)
    assert share.sum() == pytest.approx(1)


def test_the_most_similar_sentence_comes_first():
    star = np.eye(4)
    star[0, 1:] = star[1:, 0] = 0.5
    assert summarizer.lex_rank(star)[0] == 0
    assert summarizer.text_rank(star)[0] == 0
    assert summarizer.lex_rank(star, threshold=0.6) == [0, 1, 2, 3]  # without neighbours, the order of the text is kept
    assert summarizer.lex_rank(np.zeros((0, 0))) == summarizer.text_rank(np.zeros((0, 0))) == []


def test_choose_keeps_text_order_and_the_limit():
    assert summarizer.choose([3, 0, 2, 1], [5, 5, 5, 5], 2) == [0, 3]
    assert summarizer.choose([3, 0, 2, 1], [4, 9, 2, 6], 3, num_words=9) == [2, 3]  # the second best is too long
    assert summarizer.choose([1, 0], [1, 50], 2, num_words=10) == [1]
    assert summarizer.choose([], [], 2) == []


def test_summaries_keep_the_order_of_the_text_and_the_limits():
    text = "A cat sat.\tRain fell.\tA cat sat and ate.\tA cat ate."
    ((sentences, chosen),) = summarize([text], method="textrank", num_sentences=2)
    assert sentences == text.split("\t")
    assert chosen == sorted(chosen)
    assert len(chosen) == 2
    assert 1 not in chosen  # shares no word with the others
    assert [chosen for _, chosen in summarize([text, ""], method="lead", num_words=5)] == [[0, 1], []]
