"""Values, samples and swaps of coefficients against plain loops; see also test_pairs and test_soft_accuracy."""

import itertools

import numpy as np
import pytest
import scipy.stats

from metrics_jax.judging.agreement import agreement, p_values, soft_accuracy
from metrics_jax.judging.coefficient import NAMES
from metrics_jax.judging.judgements import Judgements
from tests.metrics_jax.judging.test_pairs import coefficient_by_loops

COMBINATIONS = [
    (name, level, grouping)
    for name in NAMES
    for level, grouping in (("segment", "none"), ("segment", "item"), ("segment", "system"), ("system", "none"))
    if (name == "spa") == (level == "system") or (level == "system" and name[:3] not in ("wmt", "dar"))
    if (name, level) not in (("acc_eq", "system"), ("spa", "segment"))
]


def example(systems=6, items=7, missing=0.15, seed=0, decimals=1):
    random = np.random.default_rng(seed)
    rows = [(s, i) for s, i in itertools.product(range(systems), range(items)) if random.random() > missing]
    human = np.array([20.0 * random.integers(0, 5) + 2 * s for s, _ in rows])
    scores = np.stack([human / 30 * share + random.normal(size=len(rows)) for share in (0.5, 1.0, 2.0)])
    scores[1] = np.round(scores[1], decimals) * 10
    return Judgements(human, [s for s, _ in rows], [f"i{i}" for _, i in rows]), scores


def value_by_loops(name, level, grouping, judged, scores, human=None, threshold=None):
    """The coefficient, computed group by group and pair by pair."""
    human = judged.human if human is None else human
    if name == "spa":
        return float(soft_accuracy(p_values(judged.table(scores)), p_values(judged.table(human))))
    if name.startswith("wmt") or name == "darr":
        labels = judged.labels("item")
    elif level == "segment":
        labels = judged.labels(grouping)
    if level == "system":
        number = judged.labels("system")
        scores, human = ([np.mean(side[number == s]) for s in range(number.max() + 1)] for side in (scores, human))
        scores, human, labels = np.array(scores), np.array(human), np.zeros(len(scores), int)
    if name not in ("pearson", "spearman", "kendall_c"):
        if name == "acc_eq" and threshold is None:
            threshold = agreement(judged, name, level, grouping).thresholds(scores[None])[0]
        return coefficient_by_loops(name, scores, human, labels, threshold or 0.0)
    function = {
        "pearson": scipy.stats.pearsonr,
        "spearman": scipy.stats.spearmanr,
        "kendall_c": lambda x, y: scipy.stats.kendalltau(x, y, variant="c"),
    }[name]
    values = []
    for label in range(labels.max() + 1):
        x, y = scores[labels == label], human[labels == label]
        values.append(function(x, y).statistic if len(x) > 1 and len(set(x)) > 1 and len(set(y)) > 1 else np.nan)
    return np.nanmean(values)


@pytest.mark.parametrize(("name", "level", "grouping"), COMBINATIONS)
def test_values_equal_loops(name, level, grouping):
    judged, scores = example()
    values = agreement(judged, name, level, grouping).values(scores)
    expected = [value_by_loops(name, level, grouping, judged, row) for row in scores]
    np.testing.assert_allclose(values, expected, atol=1e-9)


@pytest.mark.parametrize(("name", "level", "grouping"), [one for one in COMBINATIONS if one[0] != "kendall_c"])
def test_swaps_equal_loops(name, level, grouping):
    judged, scores = example(missing=0.0 if name == "spa" else 0.15)
    one = agreement(judged, name, level, grouping)
    found = {(a, b): list(d) for a, b, d in one.swapped(scores, 6, np.random.default_rng(5))}
    assert list(found) == [(0, 1), (0, 2), (1, 2)]
    spread = scores.std(axis=1)
    standard = (scores - scores.mean(axis=1, keepdims=True)) / spread[:, None]
    human = judged.human
    if name == "spearman" and level == "segment":  # ranks within groups are swapped
        labels = judged.labels(grouping)
        for side in (*standard, human := human.copy()):
            for label in range(labels.max() + 1):
                side[labels == label] = scipy.stats.rankdata(side[labels == label])
    if name == "spa":
        chosen = np.random.default_rng(5).integers(2, size=(6, 6), dtype=np.uint8).astype(bool)
        flips = chosen[:, judged.labels("system")]
    else:
        flips = np.random.default_rng(5).integers(2, size=(6, len(human)), dtype=np.uint8).astype(bool)
    for (a, b), differences in found.items():
        for flip, difference in zip(flips, differences, strict=True):
            sides = np.where(flip, standard[b], standard[a]), np.where(flip, standard[a], standard[b])
            if name == "acc_eq":
                thresholds = one.thresholds(scores)[[a, b]] / spread[[a, b]] * (1 + 1e-9)
                values = [
                    calibrated_accuracy_by_loops(side, human, judged.labels(grouping), by, thresholds)
                    for side, by in zip(sides, (flip, ~flip), strict=True)
                ]
            else:
                coefficient = "pearson" if name == "spearman" and level == "segment" else name
                values = [value_by_loops(coefficient, level, grouping, judged, side, human) for side in sides]
            assert difference == pytest.approx(values[0] - values[1], abs=2e-6), (a, b)


def calibrated_accuracy_by_loops(scores, human, labels, other, thresholds):
    """Pairwise accuracy with the threshold of each score's metric, and their mean for scores of two metrics."""
    accuracies = {}
    for i, j in itertools.combinations(range(len(scores)), 2):
        if labels[i] == labels[j]:
            limit = (thresholds[int(other[i])] + thresholds[int(other[j])]) / 2
            u = np.sign(scores[i] - scores[j]) * (abs(scores[i] - scores[j]) > limit)
            accuracies.setdefault(labels[i], []).append(u == np.sign(human[i] - human[j]))
    return np.mean([np.mean(group) for group in accuracies.values()])


# Tau-c counts copies of a text as ties, so that its samples are lower.
@pytest.mark.parametrize(
    ("name", "level", "grouping"), [one for one in COMBINATIONS if one[::2] != ("kendall_c", "none")]
)
def test_samples_are_centred_on_the_value(name, level, grouping):
    judged, scores = example(systems=8, items=30, missing=0.05)
    one = agreement(judged, name, level, grouping)
    samples = one.resampled(scores, 100, np.random.default_rng(0))
    assert samples.shape == (3, 100)
    values = one.values(scores)
    assert (np.nanmin(samples, axis=1) <= values + 1e-9).all()
    assert (np.nanmax(samples, axis=1) >= values - 1e-9).all()
    # Samples vary more if there are few systems, whose texts are drawn as well.
    assert (np.abs(np.nanmean(samples, axis=1) - values) < (0.3 if level == "system" else 0.1)).all()


def test_samples_equal_loops():
    judged, scores = example()
    size = len(judged.human)
    for name in ("pearson", "spearman", "kendall", "acc_eq"):
        samples = agreement(judged, name).resampled(scores, 8, np.random.default_rng(1))
        drawn = np.random.default_rng(1).integers(size, size=(8, size))
        for draw, rows in enumerate(drawn):
            for metric, row in enumerate(scores):
                if name in ("pearson", "spearman"):
                    function = getattr(scipy.stats, f"{name}r")
                    expected = function(row[rows], judged.human[rows]).statistic
                else:
                    threshold = agreement(judged, name).thresholds(row[None])[0]
                    u, s = (np.subtract.outer(side[rows], side[rows]) for side in (row, judged.human))
                    u, s = np.sign(u) * (np.abs(u) > threshold), np.sign(s)
                    real = np.not_equal.outer(rows, rows)
                    if name == "acc_eq":
                        expected = (u == s)[real].mean()
                    else:
                        expected = (u * s).sum() / np.sqrt((u[real] != 0).sum() * (s[real] != 0).sum())
                assert samples[metric, draw] == pytest.approx(expected, abs=1e-6)


def test_the_block_size_does_not_change_the_result(monkeypatch):
    judged, scores = example()
    kinds = (("pearson", "segment"), ("kendall", "segment"), ("pearson", "system"))
    whole = {}
    for size in (2**23, 200):
        for module in ("segment_agreement", "agreement"):
            monkeypatch.setattr(f"metrics_jax.judging.{module}.BLOCK_SIZE", size)
        for kind in kinds:
            one = agreement(judged, *kind, "item")
            parts = {}
            for a, b, differences in one.swapped(scores, 40, np.random.default_rng(0)):
                parts.setdefault((a, b), []).append(differences)
            assert (len(parts[0, 1]) > 1) == (size == 200)
            whole.setdefault(kind, []).append({key: np.concatenate(value) for key, value in parts.items()})
    for first, second in whole.values():
        assert {key: len(value) for key, value in second.items()} == dict.fromkeys(first, 40)


@pytest.mark.parametrize(("zeros", "cells"), [(0, 1), (10**9, 1), (16, 2**20)], ids=["sparse", "dense", "together"])
def test_sparse_and_dense_sums_are_equal(monkeypatch, zeros, cells):
    judged, scores = example(missing=0.0)
    one = agreement(judged, "kendall", "segment", "system")
    expected = {(a, b): some for a, b, some in one.swapped(scores, 10, np.random.default_rng(1))}
    monkeypatch.setattr("metrics_jax.judging.segment_agreement._SPARSE", zeros)
    monkeypatch.setattr("metrics_jax.judging.pairs._MATRIX_SIZE", cells)
    progress = []
    for a, b, some in one.swapped(scores, 10, np.random.default_rng(1), progress.append):
        np.testing.assert_allclose(some, expected[a, b], atol=1e-12)
    assert sum(progress) == pytest.approx(30)


def test_bad_input():
    judged, scores = example()
    for arguments, words in (
        (("tau",), "there is no 'tau'; choose one of pearson, spearman"),
        (("kendall", "document"), "no 'document'; choose one of segment, system"),
        (("spa",), "use level system"),
        (("acc_eq", "system"), "use acc"),
        (("darr", "system"), "use kendall"),
        (("kendall", "segment", "topic"), "no grouping 'topic'"),
    ):
        with pytest.raises(ValueError, match=words):
            agreement(judged, *arguments)
    with pytest.raises(ValueError, match=r"float\[metrics, 3\]"):
        agreement(Judgements(np.arange(3.0)), "pearson").values(np.ones((1, 4)))
    scores[1, 7] = np.nan
    with pytest.raises(ValueError, match="the score of text 7 by metric 1 is nan"):
        agreement(judged, "pearson").values(scores)
    with pytest.raises(ValueError, match="three or more"):
        agreement(Judgements(np.arange(2.0), ["a", "b"]), "pearson", "system")


def test_groups_too_large_for_a_test_of_pairs(monkeypatch):
    monkeypatch.setattr("metrics_jax.judging.segment_agreement._LARGEST", 10)
    judged, scores = example()
    one = agreement(judged, "kendall")
    assert len(one.values(scores)) == 3
    with pytest.raises(ValueError, match="group them by item"):
        one.resampled(scores, 10, np.random.default_rng(0))
