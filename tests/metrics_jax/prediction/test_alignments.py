"""Alignment error rate: the cases are worked out by hand from Och and Ney (2003)."""

import pytest

from metrics_jax.prediction.alignments import alignment_scores, alignment_statistics


def test_scores_are_counted_over_all_pairs():
    hypotheses = [{(0, 0), (1, 1), (2, 0)}, {(0, 1)}]
    sure = [{(0, 0), (1, 1)}, {(0, 0)}]
    possible = [{(2, 0)}, {(0, 1)}]
    statistics = alignment_statistics(hypotheses, sure, possible)
    assert statistics.tolist() == [[3, 2, 2, 3], [1, 1, 0, 1]]
    scores = alignment_scores(statistics)
    assert scores.precision == 1.0  # 4 of 4
    assert scores.recall == pytest.approx(2 / 3)
    assert scores.error_rate == pytest.approx(1 - (2 + 4) / (4 + 3))


def test_without_links_there_is_no_division_by_zero():
    assert alignment_scores(alignment_statistics([set()], [set()], [set()])) == (0.0, 0.0, 0.0)
    assert alignment_scores(alignment_statistics([set()], [{(0, 0)}], [set()])) == (1.0, 0.0, 0.0)


def test_unequal_lengths():
    with pytest.raises(ValueError, match="1 hypotheses but 0 references"):
        alignment_statistics([set()], [set()], [])


def test_an_empty_corpus_has_no_score():
    with pytest.raises(ValueError, match="no sentence pairs"):
        alignment_scores(alignment_statistics([], [], []))
