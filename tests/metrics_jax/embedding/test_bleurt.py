"""BLEURT with a toy scorer over letters."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metrics_jax import BLEURT, parse
from metrics_jax.embedding.bleurt import PairRow, PairScorer
from metrics_jax.embedding.contextual import TextTooLongError

LONGEST = 20


def tokenize(references, candidates):
    """[1] reference [2] candidate [2] with one piece per letter, truncated to 20 pieces."""
    rows = []
    for reference, candidate in zip(references, candidates, strict=True):
        left = reference[: max(LONGEST - 3 - len(candidate), 0)]
        right = candidate[: LONGEST - 3 - len(left)]
        ids = [1, *map(ord, left), 2, *map(ord, right), 2]
        segments = [0] * (len(left) + 2) + [1] * (len(right) + 1)
        rows.append(PairRow(np.array(ids), np.array(segments), len(reference) + len(candidate) + 3))
    return rows


def score(weights, ids, mask, segments):
    """The mean weight over a row; weights depend on letter and segment."""
    found = jnp.where(mask, weights[segments, ids], 0.0)
    return jnp.sum(jnp.tanh(found), axis=1) / jnp.sum(mask, axis=1)


def make(weights=None) -> PairScorer:
    if weights is None:
        weights = np.random.default_rng(0).normal(size=(2, 256)).astype(np.float32)
    return PairScorer(tokenize, jax.tree_util.Partial(score, jnp.asarray(weights)), LONGEST, "b" * 64, "float32")


def by_hand(reference, candidate):
    row = tokenize([reference], [candidate])[0]
    weights = np.random.default_rng(0).normal(size=(2, 256)).astype(np.float32)
    return np.tanh(weights[row.segments, row.ids]).mean()


def test_the_reference_is_read_first():
    found = BLEURT(make())(["abc", "x", ""], ["ab", "", "yz"])
    np.testing.assert_allclose(found.segments, [by_hand("ab", "abc"), by_hand("", "x"), by_hand("yz", "")], atol=1e-6)
    assert found.score == pytest.approx(found.segments.mean())
    assert found.segments[0] != BLEURT(make())(["ab"], ["abc"]).score


def test_several_references_give_the_maximum_or_the_mean():
    groups = [["ab", "cd", "xyz"], ["q"]]
    each = [by_hand(reference, "abd") for reference in groups[0]]
    assert BLEURT(make())(["abd", "r"], groups).segments[0] == pytest.approx(max(each), abs=1e-6)
    mean = BLEURT(make(), multi_reference="mean")(["abd", "r"], groups)
    np.testing.assert_allclose(mean.segments, [np.mean(each), by_hand("q", "r")], atol=1e-6)
    assert "|multi_reference:mean|" in mean.signature


def test_a_score_is_independent_of_other_segments():
    metric, generator = BLEURT(make()), np.random.default_rng(1)
    texts = ["".join(chr(97 + one) for one in generator.integers(0, 8, size=n)) for n in generator.integers(0, 9, 300)]
    whole = metric(texts, texts[::-1]).segments
    alone = [metric([a], [b]).score for a, b in list(zip(texts, texts[::-1], strict=True))[:40]]
    np.testing.assert_array_equal(whole[:40], alone)
    np.testing.assert_array_equal(
        metric(texts[::-1], texts).segments[::-1][:150], metric(texts, texts[::-1]).segments[:150]
    )
    statistics = metric.statistics(texts, texts[::-1])
    assert metric.score(statistics.sum(axis=0)) == pytest.approx(metric(texts, texts[::-1]).score, abs=1e-12)


def test_pairwise_equals_single_scores():
    metric, hypotheses, references = BLEURT(make()), ["ab", "", "cab"], ["b", "ab"]
    expected = [[metric([h], [r]).score for r in references] for h in hypotheses]
    np.testing.assert_array_equal(metric.pairwise(hypotheses, references), expected)
    assert metric.pairwise([], references).shape == (0, 2)


def test_truncated_pairs_are_counted_or_raise_an_error():
    pairs = (["a" * 10, "b", "c" * 10], [["d" * 7], ["e"], ["f", "g" * 30]])
    assert BLEURT(make())(*pairs).parts == {"long": 1.0}
    assert BLEURT(make())(["a" * 10], ["d" * 7]).parts == {"long": 0.0}  # 20 pieces fit
    with pytest.raises(TextTooLongError, match=r"segment 2 .* 43 pieces .* the encoder reads at most 20") as caught:
        BLEURT(make(), long="error")(*pairs)
    assert caught.value.segment == 2
    assert "long:truncate" in BLEURT(make()).signature


def test_a_signature_restores_the_metric():
    metric = BLEURT(make(), multi_reference="mean", long="error")
    assert metric.signature == f"bleurt|scorer:{'b' * 16}.float32|multi_reference:mean|long:error|version:0.1.0"
    assert parse(metric.signature, scorer=metric.scorer) == metric
    with pytest.raises(ValueError, match="computed with scorer"):
        parse(metric.signature, scorer=dataclasses.replace(make(), fingerprint="c" * 64))
    with pytest.raises(ValueError, match="bleurt needs scorer"):
        parse("bleurt")


def test_invalid_input_raises_errors():
    metric = BLEURT(make())
    with pytest.raises(ValueError, match="2 hypotheses but 1 references"):
        metric(["a", "b"], ["a"])
    with pytest.raises(TypeError, match="not a single string"):
        metric.pairwise("a", ["a"])
    with pytest.raises(ValueError, match="multi_reference='best': choose max or mean"):
        BLEURT(make(), multi_reference="best")
    with pytest.raises(ValueError, match="long='window': choose truncate or error"):
        BLEURT(make(), long="window")
    with pytest.raises(ValueError, match="NaN or infinity: the weights"):
        BLEURT(make(np.full((2, 256), np.nan, np.float32)))(["a"], ["b"])
