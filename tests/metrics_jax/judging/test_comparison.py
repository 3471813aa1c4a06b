import itertools

import numpy as np
import pytest
import scipy.stats

from metrics_jax.judging.agreement import MeanAgreement, agreement
from metrics_jax.judging.comparison import clusters, intervals, p_values, williams
from metrics_jax.judging.judgements import Judgements


def example(noise, seed=0, size=120):
    random = np.random.default_rng(seed)
    human = random.normal(size=size)
    labels = [f"s{k % 6}" for k in range(size)], [k // 6 for k in range(size)]
    return Judgements(human, *labels), np.stack([human + level * random.normal(size=size) for level in noise])


def test_p_values_equal_loops_over_permutations():
    judged, scores = example((0.5, 0.8, 3.0))
    standard = (scores - scores.mean(axis=1, keepdims=True)) / scores.std(axis=1, keepdims=True)
    flips = np.random.default_rng(7).integers(2, size=(99, 120), dtype=np.uint8).astype(bool)
    p = p_values(agreement(judged, "pearson"), scores, trials=99, seed=7)
    for a, b in itertools.combinations(range(3), 2):
        r = [scipy.stats.pearsonr(scores[k], judged.human).statistic for k in (a, b)]
        as_large = 1
        for flip in flips:
            one, two = np.where(flip, standard[b], standard[a]), np.where(flip, standard[a], standard[b])
            swapped = [scipy.stats.pearsonr(side, judged.human).statistic for side in (one, two)]
            as_large += abs(swapped[0] - swapped[1]) >= abs(r[0] - r[1])
        assert p[a, b] == p[b, a] == as_large / 100
    assert np.isnan(p.diagonal()).all()


@pytest.mark.parametrize("name", ["pearson", "kendall", "acc_eq", "wmt_excluded"])
def test_better_metrics_are_significant_and_copies_are_not(name):
    judged, scores = example((0.3, 0.3, 4.0))
    scores[1] = scores[0] * 7 - 2
    p = p_values(agreement(judged, name, "segment", "item"), scores, trials=400)
    assert p[0, 1] == 1
    assert p[0, 2] < 0.01


def test_false_positive_rate():
    found = []
    for seed in range(150):
        judged, scores = example((1, 1), seed)
        found.append(p_values(agreement(judged, "pearson"), scores, trials=99)[0, 1])
    assert 0.01 <= np.mean(np.array(found) <= 0.1) <= 0.19
    assert 0.35 < np.mean(found) < 0.65


def test_intervals_contain_the_value():
    judged, scores = example((0.5, 2.0))
    for name, grouping in (("pearson", "none"), ("kendall", "item"), ("wmt_neutral", "item")):
        wide, narrow = (intervals(agreement(judged, name, "segment", grouping), scores, alpha=a) for a in (0.05, 0.5))
        for one, other in zip(wide, narrow, strict=True):
            assert one.lower < other.lower < one.score < other.upper < one.upper
            assert one.half_width == pytest.approx((one.upper - one.lower) / 2)
    fisher = np.tanh(np.arctanh(0.85) + np.array([-1, 1]) * 1.96 / np.sqrt(117))
    random = np.random.default_rng(0)
    x, z = random.normal(size=(2, 120))
    z -= x * (x @ z) / (x @ x) + (z - x * (x @ z) / (x @ x)).mean()
    y = 0.85 * (x - x.mean()) / x.std() + np.sqrt(1 - 0.85**2) * z / z.std()
    one = intervals(agreement(Judgements(x), "pearson"), y[None])[0]
    np.testing.assert_allclose([one.lower, one.upper], fisher, atol=0.03)


def test_a_constant_metric_has_no_interval():
    judged, scores = example((0.5, 1.0))
    scores[1] = 4
    one = intervals(agreement(judged, "pearson"), scores, draws=20)[1]
    assert np.isnan([one.score, one.lower, one.upper]).all()
    assert np.isnan(p_values(agreement(judged, "pearson"), scores, trials=20)).all()


def test_williams():
    # r.test(103, .4, .5, .1) of the R package psych prints t -0.89, p < 0.37.
    found = williams(0.4, 0.5, 0.1, 103)
    assert found.t == pytest.approx(-0.89, abs=0.005)
    assert found.p_value == pytest.approx(0.37, abs=0.01)
    assert williams(0.5, 0.4, 0.1, 103).t == -found.t
    assert williams(0.5, 0.5, 0.3, 50).p_value == 1
    assert np.isnan(williams(0.5, 0.5, 1.0, 50).t)
    with pytest.raises(ValueError, match="four"):
        williams(0.5, 0.4, 0.3, 3)


def test_clusters():
    p = np.array([[np.nan, 0.5, 0.01, 0.2], [0.5, np.nan, 0.2, 0.3], [0.01, 0.2, np.nan, 0.9], [0.2, 0.3, 0.9, np.nan]])
    assert clusters(np.array([0.9, 0.8, 0.7, 0.6]), p).tolist() == [1, 1, 2, 2]
    assert clusters(np.array([0.6, 0.7, 0.8, 0.9]), p).tolist() == [2, 1, 1, 1]
    assert clusters(np.array([0.9, np.nan, 0.7, 0.6]), p).tolist() == [1, 3, 2, 2]
    assert clusters(np.full(2, np.nan), np.full((2, 2), np.nan)).tolist() == [1, 1]


def test_invalid_arguments():
    judged, scores = example((0.5, 1.0))
    with pytest.raises(ValueError, match="draws must be at least 1"):
        intervals(agreement(judged, "pearson"), scores, draws=0)
    with pytest.raises(ValueError, match="alpha must be between 0 and 1, not 1"):
        intervals(agreement(judged, "pearson"), scores, alpha=1)
    with pytest.raises(ValueError, match="use kendall"):
        p_values(agreement(judged, "kendall_c"), scores)


@pytest.mark.parametrize(("name", "level"), [("pearson", "segment"), ("acc_eq", "segment"), ("spa", "system")])
def test_mean_of_several_sets(name, level):
    examples = [example((0.5, 0.8, 3.0), seed, size) for seed, size in ((0, 120), (1, 60))]
    parts = [agreement(judged, name, level, "item" if level == "segment" else "none") for judged, _ in examples]
    mean = MeanAgreement(parts, [120, 60])
    scores = np.concatenate([scores for _, scores in examples], axis=1)
    each = [part.values(scores) for part, (_, scores) in zip(parts, examples, strict=True)]
    np.testing.assert_allclose(mean.values(scores), np.mean(each, axis=0))
    assert mean.of_systems == (level == "system")

    drawn = mean.resampled(scores, 50, np.random.default_rng(3))
    generator = np.random.default_rng(3)
    alone = [part.resampled(scores, 50, generator) for part, (_, scores) in zip(parts, examples, strict=True)]
    np.testing.assert_allclose(drawn, np.mean(alone, axis=0))

    generator = np.random.default_rng(3)
    expected = np.zeros((3, 3, 40))
    for part, (_, own) in zip(parts, examples, strict=True):
        filled = np.zeros((3, 3), int)
        for a, b, some in part.swapped(own, 40, generator):
            expected[a, b, filled[a, b] : filled[a, b] + len(some)] += some / 2
            filled[a, b] += len(some)
    for a, b, differences in mean.swapped(scores, 40, np.random.default_rng(3)):
        np.testing.assert_allclose(differences, expected[a, b])
    p = p_values(mean, scores, trials=199)
    assert p[0, 2] < 0.05


def test_the_mean_over_sets_has_a_narrower_interval():
    examples = [example((0.8,), seed) for seed in range(9)]
    parts = [agreement(judged, "pearson") for judged, _ in examples]
    scores = np.concatenate([scores for _, scores in examples], axis=1)
    one = intervals(parts[0], examples[0][1])[0]
    mean = intervals(MeanAgreement(parts, [120] * 9), scores)[0]
    assert mean.upper - mean.lower < (one.upper - one.lower) / 2
