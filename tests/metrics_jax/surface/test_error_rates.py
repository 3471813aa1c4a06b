import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics_jax import CDER, CER, PER, TER, WER
from metrics_jax.surface.error_rates import edit_distance, long_jump_distance, unmatched
from metrics_jax.surface.ter import edits_with_shifts
from tests.conftest import ROOT

words = st.lists(st.sampled_from("abcd"), max_size=9)
RATES = [WER(), PER(), CDER()]


def table(hypothesis, reference, jumps):
    """The distance by the full table, a row per reference word; `jumps` adds long jumps (Leusch et al., 2006)."""

    def jumped(row):
        return np.minimum(row, row.min() + 1) if jumps else row

    row = jumped(np.arange(len(hypothesis) + 1))
    for word in reference:
        above, row = row, row + 1
        for i, other in enumerate(hypothesis):
            row[i + 1] = min(row[i + 1], row[i] + 1, above[i] + (word != other))
        row = jumped(row)
    return row[-1]


@given(words, words)
@settings(max_examples=300, deadline=None)
def test_distances_equal_the_full_table(hypothesis, reference):
    assert edit_distance(hypothesis, reference) == table(hypothesis, reference, jumps=False)
    assert long_jump_distance(hypothesis, reference) == table(hypothesis, reference, jumps=True)


@pytest.mark.parametrize("metric", [WER(), CER()])
def test_rates_are_those_of_jiwer(metric):
    golden = json.loads((ROOT / "tests/fixtures/jiwer_golden.json").read_text(encoding="utf-8"))
    result = metric(golden["hypotheses"], golden["references"])
    assert result.score == pytest.approx(100 * golden[metric.name]["corpus"], rel=1e-12)
    np.testing.assert_allclose(result.segments, 100 * np.array(golden[metric.name]["segments"]), rtol=1e-12)


def test_distances_of_long_texts():
    generator = np.random.default_rng(0)
    for length in (63, 64, 65, 200):  # around and beyond a machine word
        hypothesis, reference = generator.integers(20, size=(2, length)).tolist()
        assert edit_distance(hypothesis, reference[:-7]) == table(hypothesis, reference[:-7], jumps=False)
        assert long_jump_distance(hypothesis[:-7], reference) == table(hypothesis[:-7], reference, jumps=True)


def test_by_hand():
    def rates(hypothesis, reference):
        return [metric([hypothesis], [reference]).parts["num_edits"] for metric in RATES]

    assert rates("a b c d", "a b c d") == [0, 0, 0]
    assert rates("c d a b", "a b c d") == [4, 0, 3]  # jumps to a, after b to c, and from d to the end
    assert rates("b a", "a b") == [2, 0, 2]  # jumps to a, to b and to the end would cost three
    assert rates("a b c x y z", "a b c") == [3, 3, 1]  # one jump skips any number of words
    assert rates("a b", "a b a b") == [2, 2, 1]  # and may cover words again
    assert rates("a a a", "a b c") == [2, 2, 2]
    assert rates("the house is big", "big is the small house") == [5, 1, 4]
    assert rates("", "a b c") == [3, 3, 3]
    assert rates("a b c", "") == [3, 3, 1]


@given(words, words)
@settings(max_examples=100, deadline=None)
def test_inequalities_between_distances(hypothesis, reference):
    wer = edit_distance(hypothesis, reference)
    per = unmatched(hypothesis, reference)
    assert per <= edits_with_shifts(hypothesis, reference) <= wer
    assert long_jump_distance(hypothesis, reference) <= wer
    assert (edit_distance(reference, hypothesis), unmatched(reference, hypothesis)) == (wer, per)


@pytest.mark.parametrize("metric", [*RATES, TER()], ids=lambda metric: metric.name)
def test_rates_divide_by_reference_words(metric):
    result = metric(["a b c", "x", "", "a b", "x y"], ["a b d", "x", "", "", ["x y z w", "x q"]])
    edits = 1 if metric.name == "cder" else 2  # for two words against an empty reference
    np.testing.assert_allclose(result.segments, [100 / 3, 0, 0, 100, 100 / 3])
    assert result.parts == {"num_edits": 2 + edits, "ref_length": 7}
    assert result.score == pytest.approx(100 * (2 + edits) / 7)
    assert metric(["a b c d"], ["x"]).score > 100  # an error rate has no upper bound
    assert metric(["a b"], [""]).score == 100
    assert not metric.higher_is_better


@pytest.mark.parametrize("metric", [WER, CER, PER, CDER])
def test_lowercase_option(metric):
    assert metric()(["The cat"], ["the Cat"]).score == pytest.approx(100 * 2 / 7 if metric is CER else 100)
    assert metric(lowercase=True)(["The cat"], ["the Cat"]).score == 0
    assert "lowercase:true" in metric(lowercase=True).signature
