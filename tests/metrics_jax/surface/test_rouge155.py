"""ROUGE against the script ROUGE-1.5.5.pl and worked examples.

The script's values were printed by it with the number format changed to full precision.
"""

import functools
import random
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics_jax import parse
from metrics_jax.surface.ngrams import encode_words
from metrics_jax.surface.rouge155 import VARIANTS, Rouge155, skip_bigrams
from tests.fixtures import golden, rouge_cases, texts
from tests.fixtures.rouge_cases import row

metrics = st.builds(
    Rouge155,
    variant=st.sampled_from(VARIANTS),
    skip_distance=st.integers(-1, 5),
    w=st.sampled_from([1, 1.2, 2.0]),
    alpha=st.sampled_from([0, 0.5, 1.0]),
    formula=st.sampled_from("AB"),
    remove_stopwords=st.booleans(),
)


@pytest.fixture
def wordnet(princeton, monkeypatch):
    monkeypatch.setenv("WNSEARCHDIR", str(princeton))


def resample(size):
    """The script's first bootstrap sample, by drand48 (Perl's generator) with seed 0; names are sorted as strings."""
    state, draws = 0x330E, []
    for _ in range(size):
        state = (0x5DEECE66D * state + 0xB) % 2**48
        draws.append(int(state / 2**48 * size))
    return np.array(sorted(range(size), key=lambda number: f"{number + 1}."))[draws]


@pytest.mark.parametrize(("level", "num_cases"), [("sentence", 87), ("corpus", 72)])
def test_golden_values(shared, wordnet, level, num_cases):
    """Corpus values are means over one bootstrap sample, which the script prints as averages."""
    compared = 0
    for case, hypotheses, references in golden.cases(shared, "rouge155"):
        if case["level"] != level:
            continue
        options = {key: value for key, value in case["options"].items() if key not in ("n", "only_su")}
        hypotheses, references = [hypotheses[i] for i in case["indices"]], [references[i] for i in case["indices"]]
        expected = case["expected"] if level == "sentence" else [case["expected"]]
        for kind in expected[0]:
            variant = re.match(r"ROUGE-(\d|L|W|SU?)", kind)[1]  # such as ROUGE-2, ROUGE-W-1.2, ROUGE-S*, ROUGE-SU4
            metric = Rouge155(variant, **options)
            statistics = metric.statistics(hypotheses, references)
            if level == "corpus":
                statistics = statistics[resample(len(hypotheses))].sum(axis=0, keepdims=True)
            values = np.array([[row[kind][key] for key in "prf"] for row in expected])
            np.testing.assert_allclose(
                statistics[:, :3] / statistics[:, 3:], values, rtol=0, atol=1e-9, err_msg=f"{case['id']} {kind}"
            )
            np.testing.assert_allclose(metric.score(statistics), values[:, 2], rtol=0, atol=1e-9)
        compared += 1
    assert compared == num_cases


# Precision and recall by the script.
HYPOTHESES = [
    "the children ran quickly\nthey were running away from an element of danger",
    "a police officer found the best agreement",
]
REFERENCES = [
    ["a child runs quick\nhe ran away from elements of danger", "children run\nthey escaped the danger"],
    ["the policeman finds better agreements", "police officers agree well"],
]
SUMMED = {
    "1": [(0.5, 0.7647058823529411), (0.42857142857142855, 0.6666666666666666)],
    "2": [(0.125, 0.2), (0.16666666666666666, 0.2857142857142857)],
    "L": [(0.5, 0.7647058823529411), (0.35714285714285715, 0.5555555555555556)],
    "W": [(0.44594931531558, 0.494104373993669), (0.3366642563607172, 0.38639014744274425)],
    "S": [(0.17, 0.3090909090909091), (0.15, 0.375)],
    "SU": [(0.22580645161290322, 0.4), (0.21153846153846154, 0.4782608695652174)],
}
BEST = {
    "1": [(0.8333333333333334, 0.8333333333333334), (0.5, 0.6666666666666666)],
    "2": [(0.2, 0.2), (0.3333333333333333, 0.5)],
    "L": [(0.8333333333333334, 0.8333333333333334), (0.5, 0.6666666666666666)],
    "W": [(0.7453985243467184, 0.5983623755678561), (0.5, 0.5351610411734872)],
    "S": [(0.6, 0.6), (0.16666666666666666, 0.3333333333333333)],
    "SU": [(0.65, 0.65), (0.3333333333333333, 0.6)],
}


@pytest.mark.parametrize("variant", SUMMED)
def test_stems_and_stop_words(wordnet, variant):
    summed = Rouge155(variant, stem=True)
    np.testing.assert_allclose(summed.statistics(HYPOTHESES, REFERENCES)[:, :2], SUMMED[variant])
    best = Rouge155(variant, stem=True, remove_stopwords=True, formula="B")
    np.testing.assert_allclose(best.statistics(HYPOTHESES, REFERENCES)[:, :2], BEST[variant])


@pytest.mark.parametrize(("variant", "hypothesis", "reference", "precision", "recall", "f1"), rouge_cases.BY_HAND)
def test_by_hand(variant, hypothesis, reference, precision, recall, f1):
    np.testing.assert_allclose(row(Rouge155(variant), hypothesis, reference), [precision, recall, f1])


@pytest.mark.parametrize(
    ("hypothesis", "skip_bigrams"),
    [("police kill the gunman", 3 / 6), ("the gunman kill police", 1 / 6), ("the gunman police killed", 2 / 6)],
)
def test_skip_bigrams_of_the_paper(hypothesis, skip_bigrams):
    # Lin (2004), section 4.
    metric = Rouge155("S", skip_distance=-1)
    np.testing.assert_allclose(row(metric, hypothesis, rouge_cases.LIN), skip_bigrams)


def test_runs():
    # Lin (2004), 3.3, f(k) = k^2: the precisions are the paper's 0.571 and 0.286; recall is weighted twice.
    metric, hypothesis = Rouge155("W", w=2.0), "A B C D E F G"
    np.testing.assert_allclose(row(metric, hypothesis, "A B C D H I K")[:2], [4 / 7, 4 / 7**2])
    np.testing.assert_allclose(row(metric, hypothesis, "A H B K C I D")[:2], [2 / 7, 2 / 7**2])
    np.testing.assert_allclose(row(Rouge155("W"), "a b c", "a b c")[:2], [1, 3**-0.2])


def test_runs_by_the_formulas_of_the_paper():
    metric, hypothesis = Rouge155("W", w=2.0, weighting="paper"), "A B C D E F G"
    np.testing.assert_allclose(row(metric, hypothesis, "A B C D H I K"), 4 / 7)
    np.testing.assert_allclose(row(metric, hypothesis, "A H B K C I D"), 2 / 7)
    lines = "the boat is old\nthe boat is gone"
    np.testing.assert_allclose(row(Rouge155("W", weighting="paper"), lines, lines, lines), 1)
    assert row(Rouge155("W"), lines, lines)[2] < 1
    np.testing.assert_allclose(row(metric, "a b\nc", "a b c d"), [1, 3 / 4, 6 / 7])  # lines have no effect
    np.testing.assert_array_equal(row(metric, "", "a"), 0)


def restated_wlcs(x, y, f):
    """The table of Lin (2004, 3.3), by recursion."""

    @functools.cache
    def run(i, j):
        return run(i - 1, j - 1) + 1 if i and j and x[i - 1] == y[j - 1] else 0

    @functools.cache
    def score(i, j):
        if not i or not j:
            return 0.0
        if x[i - 1] == y[j - 1]:
            return score(i - 1, j - 1) + f(run(i - 1, j - 1) + 1) - f(run(i - 1, j - 1))
        return max(score(i - 1, j), score(i, j - 1))

    return score(len(x), len(y))


@pytest.mark.parametrize("w", [1.0, 1.2, 2.0])
def test_weighted_lcs_equals_the_recursion(w):
    draw = random.Random(5)
    for _ in range(60):
        hypothesis, reference = (draw.choices("abc", k=draw.randrange(1, 9)) for _ in range(2))
        precision, recall, f1 = row(Rouge155("W", w=w, weighting="paper"), " ".join(hypothesis), " ".join(reference))
        size = restated_wlcs(reference, hypothesis, lambda k: k**w)
        assert recall == pytest.approx((size / len(reference) ** w) ** (1 / w))
        assert precision == pytest.approx((size / len(hypothesis) ** w) ** (1 / w))
        assert f1 == pytest.approx(2 * precision * recall / (precision + recall) if size else 0)


def test_runs_lost_at_the_end_of_a_sentence():
    # By the script; see `lcs.weighted_union_matches`.
    np.testing.assert_allclose(row(Rouge155("W"), "c a", "a c\nc a"), [0.5, 0.21763764082403106, 0.30326954502292763])


def test_skip_bigrams():
    tokens = encode_words([["a", "b", "c", "d"], ["e"], [], ["b", "a"]])  # a to e are 0 to 4; 5 marks unigrams
    adjacent = skip_bigrams(tokens, 0, with_unigrams=False)
    assert adjacent.ids.tolist() == [0 * 6 + 1, 1 * 6 + 2, 2 * 6 + 3, 1 * 6 + 0]
    assert adjacent.lengths.tolist() == [3, 0, 0, 1]
    assert skip_bigrams(tokens, 1, with_unigrams=False).lengths.tolist() == [5, 0, 0, 1]
    for distance in (2, 10**30, -1):
        assert skip_bigrams(tokens, distance, with_unigrams=False).lengths.tolist() == [6, 0, 0, 1]
    units = skip_bigrams(tokens, 0, with_unigrams=True)
    assert units.ids.tolist() == [0 * 6 + 5, 0 * 6 + 1, 1 * 6 + 5, 1 * 6 + 2, 2 * 6 + 5, 2 * 6 + 3, 1 * 6 + 5, 1 * 6]
    assert units.lengths.tolist() == [6, 0, 0, 2]


def test_blocks_of_skip_bigrams_give_the_same_counts(monkeypatch):
    hypotheses, references = ["a b c d", "b c", "x " * 40, ""], ["b c d a", "c b", "x " * 30, "a b"]
    metric = Rouge155("S", skip_distance=-1)
    whole = metric.statistics(hypotheses, references)
    monkeypatch.setattr("metrics_jax.surface.rouge155._BLOCK", 20)
    np.testing.assert_array_equal(metric.statistics(hypotheses, references), whole)
    np.testing.assert_allclose(whole[:, :2], [[1 / 2, 1 / 2], [0, 0], [30 * 29 / (40 * 39), 1], [0, 0]])


def test_alpha():
    hypothesis, reference = "a b c d", "a b"
    assert Rouge155("1", alpha=1.0)([hypothesis], [reference]).score == 1 / 2  # precision
    assert Rouge155("1", alpha=0.0)([hypothesis], [reference]).score == 1  # recall
    assert Rouge155("1", alpha=0.8)([hypothesis], [reference]).score == pytest.approx(0.5 / (0.2 * 0.5 + 0.8))


def test_several_references():
    np.testing.assert_allclose(row(Rouge155("1"), "a b", "a b c d", "x"), [2 / 4, 2 / 5, 4 / 9])
    np.testing.assert_allclose(row(Rouge155("1", formula="B"), "a b", "x", "a b c d", "b a x x"), [1, 2 / 4, 2 / 3])
    np.testing.assert_allclose(row(Rouge155("1", formula="B"), "a b", "a b", "a"), 1)  # the first of equals
    np.testing.assert_allclose(row(Rouge155("1", formula="B"), "a b", "a", "a b"), [1 / 2, 1, 2 / 3])


def test_words():
    assert Rouge155("1")(["Co-op's ÄB 3.5"], ["co op s b 3 5"]).score == 1
    assert Rouge155("1")(["\u212a"], ["k"]).score == 0  # only ASCII is lower-cased
    assert Rouge155("1", remove_stopwords=True)(["The cat is here"], ["cat"]).score == 1
    assert Rouge155("L")(["a b c d\r\n\n e"], ["e\na b c d"]).score == 1


def test_result():
    metric = Rouge155("1")
    result = metric(["a b", "c"], ["a", ["d", "e"]])
    assert result.parts == pytest.approx({"precision": 1 / 4, "recall": 1 / 2, "f1": 1 / 3})
    np.testing.assert_allclose(result.segments, [2 / 3, 0])
    assert result.score == pytest.approx(1 / 3)
    assert parse(result.signature) == metric
    assert parse("rouge155|variant:SU|skip_distance:-1") == Rouge155("SU", skip_distance=-1)


@given(metrics, texts.segments(texts.lines))
def test_segments_are_independent(metric, pairs):
    hypotheses, references = zip(*pairs, strict=True)
    result = metric(hypotheses, references)
    alone = [metric([hypothesis], [group]).score for hypothesis, group in pairs]
    np.testing.assert_array_equal(result.segments, alone)
    assert result.score == pytest.approx(np.mean(alone))
    assert ((result.segments >= 0) & (result.segments <= 1)).all()


@given(metrics, texts.lines, st.lists(texts.lines, min_size=1, max_size=3), st.randoms())
def test_order_of_references(metric, hypothesis, references, random):
    shuffled = random.sample(references, len(references))
    if metric.formula == "A":
        np.testing.assert_allclose(row(metric, hypothesis, *shuffled), row(metric, hypothesis, *references))
    elif metric.variant != "W":  # its references are ranked without the second weighting
        best = max(row(metric, hypothesis, reference)[1] for reference in references)
        assert row(metric, hypothesis, *shuffled)[1] == row(metric, hypothesis, *references)[1] == best


@given(metrics, texts.lines)
def test_identical_texts(metric, text):
    precision, recall, f = row(metric, text, text)
    if metric.variant != "W":
        assert precision == recall == f
        assert f in (0, 1)


@pytest.mark.parametrize("variant", VARIANTS)
def test_unusual_texts(variant):
    pairs = [(first, [second]) for first in texts.ODD for second in texts.ODD] + [
        (first, texts.ODD) for first in texts.ODD
    ]
    hypotheses, references = zip(*pairs, strict=True)
    for metric in (Rouge155(variant), Rouge155(variant, formula="B", remove_stopwords=True)):
        segments = metric(hypotheses, references).segments
        assert np.isfinite(segments).all()
        assert (segments[[not hypothesis.strip() for hypothesis in hypotheses]] == 0).all()


def test_statistics_are_additive():
    metric, hypotheses, references = Rouge155("SU"), ["a b c", "a b", "x y"], ["a b d", "b a", "x y z"]
    statistics = metric.statistics(hypotheses, references)
    draws = np.random.default_rng(0).integers(3, size=(50, 3))
    resampled = metric.score(statistics[draws].sum(axis=1))
    np.testing.assert_allclose(resampled, metric.score(statistics)[draws].mean(axis=1))


@pytest.mark.parametrize(
    "options",
    [
        {"variant": "Lsum"},
        {"variant": "10"},
        {"formula": "C"},
        {"alpha": 1.1},
        {"alpha": float("nan")},
        {"w": 0.0},
        {"weighting": "x"},
    ],
)
def test_invalid_options(options):
    with pytest.raises(ValueError, match=f"^{next(iter(options))}="):
        Rouge155(**options)
