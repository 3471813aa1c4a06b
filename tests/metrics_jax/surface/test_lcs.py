"""Longest common subsequences against the full table, and the rules of the backtrace."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics_jax.surface import lcs

words = st.lists(st.sampled_from("abcd"), max_size=12)
long_words = st.lists(st.sampled_from("abcdefgh"), max_size=150)
sentences = st.lists(words, max_size=4)


def table(first, second):
    """LCS lengths of all prefixes by the usual recursion."""
    lengths = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, j in itertools.product(range(len(first)), range(len(second))):
        same = first[i] == second[j]
        lengths[i + 1][j + 1] = lengths[i][j] + 1 if same else max(lengths[i][j + 1], lengths[i + 1][j])
    return lengths


def trace(reference, hypothesis):
    """Backtrace through the table: equal words, else drop the hypothesis word if only that keeps the length."""
    lengths, i, j, found = table(reference, hypothesis), len(reference), len(hypothesis), 0
    while i and j:
        if reference[i - 1] == hypothesis[j - 1]:
            i, j, found = i - 1, j - 1, found | 1 << (i - 1)
        elif lengths[i][j - 1] > lengths[i - 1][j]:
            j -= 1
        else:
            i -= 1
    return found


@given(long_words, long_words)
def test_length_equals_the_table(first, second):
    assert lcs.length(first, second) == lcs.length(second, first) == table(first, second)[-1][-1]


@given(long_words, long_words)
def test_marks_equal_the_backtrace(reference, hypothesis):
    assert lcs.marks(reference, hypothesis) == trace(reference, hypothesis)


@given(words, words)
def test_linear_weights_have_no_effect(reference, hypothesis):
    assert lcs.weighted_marks(reference, hypothesis, float) == lcs.marks(reference, hypothesis)


@given(words, words)
def test_weighted_marks_are_a_common_subsequence(reference, hypothesis):
    marked = lcs.weighted_marks(reference, hypothesis, lambda k: k**1.5)
    kept = [word for position, word in enumerate(reference) if marked >> position & 1]
    left = iter(hypothesis)
    assert all(word in left for word in kept)


def test_weights_prefer_consecutive_words():
    reference, hypothesis = list("aab"), list("aba")
    assert lcs.marks(reference, hypothesis) == 0b011  # a . a
    assert lcs.weighted_marks(reference, hypothesis, lambda k: k**2) == 0b110  # a b


@pytest.mark.parametrize(("reference", "expected"), [("abcdhik", 16.0), ("ahbkcid", 4.0)])
def test_weighted_matches_of_the_paper(reference, expected):
    # Lin (2004), 3.3: a b c d is common to all three texts, consecutive or not; f(k) = k^2.
    hypothesis = list("abcdefg")
    assert lcs.weighted_union_matches([list(reference)], [hypothesis], lambda k: k**2) == expected
    assert lcs.union_matches([list(reference)], [hypothesis]) == 4
    # Runs are counted in the reference: the script finds one run here as well, where the paper finds four.
    assert lcs.weighted_union_matches([hypothesis], [list(reference)], lambda k: k**2) == 16.0


def test_union_of_the_paper():
    # Lin (2004), 3.2: w1 w2 and w1 w3 w5 make w1 w2 w3 w5 of the reference w1 w2 w3 w4 w5.
    assert lcs.union_matches([list("12345")], [list("12678"), list("13895")]) == 4


def test_matches_are_clipped_by_the_hypothesis():
    assert lcs.union_matches([["a", "b"], ["a", "c"]], [["a"], ["c"]]) == 2
    assert lcs.union_matches([["a", "b"], ["a", "c"]], [["a", "a"], ["c"]]) == 3


def test_runs_that_end_with_a_clipped_word():
    # As in ROUGE-1.5.5: the first sentence uses up the a. In the second, c a is marked, but only c counts, and a marked
    # position follows it: its run continues to the d, or is lost at the end of the sentence.
    assert lcs.weighted_union_matches([["a"], ["c", "a", "x", "d"]], [["c", "a", "d"]], lambda k: k**2) == 1 + 2**2
    assert lcs.weighted_union_matches([["a"], ["c", "a"]], [["c", "a"]], lambda k: k**2) == 1
    assert lcs.union_matches([["a"], ["c", "a"]], [["c", "a"]]) == 2


@given(sentences, sentences)
def test_bounds_of_the_union(references, hypotheses):
    every_reference, every_hypothesis = list(itertools.chain(*references)), list(itertools.chain(*hypotheses))
    matches = lcs.union_matches(references, hypotheses)
    assert matches <= sum(min(every_reference.count(word), every_hypothesis.count(word)) for word in "abcd")
    assert matches >= max((lcs.length(*pair) for pair in itertools.product(references, hypotheses)), default=0)


@given(sentences, sentences)
def test_linear_weights_never_exceed_the_union(references, hypotheses):
    assert 0 <= lcs.weighted_union_matches(references, hypotheses, float) <= lcs.union_matches(references, hypotheses)


def test_empty_texts():
    assert lcs.length([], ["a"]) == lcs.marks([], []) == lcs.marks(["a"], []) == lcs.union_matches([], []) == 0
    assert lcs.weighted_union_matches([[]], [["a"], []], float) == 0.0


@given(st.lists(words, max_size=4), st.lists(words, max_size=4))
def test_pairwise_lengths(firsts, seconds):
    long = ["a", "b"] * 40  # more than the 63 words that a machine word holds
    seconds = [*seconds, long, long[:63]]
    expected = [[lcs.length(first, second) for second in seconds] for first in firsts]
    found = lcs.pairwise_lengths(firsts, seconds)
    assert found.shape == (len(firsts), len(seconds))
    assert found.tolist() == expected
