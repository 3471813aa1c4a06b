import dataclasses
import itertools

import numpy as np
import pytest

from metrics_jax.judging.pairs import COEFFICIENTS, Groups, calibrate
from tests.fixtures import golden


def coefficient_by_loops(name, scores, human, labels, threshold=0.0):
    """The coefficient, computed pair by pair."""
    per_group = {}
    for i, j in itertools.combinations(range(len(scores)), 2):
        if labels[i] != labels[j]:
            continue
        counts = per_group.setdefault(labels[i], dict.fromkeys(("C", "D", "Th", "Tm", "Thm", "all"), 0))
        if name == "darr" and abs(human[i] - human[j]) < 25:
            continue
        tied = abs(scores[i] - scores[j]) <= threshold
        if human[i] == human[j]:
            counts["Thm" if tied else "Th"] += 1
        elif tied:
            counts["Tm"] += 1
        else:
            counts["C" if (scores[i] > scores[j]) == (human[i] > human[j]) else "D"] += 1
        counts["all"] += 1
    if name.startswith("wmt") or name == "darr":
        pooled = {key: sum(group[key] for group in per_group.values()) for key in ("C", "D", "Tm")}
        concordant, discordant, ties = pooled.values()
        if name in ("darr", "wmt_discordant"):
            discordant += ties
            ties = 0
        denominator = concordant + discordant + (ties if name == "wmt_neutral" else 0)
        return (concordant - discordant) / denominator
    values = []
    for c in per_group.values():
        if name in ("acc", "acc_eq"):
            values.append((c["C"] + c["Thm"]) / c["all"])
        elif name == "kendall_a":
            values.append((c["C"] - c["D"]) / c["all"])
        else:
            denominator = (c["C"] + c["D"] + c["Th"]) * (c["C"] + c["D"] + c["Tm"])
            values.append((c["C"] - c["D"]) / denominator**0.5 if denominator else np.nan)
    return np.nanmean(values)


def random_case(seed, decimals):
    random = np.random.default_rng(seed)
    labels = random.integers(0, 12, 90)
    labels = np.unique(labels, return_inverse=True)[1]
    human = random.integers(0, 5, 90) * 20.0
    scores = np.round(human / 60 + random.normal(size=90), decimals)
    return scores, human, labels


def test_golden_values(shared):
    file = golden.read(shared, "correlation")
    for case in file["cases"]:
        if case["level"] != "vector":
            continue
        x, y = (np.array(file["inputs"][case["input"]][side]) for side in "xy")
        one_group = Groups.of(np.zeros(len(x), int))

        def value(name, x=x, y=y, groups=one_group):
            return COEFFICIENTS[name].value(COEFFICIENTS[name].sums(groups, x, y))

        for name, key in (("kendall", "kendall_tau_b"), ("kendall_a", "kendall_tau_a")):
            expected = case["expected"][key]
            statistic = expected["statistic"] if isinstance(expected, dict) else expected
            assert value(name) == pytest.approx(float(statistic), abs=1e-9, nan_ok=True)
        counts, total = case["expected"]["pairs"], len(x) * (len(x) - 1) / 2
        assert value("acc") == pytest.approx((counts["concordant"] + counts["tied_both"]) / total)


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_coefficients_equal_loops_over_pairs(name):
    coefficient = COEFFICIENTS[name]
    for seed, decimals in itertools.product(range(4), (0, 1, 6)):
        scores, human, labels = random_case(seed, decimals)
        groups = Groups.of(labels)
        threshold = coefficient.threshold(groups, scores, human)
        assert coefficient.calibrated or threshold == 0
        value = coefficient.value(coefficient.sums(groups, scores, human, threshold))
        assert value == pytest.approx(coefficient_by_loops(name, scores, human, labels, threshold), abs=1e-12)


@pytest.mark.slow
def test_the_calibrated_threshold_is_optimal():
    for seed, decimals in itertools.product(range(4), (0, 1, 6)):
        scores, human, labels = random_case(seed, decimals)
        candidates = {0.0}
        for i, j in itertools.combinations(range(len(scores)), 2):
            candidates |= {abs(scores[i] - scores[j])} if labels[i] == labels[j] else set()
        accuracies = {one: coefficient_by_loops("acc_eq", scores, human, labels, one) for one in sorted(candidates)}
        best = max(accuracies.values())
        first = next(one for one, value in accuracies.items() if value > best - 1e-12)
        assert calibrate(Groups.of(labels), scores, human) == first


def test_golden_counts_of_wmt(shared):
    file = golden.read(shared, "correlation")
    cases = [case for case in file["cases"] if case["level"] == "pairs"]
    assert len(cases) == 3
    for case in cases:
        human, scores = (np.array(file["inputs"][case["input"]][side]) for side in ("human", "metric"))
        groups = Groups.of(np.repeat(np.arange(len(human)), human.shape[1]))
        for ties in ("discordant", "excluded", "neutral"):
            coefficient = COEFFICIENTS[f"wmt_{ties}"]
            if least := case["options"]["min_human_difference"]:
                # Like WMT's program, the file's rule keeps pairs exactly 25 apart, but its counts omit three of them.
                coefficient = dataclasses.replace(coefficient, least=np.nextafter(least, 100))
            sums = coefficient.sums(groups, scores.ravel(), human.ravel())
            assert coefficient.value(sums) == pytest.approx(case["expected"][f"tau_ties_{ties}"], abs=1e-9)
            if ties == "neutral":
                counts = case["expected"]
                assert sums[1].sum() == sum(counts[key] for key in ("concordant", "discordant", "metric_ties"))
                assert groups.num_pairs == sums[1].sum() + counts["skipped"]


def test_pairs_25_points_apart_are_kept():
    sums = COEFFICIENTS["darr"].sums(
        Groups.of(np.zeros(3, int)), np.array([1.0, 2.0, 3.0]), np.array([0.0, 25.0, 49.9])
    )
    assert sums[:, 0].tolist() == [2, 2, 2]  # pairs 24.9 apart are not


def test_blocks_contain_every_pair_once(monkeypatch):
    labels = np.array([0, 1, 1, 0, 2, 1, 1, 3, 3, 0, 1])
    expected = {(i, j) for i, j in itertools.combinations(range(11), 2) if labels[i] == labels[j]}
    for size in (1, 3, 7, 100):
        monkeypatch.setattr("metrics_jax.judging.pairs._BLOCK_SIZE", size)
        blocks = Groups.of(labels).pairs()
        found = [pair for _, one, other in blocks for pair in zip(one.ravel(), other.ravel(), strict=True)]
        assert len(found) == len(expected) == Groups.of(labels).num_pairs
        assert {tuple(sorted(map(int, pair))) for pair in found} == expected


def test_differences_of_25_points_count_despite_rounding():
    human, scores = np.array([75.1, 50.1, 25.2]), np.array([3.0, 2.0, 1.0])
    assert human[0] - human[1] < 25
    sums = COEFFICIENTS["darr"].sums(Groups.of(np.zeros(3, int)), scores, human)
    assert sums[1].sum() == 2  # the first text and the others; the difference of these is 24.9


def test_calibration_on_a_subset_of_the_differences(monkeypatch):
    scores, human, labels = random_case(0, 6)
    groups = Groups.of(labels)
    best = calibrate(groups, scores, human)
    accuracy = coefficient_by_loops("acc_eq", scores, human, labels, best)
    monkeypatch.setattr("metrics_jax.judging.pairs._CANDIDATES", 100)
    near = coefficient_by_loops("acc_eq", scores, human, labels, calibrate(groups, scores, human))
    assert accuracy - 0.02 < near <= accuracy


def test_coefficients_without_pairs_are_nan():
    groups = Groups.of(np.arange(3))
    for coefficient in COEFFICIENTS.values():
        assert np.isnan(coefficient.value(coefficient.sums(groups, np.arange(3.0), np.arange(3.0))))
    assert calibrate(groups, np.arange(3.0), np.arange(3.0)) == 0
