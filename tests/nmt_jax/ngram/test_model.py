"""Probabilities of lines: backoff as in the definition of ARPA files, unknown words, and states."""

import numpy as np
import pytest

from nmt_jax.ngram.vocabulary import BOS, EOS, UNK
from tests.nmt_jax.ngram.conftest import model_of_order, text

LINES = ["the old dog sings in the house", "", "birds and zebras sing no more", "zebras", "we see\tthe <s> garden </s>"]


def restated(model, lines):
    """Log-probabilities by a table of n-grams as text."""
    words = model.vocabulary.words
    listed, backoff = {}, {}
    for n in range(1, model.order + 1):
        for number, gram in enumerate(model.trie.spelled(n).tolist()):
            key = tuple(words[one] for one in gram)
            listed[key] = model.log_probabilities[n - 1][number]
            if n < model.order:
                backoff[key] = model.backoffs[n - 1][number]

    def log_p(gram):
        if gram in listed:
            return listed[gram]
        return backoff.get(gram[:-1], 0) + log_p(gram[1:])

    found = []
    for line in lines:
        known = [word if word in words[3:] else "<unk>" for word in line.split()]
        sentence = ["<s>", *known, "</s>"]
        found.append([log_p(tuple(sentence[max(0, end - model.order) : end])) for end in range(2, len(sentence) + 1)])
    return found


@pytest.mark.parametrize("order", [1, 2, 4])
def test_scores_equal_those_of_the_definition(order):
    model = model_of_order(order)
    found = model.score([*LINES, *text()]).by_line()
    for (log_p, _), expected in zip(found, restated(model, [*LINES, *text()]), strict=True):
        np.testing.assert_allclose(log_p, expected, rtol=1e-12)


def test_unknown_words(model):
    scores = model.score(LINES)
    assert [unknown.nonzero()[0].tolist() for _, unknown in scores.by_line()] == [[], [], [2], [0], [3, 5]]
    assert scores.lengths.tolist() == [8, 1, 7, 2, 7]


def test_no_lines(model):
    scores = model.score([])
    assert len(scores.log_probabilities) == len(scores.lengths) == 0
    assert scores.by_line() == []


@pytest.mark.parametrize("order", [1, 4])
def test_words_one_by_one_have_the_same_probabilities(order):
    model = model_of_order(order)
    scores = model.score(LINES)
    rows = [row[row != BOS] for row in np.split(model.vocabulary.encode(LINES), np.cumsum(scores.lengths + 1)[:-1])]
    assert all(row[-1] == EOS for row in rows)
    state, found = model.start(len(LINES)), [[] for _ in LINES]
    for step in range(max(map(len, rows))):
        words = np.array([row[step] if step < len(row) else UNK for row in rows])
        log_p, state = model.advance(state, words)
        assert state.shape == (len(LINES), order - 1)
        for line, row in enumerate(rows):
            found[line] += [log_p[line]] * (step < len(row))
    np.testing.assert_array_equal(np.concatenate(found), scores.log_probabilities)
