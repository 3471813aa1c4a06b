import numpy as np
import ot
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics_jax import Idf, TemperedWMD, parse
from tests.fixtures import texts, tiny_encoder

ENCODER = tiny_encoder.make()
METRICS = [
    TemperedWMD(ENCODER),
    TemperedWMD(ENCODER, layer=2, temperature=0.1, num_iters=3, idf=Idf({5: 2, 100: 1}, 3)),
    TemperedWMD(ENCODER, layer=1, temperature=0.15, relaxed=True),
]
each = pytest.mark.parametrize("metric", METRICS, ids=["plain", "weighted", "relaxed"])

short = st.text("ab c", max_size=6)


def tokens(text, metric, weigh=lambda token: 1.0, encoder=ENCODER):
    """Unit vectors and normalized weights of the tokens that are compared: all but [SEP]."""
    vectors, ids, special = tiny_encoder.states(encoder, text, metric.layer)
    kept = np.flatnonzero(~special | (np.arange(len(special)) == 0))
    weights = np.array([weigh(int(token)) for token in ids[kept]])
    return vectors[kept], weights / weights.sum()


def mean_cosine(x, a, y, b, metric):
    """The mean cosine under the plan normalized last over x, from its definition."""
    cosines = x @ y.T
    plan = np.exp(cosines / metric.temperature)
    if metric.relaxed:
        plan *= (a / plan.sum(axis=1))[:, None]
    for _ in range(0 if metric.relaxed else metric.num_iters):
        plan *= b / plan.sum(axis=0)
        plan *= (a / plan.sum(axis=1))[:, None]
    return (plan * cosines).sum()


def expected_scores(hypothesis, reference, metric, weigh=lambda token: 1.0):
    """F, precision and recall."""
    x, y = tokens(hypothesis, metric, weigh), tokens(reference, metric, weigh)

    def sides(x, y):
        precision, recall = mean_cosine(*x, *y, metric), mean_cosine(*y, *x, metric)
        f1 = 2 * precision * recall / (precision + recall) if precision * recall > 0 else 0.0
        return np.array([f1, precision, recall])

    return sides(x, y) / np.sqrt(sides(x, x) * sides(y, y))


# Cold plans of few iterations may have a mean cosine near 0: the quotient makes much of float32.
@pytest.mark.parametrize("options", [{}, {"num_iters": 3}, {"relaxed": True}], ids=str)
@given(st.lists(st.tuples(short, short), min_size=1, max_size=4), st.sampled_from([0.02, 0.1, 1.0]), st.booleans())
@settings(max_examples=12, deadline=None)
def test_equals_the_definition(options, pairs, temperature, weighted):
    idf = Idf({3 + ord("a"): 3, 3 + ord("b") + 128: 1, 1: 2}, 4)
    metric = TemperedWMD(ENCODER, layer=1, temperature=temperature, idf=idf if weighted else "uniform", **options)
    weigh = idf.__getitem__ if weighted else lambda token: 1.0
    found = metric.statistics(*zip(*pairs, strict=True))[:, :3]
    np.testing.assert_allclose(found, [expected_scores(*pair, metric, weigh) for pair in pairs], atol=2e-4)


@pytest.mark.slow
def test_many_iterations_are_entropic_transport():
    hypothesis, reference = "abc a ca b", "c b ab cc"
    for temperature in (0.3, 1.0):
        metric = TemperedWMD(ENCODER, layer=2, temperature=temperature, num_iters=300)
        x, y = tokens(hypothesis, metric), tokens(reference, metric)

        def value(x, y, temperature=temperature):
            cosines = x[0] @ y[0].T
            return (ot.sinkhorn(x[1], y[1], -cosines, temperature, numItermax=5000, stopThr=1e-9) * cosines).sum()

        expected = value(x, y) / np.sqrt(value(x, x) * value(y, y))
        parts = metric([hypothesis], [reference]).parts
        for name in ("f1", "precision", "recall"):
            assert parts[name] == pytest.approx(expected, abs=1e-5)


def test_relaxed_at_low_temperature_is_the_best_match():
    cold = TemperedWMD(ENCODER, layer=2, temperature=1e-3, relaxed=True)
    (x, _), (y, _) = tokens("abc a", cold), tokens("c ab", cold)
    parts = cold(["abc a"], ["c ab"]).parts
    assert parts["precision"] == pytest.approx((x @ y.T).max(axis=1).mean(), abs=1e-5)
    assert parts["recall"] == pytest.approx((x @ y.T).max(axis=0).mean(), abs=1e-5)


@each
@given(texts.segments(short))
@settings(max_examples=6, deadline=None)
def test_a_segment_score_is_bit_identical_without_other_segments(metric, pairs):
    hypotheses, references = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    statistics = metric.statistics(hypotheses, references)
    alone = [metric.statistics([hypothesis], [group])[0] for hypothesis, group in pairs]
    np.testing.assert_array_equal(statistics, alone)
    assert np.isfinite(statistics).all()


@each
def test_pairwise_equals_single_scores(metric):
    hypotheses, references = ["ab c", "", "cc", "abc abc ab"], ["ab c", "b", "a b c a b c a b c", " "]
    expected = [[metric([h], [r]).score for r in references] for h in hypotheses]
    np.testing.assert_allclose(metric.pairwise(hypotheses, references), expected, atol=1e-5)


@each
def test_equal_texts_score_1(metric):
    lines = ["the old man sleeps", "a", "!? b"]
    np.testing.assert_allclose(metric(lines, lines).segments, 1, atol=1e-5)


def test_texts_without_tokens():
    plain = TemperedWMD(tiny_encoder.plain())
    np.testing.assert_array_equal(plain(["", "a", ""], ["a", "", ""]).segments, [0, 0, 1])
    np.testing.assert_array_equal(plain.pairwise(["", "a"], [""]), [[1], [0]])
    scores = TemperedWMD(ENCODER)(["", "a", ""], ["a", "", ""]).segments  # [CLS] remains
    assert (scores[:2] < 1).all()
    assert scores[2] == pytest.approx(1, abs=1e-6)


def test_all_columns_come_from_the_best_reference():
    references = ["a b", "ac cab abc", "c"]
    single = METRICS[0].statistics(["abc a"] * 3, references)[:, :3]
    together = METRICS[0].statistics(["abc a"], [references])[0, :3]
    np.testing.assert_array_equal(together, single[single[:, 0].argmax()])


@each
def test_a_signature_restores_the_metric(metric):
    objects = {"encoder": ENCODER} | ({"idf": metric.idf} if isinstance(metric.idf, Idf) else {})
    assert parse(metric.signature, **objects) == metric


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"temperature": 0.0}, "temperature=0.0"),
        ({"temperature": float("inf")}, "temperature=inf"),
        ({"num_iters": 0}, "num_iters=0"),
        ({"relaxed": True, "num_iters": 2}, "num_iters=2"),
    ],
)
def test_invalid_options_raise_errors(options, line):
    with pytest.raises(ValueError, match=line):
        TemperedWMD(ENCODER, **options)
