import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics_jax.prediction.perplexity import BitsPerToken, Perplexity
from metrics_jax.significance import bootstrap

segments = st.lists(st.tuples(st.floats(-500, 0), st.integers(1, 50)), min_size=1, max_size=20)


def test_a_uniform_model_has_the_perplexity_of_its_vocabulary_size():
    tokens = np.array([3, 10, 1])
    result = Perplexity()(-tokens * math.log(8000), tokens)
    assert result.score == pytest.approx(8000)
    np.testing.assert_allclose(result.segments, 8000)
    assert result.parts["tokens"] == 14
    assert result.parts["log_probability"] == pytest.approx(-14 * math.log(8000))
    assert result.signature.startswith("perplexity|version:")
    assert BitsPerToken()(-tokens * math.log(8), tokens).score == pytest.approx(3.0)


def test_long_segments_weigh_more():
    # -6 nats over 2 tokens and -1 over 8: exp(7 / 10), not the mean of exp(3) and exp(1 / 8)
    result = Perplexity()([-6.0, -1.0], [2, 8])
    assert result.score == pytest.approx(math.exp(0.7))
    np.testing.assert_allclose(result.segments, [math.exp(3.0), math.exp(0.125)])


@given(segments)
def test_range_and_additive_statistics(rows):
    sums, tokens = map(list, zip(*rows, strict=True))
    metric = Perplexity()
    result = metric(sums, tokens)
    statistics = metric.statistics(sums, tokens)
    assert result.score >= 1.0
    assert metric.score(statistics.sum(axis=0)) == pytest.approx(result.score)
    assert metric.score(np.stack([statistics, statistics])).shape == (2, len(rows))
    bits = BitsPerToken()(sums, tokens)
    assert bits.score >= 0
    assert bits.score == pytest.approx(math.log2(result.score), rel=1e-9, abs=1e-12)
    order = np.argsort(sums)
    assert metric(np.array(sums)[order], np.array(tokens)[order]).score == pytest.approx(result.score)


def test_extreme_values():
    result = Perplexity()([0.0, 0.0, -1e6, -math.inf], [0, 5, 1, 2])
    np.testing.assert_array_equal(result.segments, [1.0, 1.0, math.inf, math.inf])
    assert result.score == math.inf
    assert Perplexity()([0.0], [0]).score == 1.0
    assert BitsPerToken()([0.0], [0]).score == 0.0
    assert math.copysign(1.0, BitsPerToken()([0.0], [4]).score) == 1.0


def test_it_can_be_bootstrapped():
    tokens = np.arange(1, 101)
    statistics = Perplexity().statistics(-2.0 * tokens - np.cos(tokens), tokens)
    interval = bootstrap(Perplexity(), statistics)
    assert interval.lower < interval.score < interval.upper
    assert interval.score == pytest.approx(math.exp(2.0), rel=0.01)


@pytest.mark.parametrize(
    ("sums", "tokens", "message"),
    [
        ([-1.0, -2.0], [1], "one number per segment"),
        ([], [], "no segments"),
        ([-1.0, 2.0], [3, 3], "segment 1: invalid log-probability 2.0 of 3 tokens: .*negate losses"),
        ([math.nan], [3], "segment 0"),
        ([-1.0], [-3], "segment 0"),
        ([-1.0], [0], "segment 0: invalid log-probability -1.0 of 0 tokens"),
        ([-1.0], [math.inf], "segment 0"),
    ],
)
def test_impossible_arguments(sums, tokens, message):
    with pytest.raises(ValueError, match=message):
        Perplexity()(sums, tokens)
