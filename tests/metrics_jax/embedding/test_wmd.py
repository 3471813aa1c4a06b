import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics_jax import parse, significance
from metrics_jax.embedding import platforms
from metrics_jax.embedding.vectors import Vectors
from metrics_jax.embedding.wmd import WMD
from metrics_jax.surface.stop_words import smart
from tests.fixtures import golden, texts

WORDS = ("the", "cat", "dog", "sat", "ran", "mat", "house", "new", ",", "zero")
VECTORS = Vectors(WORDS, np.append(np.random.default_rng(0).normal(size=(9, 4)), np.zeros((1, 4)), axis=0))
METRIC = WMD(VECTORS)
text = texts.spaced(*WORDS, "unknown", "The")


def read_vectors(read: dict, name: str) -> Vectors:
    table = read["inputs"]["vectors"][name]
    return Vectors(tuple(table), np.array(list(table.values())))


def test_golden_values_of_gensim_and_pot(shared):
    read = golden.read(shared, "wmd_sms")
    checked = 0
    for case in read["cases"]:
        if case["input"] != "wmd_documents":
            continue
        vectors = read_vectors(read, case["options"]["vectors"])
        hypotheses, references = zip(*read["inputs"]["wmd_documents"]["pairs"], strict=True)
        if case["peer"].startswith("gensim"):  # in float32
            metric = WMD(vectors, norm=case["options"]["norm"])
            expected = np.array(case["expected"], np.float64)
            np.testing.assert_allclose(metric(hypotheses, references).segments, expected, rtol=1e-6, atol=1e-7)
        else:
            metric = WMD(vectors, norm=False)
            for k, row in enumerate(metric.statistics(hypotheses, references)):
                # For POT a word is 1e-8 from itself, up to 6e-8; without common words we agree to the last digits.
                common = set(hypotheses[k].split()) & set(references[k].split())
                found = metric.parts(row) | {"wmd": float(metric.score(row))}
                if case["expected"][k] is None:
                    assert found["wmd"] == np.inf
                else:
                    for name, value in case["expected"][k].items():
                        exact = not common or name == "wcd"
                        assert found[name] == pytest.approx(value, rel=1e-9, abs=1e-12 if exact else 7e-8), (k, name)
        checked += 1
    assert checked == 6


def test_the_distance_by_hand():
    vectors = Vectors(("a", "b", "c"), np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 2.0]]))
    result = WMD(vectors, norm=False)(["a a a b"], ["a c"])  # a quarter of `a` goes to c, and so does all of b
    assert result.score == pytest.approx(0.25 * 2 + 0.25 * np.hypot(3, 2))
    assert result.parts["rwmd_left"] == pytest.approx(0.25 * np.hypot(3, 2))
    assert result.parts["rwmd_right"] == pytest.approx(0.5 * 2)
    assert result.parts["wcd"] == pytest.approx(np.hypot(0.75, 0))
    unit = WMD(vectors)(["b"], ["c"]).score
    assert unit == pytest.approx(np.hypot(0.6, 0.2))


@pytest.mark.slow
@given(texts.segments(text))
@settings(max_examples=60, deadline=None)
def test_segments_are_independent_and_bounded(pairs):
    hypotheses, references = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    result, statistics = METRIC(hypotheses, references), METRIC.statistics(hypotheses, references)
    assert np.isfinite(statistics).all()
    alone = [METRIC([hypothesis], [group]) for hypothesis, group in pairs]
    np.testing.assert_array_equal(result.segments, [one.score for one in alone])
    assert result.score == pytest.approx(result.segments.mean())
    assert result.parts["infinite"] == np.isinf(result.segments).sum()
    for one in alone:
        if np.isfinite(one.score):
            assert 0 <= one.parts["wcd"] <= one.score + 1e-12  # wcd may exceed rwmd
            assert one.parts["rwmd"] == max(one.parts["rwmd_left"], one.parts["rwmd_right"]) <= one.score + 1e-12
            assert one.score <= 2 + 1e-12
    for hypothesis, group in pairs:
        each = METRIC.pairwise([hypothesis], group)[0]
        assert METRIC([hypothesis], [group]).score == each.min()
        np.testing.assert_allclose(METRIC.pairwise(group, [hypothesis])[:, 0], each, atol=1e-12)


@given(text)
@settings(max_examples=30, deadline=None)
def test_a_text_has_distance_0_to_itself(line):
    score = METRIC([line], [" ".join(reversed(line.split(" ")))]).score
    assert score in (0, np.inf)
    assert np.isinf(score) == (not METRIC.bags([line])[0].weights.size)


def test_texts_without_known_words():
    hypotheses, references = ["the cat", "", "unknown"], ["the mat", "the mat", ["", "unknown"]]
    result = METRIC(hypotheses, references)
    assert np.isinf(result.segments).tolist() == [False, True, True]
    assert np.isinf(result.score)
    assert result.parts["infinite"] == 2
    assert result.parts["wcd"] <= result.segments[0]  # averaged over segments with a finite distance
    finite = WMD(VECTORS, missing=2.0)(hypotheses, references)
    np.testing.assert_allclose(finite.segments, [result.segments[0], 2, 2])
    assert finite.score == pytest.approx(finite.segments.mean())
    assert METRIC(["unknown"], [["", "cat"]]).parts["infinite"] == 1
    assert METRIC(["cat"], [["", "dog"]]).score == METRIC(["cat"], ["dog"]).score


def test_which_words_count():
    assert WMD(VECTORS)(["The cat,"], ["the , cat"]).score == 0
    assert WMD(VECTORS, lowercase=False)(["The cat"], ["cat"]).score == 0  # The is unknown
    assert WMD(VECTORS, alphabetic=True)(["cat ,"], ["cat"]).score == 0
    assert WMD(VECTORS)(["cat ,"], ["cat"]).score > 0
    assert WMD(VECTORS, stop_words=("dog", "the"))(["the dog cat"], ["cat"]).score == 0
    assert {"the", "new"} < smart()
    assert WMD(VECTORS, stop_words="smart")(["the new cat"], ["cat"]).score == 0
    assert WMD(VECTORS, tokenize="none")(["cat,"], ["cat"]).parts["infinite"] == 1
    same = Vectors(("cat", "dog"), np.ones((2, 3)))
    assert WMD(same)(["cat"], ["dog"]).score == 0  # gensim returns infinity
    assert WMD(VECTORS)(["zero"], ["zero cat"]).score == pytest.approx(0.5)  # the zero vector keeps length 0


@given(st.lists(st.tuples(text, text), min_size=1, max_size=4))
@settings(max_examples=15, deadline=None)
def test_the_gap_bounds_the_error_of_sinkhorn(pairs):
    hypotheses, references = zip(*pairs, strict=True)
    approximate = WMD(VECTORS, transport="sinkhorn")
    for exact, row in zip(
        METRIC(hypotheses, references).segments, approximate.statistics(hypotheses, references), strict=True
    ):
        found = float(approximate.score(row))
        assert found == exact or abs(found - exact) <= approximate.parts(row)["gap"] < 0.1


@pytest.mark.parametrize("norm", [True, False])
def test_distances_of_one_program_equal_those_of_costs_on_the_host(norm, monkeypatch):
    metric = WMD(VECTORS, transport="sinkhorn", norm=norm)
    hypotheses = ["the cat sat", "zero", "unknown", "a new house , dog ran", "", "cat cat dog", *["the mat sat"] * 300]
    references = [["the mat", "dog"], "zero cat", "the", "new mat", ["", "cat"], "cat dog dog", *["the cat ,"] * 300]
    expected = metric.statistics(hypotheses, references)
    monkeypatch.setattr(platforms, "ONE_PROGRAM", {"cpu": True})
    np.testing.assert_allclose(metric.statistics(hypotheses, references), expected, atol=5e-6)
    assert metric.pairwise(["the cat"], []).shape == (1, 0)


@pytest.mark.parametrize(
    "metric",
    [
        METRIC,
        WMD(VECTORS, norm=False, missing=2.5, transport="sinkhorn", stop_words=("a", "the")),
        WMD(VECTORS, stop_words="smart"),
    ],
)
def test_a_signature_restores_the_metric(metric):
    assert f"vectors:{VECTORS.fingerprint[:16]}" in metric.signature
    assert parse(metric.signature, vectors=VECTORS) == metric
    other = Vectors(("the",), np.ones((1, 1)))
    with pytest.raises(ValueError, match="was computed with vectors"):
        parse(metric.signature, vectors=other)
    with pytest.raises(ValueError, match="wmd needs vectors"):
        parse("wmd")


def test_comparison_of_systems():
    references = ["the cat sat , the dog ran", "the dog ran", "a new house", "the mat"] * 10
    better = [line.replace("dog", "cat") for line in references]
    worse = ["the zero ," for _ in references]
    statistics = {name: METRIC.statistics(lines, references) for name, lines in (("better", better), ("worse", worse))}
    row = significance.paired_bootstrap(METRIC, statistics, resamples=50)[1]
    assert row.difference > 0
    assert row.wins == 0  # a larger distance is no win


def test_pairwise_equals_single_scores():
    hypotheses, references = ["the cat sat", "", "mat the"], ["the mat", "", "cat the sat", "dog"]
    expected = [[METRIC([h], [r]).score for r in references] for h in hypotheses]
    np.testing.assert_allclose(METRIC.pairwise(hypotheses, references), expected, atol=1e-12)
    with pytest.raises(TypeError, match="not a single string"):
        METRIC.pairwise("the cat", references)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"transport": "emd"}, "transport='emd' is none of exact, sinkhorn"),
        ({"tokenize": "13b"}, "tokenize='13b': choose one of"),
        ({"missing": -1.0}, "missing=-1.0: must be at least 0"),
        ({"missing": float("nan")}, "missing=nan"),
        ({"stop_words": "the"}, "a tuple of words"),
    ],
)
def test_invalid_options_raise_errors(options, line):
    with pytest.raises(ValueError, match=line):
        WMD(vectors=VECTORS, **options)


def test_import_loads_no_large_libraries():
    code = "import sys, metrics_jax.embedding.wmd, metrics_jax.embedding.sms; "
    code += "print(sorted({'jax', 'ot', 'torch'} & sys.modules.keys()))"
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert finished.stdout == "[]\n"
