import itertools

import numpy as np
import pytest

from metrics_jax import significance
from metrics_jax.significance import bootstrap, document_scores, paired_bootstrap, paired_randomisation
from metrics_jax.surface.bleu import BLEU

PAIRED = [paired_bootstrap, paired_randomisation]


class Mean:
    """A metric with statistics (value, 1)."""

    higher_is_better = True

    def score(self, statistics):
        return statistics[..., 0] / statistics[..., 1]


class Errors(Mean):
    higher_is_better = False


def with_counts(values):
    return np.stack([values, np.ones_like(values)], axis=-1)


def normal(seed, n=100, mean=10.0):
    return with_counts(np.random.default_rng(seed).normal(mean, 1.0, n))


WHO = [
    "the old farmer",
    "a young doctor",
    "my neighbour",
    "the pilot",
    "her brother",
    "the quiet clerk",
    "a child",
]
DOES = ["carries", "paints", "repairs", "forgets", "sells"]
WHAT = ["a red bicycle", "the broken clock", "two wooden chairs", "his letter", "the green door", "an empty box"]
WHERE = ["behind the station", "in the early morning", "near the river", "without a word"]


def translations():
    """BLEU statistics of three systems on 120 sentences."""
    references, good, fair, poor = [], [], [], []
    for i in range(120):
        who, does, what, where = WHO[i % 7], DOES[i % 5], WHAT[i % 6], WHERE[i % 4]
        other = WHAT[(i + 1) % 6]
        references.append(f"{who} {does} {what} {where} .")
        good.append(f"{who} {does} {what if i % 3 else other} {where} .")
        fair.append(f"{who} {does} {what if (i * i) % 5 else other} {where if i % 11 else 'there'} .")
        poor.append(f"{who if i % 2 else 'someone'} {does} {other if i % 4 == 1 else what} {where} .")
    return {
        name: BLEU().statistics(texts, references) for name, texts in (("good", good), ("fair", fair), ("poor", poor))
    }


def test_equal_to_sacrebleu():
    # sacrebleu 2.6.0 on these sentences: PairedTest(systems, {"BLEU": BLEU()}, [references], "bs") and "ar", with its
    # default seed 12345. It resamples in single precision: p-values are equal, intervals to about six digits.
    bootstrapped = paired_bootstrap(BLEU(), translations())
    randomised = paired_randomisation(BLEU(), translations())
    assert [row.system for row in bootstrapped] == ["good", "fair", "poor"]
    scores = [row.interval.score for row in bootstrapped]
    np.testing.assert_allclose(scores, [82.67408187568168, 86.49075418558513, 74.71256650986263], rtol=1e-12)
    means = [row.interval.mean for row in bootstrapped]
    np.testing.assert_allclose(means, [82.61210195969304, 86.47252105416196, 74.72670025476255], rtol=2e-6)
    half_widths = [row.interval.half_width for row in bootstrapped]
    np.testing.assert_allclose(half_widths, [4.592027194417625, 4.0180399101921935, 3.109072311598055], rtol=2e-6)
    assert [row.p_value for row in bootstrapped] == [None, 0.0969030969030969, 0.002997002997002997]
    assert [row.p_value for row in randomised] == [None, 0.20277972202779723, 0.0057994200579942]
    assert [row.significant for row in bootstrapped] == [False, False, True]
    assert [row.interval for row in bootstrapped] == [row.interval for row in randomised]


@pytest.mark.parametrize("chunk", [1, 1000, 2**16])
def test_draws_equal_sacrebleu_whatever_the_block_size(chunk, monkeypatch):
    monkeypatch.setattr(significance, "_CHUNK", chunk)
    table = np.random.default_rng(0).integers(9, size=(2, 77, 3)).astype(float)
    drawn = np.random.default_rng(5).choice(77, size=(100, 77), replace=True)
    np.testing.assert_array_equal(significance._resample(table, 100, seed=5), table[:, drawn].sum(axis=2))
    chosen = np.random.default_rng(5).integers(2, size=(100, 77), dtype=bool)
    spans = list(significance._shuffle(table, 100, seed=5))
    np.testing.assert_array_equal(np.concatenate([kept for _, kept, _ in spans], axis=1), chosen @ table)
    np.testing.assert_array_equal(np.concatenate([rest for _, _, rest in spans], axis=1), ~chosen @ table)


@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_coverage_of_intervals(alpha):
    trials = 400
    intervals = [bootstrap(Mean(), normal(seed), resamples=400, seed=seed, alpha=alpha) for seed in range(trials)]
    covered = np.mean([interval.lower <= 10.0 <= interval.upper for interval in intervals])
    assert covered == pytest.approx(1 - alpha, abs=4 * (alpha * (1 - alpha) / trials) ** 0.5)
    assert all(one.half_width == pytest.approx((one.upper - one.lower) / 2) for one in intervals)


def test_interval_bounds_have_the_ranks_of_sacrebleu():
    for resamples in range(1, 3000):  # the 95 % bounds are scores n // 40 from either end of the sorted list
        interval = significance.percentile_interval(0.0, np.arange(resamples)[::-1], 0.05)
        assert (interval.lower, interval.upper) == (resamples // 40, resamples - resamples // 40 - 1)


@pytest.mark.parametrize(("test", "rate"), [(paired_bootstrap, 0.1), (paired_randomisation, 0.05)])
def test_false_positive_rate_and_power(test, rate):
    def significant(gap, pairs):
        drawn = [{"a": normal(seed, 80), "b": normal(seed + 1000, 80, 10 + gap)} for seed in range(pairs)]
        return np.mean([test(Mean(), pair, resamples=300, seed=1)[1].significant for pair in drawn])

    assert significant(0.0, pairs=300) == pytest.approx(rate, abs=4 * (rate * (1 - rate) / 300) ** 0.5)
    assert significant(1.0, pairs=50) > 0.9


@pytest.mark.parametrize("test", PAIRED)
@pytest.mark.parametrize("metric", [Mean(), Errors()])
def test_copies_do_not_differ(test, metric):
    systems = {"baseline": normal(1), "better": normal(2, mean=11.0), "copy": normal(1)}
    _, other, copy = test(metric, systems, resamples=200)
    assert (copy.p_value, copy.difference, copy.wins, copy.significant) == (1.0, 0.0, 0.0, False)
    assert other.p_value < 0.01
    n = 200 if test is paired_bootstrap else 10_000
    assert test(metric, systems, resamples=200, strict=True)[2].p_value == 1 / (n + 1)  # as in sacrebleu


def test_one_different_segment_is_not_significant():
    baseline = normal(1, 1000)
    system = baseline.copy()
    system[17, 0] += 500.0
    assert paired_randomisation(Mean(), {"a": baseline, "b": system})[1].p_value == 1.0


def test_randomisation_approximates_the_exact_test():
    a, b = normal(3, 9), normal(4, 9, mean=10.7)
    gaps = a[:, 0] - b[:, 0]
    everything = np.abs(np.array(list(itertools.product([1, -1], repeat=9))) @ gaps)
    exact = np.mean(everything >= abs(gaps.sum()) - 1e-9)
    trials = 20_000
    found = paired_randomisation(Mean(), {"a": a, "b": b}, trials=trials)[1].p_value
    assert 0 < exact < 1
    assert found == pytest.approx(exact, abs=4 * (exact * (1 - exact) / trials) ** 0.5 + 1e-4)


@pytest.mark.parametrize("test", PAIRED)
def test_invariance_to_other_systems_order_and_scale(test):
    systems = {"a": normal(1), "b": normal(2), "c": normal(3)}
    rows = {row.system: row for row in test(Mean(), systems, seed=7, resamples=500)}
    alone = test(Mean(), {"b": systems["b"], "a": systems["a"]}, baseline="a", seed=7, resamples=500)[0]
    assert (alone.p_value, alone.wins) == (rows["b"].p_value, rows["b"].wins)  # other systems, order
    scaled = {name: statistics * [100.0, 1.0] for name, statistics in systems.items()}
    assert [row.p_value for row in test(Mean(), scaled, seed=7, resamples=500)][1:] == [
        rows[name].p_value for name in "bc"
    ]
    again = test(Mean(), systems, seed=7, resamples=500)
    assert again == list(rows.values())
    assert test(Mean(), systems, seed=8, resamples=500) != again


@pytest.mark.parametrize("test", PAIRED)
def test_row_of_the_baseline_and_direction_of_wins(test):
    systems = {"a": normal(1, mean=11.0), "b": normal(2)}
    other, baseline = test(Mean(), systems, "b")
    assert baseline.p_value is None
    assert baseline.wins is None
    assert not baseline.significant
    assert baseline.difference == 0.0
    assert other.difference == pytest.approx(other.interval.score - baseline.interval.score)
    assert other.wins > 0.99
    assert test(Errors(), systems, "b")[0].wins < 0.01


def test_documents_are_scored_from_summed_statistics():
    statistics = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 1.0], [0.0, 2.0]])
    result = document_scores(Mean(), statistics, ["x", "y", "x", "y"])
    assert result.documents == ("x", "y")
    np.testing.assert_allclose(result.scores, [6 / 3, 3 / 6])
    assert result.score == pytest.approx(1.25)
    with pytest.raises(ValueError, match="4 segments but 3 document labels"):
        document_scores(Mean(), statistics, ["x", "y", "x"])


@pytest.mark.parametrize("test", PAIRED)
def test_documents_are_resampled(test):
    systems = {"a": normal(1, 60), "b": normal(2, 60)}
    documents = np.arange(60) % 12
    means = {name: with_counts(document_scores(Mean(), one, documents).scores) for name, one in systems.items()}
    assert test(Mean(), systems, documents=documents) == test(Mean(), means)
    interval = bootstrap(Mean(), systems["a"], documents=documents)
    assert interval == bootstrap(Mean(), means["a"])
    assert interval.score == pytest.approx(document_scores(Mean(), systems["a"], documents).score)
    one_each = bootstrap(BLEU(), translations()["fair"], documents=range(120))
    assert one_each.score == pytest.approx(BLEU().score(translations()["fair"]).mean())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"systems": {}}, "no systems"),
        ({"systems": {"a": np.ones(3)}}, r"float\[segments, K\]"),
        ({"systems": {"a": np.ones((0, 2))}}, r"float\[segments, K\]"),
        (
            {"systems": {"a": np.ones((3, 2)), "b": np.ones((4, 2))}},
            r"b has statistics of shape \(4, 2\) but a of \(3, 2\)",
        ),
        ({"systems": {"a": np.array([[-np.inf, 1.0]])}}, "NaN or infinity"),
        ({"baseline": "c"}, "no system 'c' for the baseline; choose one of a, b"),
        ({"resamples": 0}, "resamples must be at least 1"),
        ({"alpha": 95}, "alpha must be between 0 and 1"),
    ],
)
@pytest.mark.parametrize("test", PAIRED)
def test_impossible_arguments(test, arguments, message):
    with pytest.raises(ValueError, match=message):
        test(**{"metric": Mean(), "systems": {"a": normal(1), "b": normal(2)}} | arguments)
