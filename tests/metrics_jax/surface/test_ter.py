import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics_jax import TER
from metrics_jax.surface.error_rates import edit_distance, unmatched
from metrics_jax.surface.ter import edits_with_shifts
from metrics_jax.surface.tokenizers import tercom_words
from tests.fixtures import golden

OPTIONS = ("normalized", "no_punct", "asian_support", "case_sensitive")
few_words = st.lists(st.sampled_from("abcdef"), max_size=14)
text = st.lists(
    st.sampled_from(
        ["the", "Cat", "cats'", "it's", "'s ", ",", ".", ",.5", "3-4", "&quot;", "\n-", " ", "漢字", "かな", "。", "「"]
    ),
    max_size=12,
).map("".join)


def disturbed(seed):
    """A pair of texts with moved blocks, changed words, and often a long stretch that only one of them has."""
    draw = random.Random(seed)
    vocabulary, length = draw.choice([3, 8, 40, 200]), draw.randint(10, 150)
    reference = draw.choices(range(vocabulary), k=length)
    hypothesis = list(reference)
    for _ in range(draw.randint(1, 5)):
        start, end = sorted(draw.choices(range(len(hypothesis) + 1), k=2))
        block, hypothesis[start:end] = hypothesis[start:end], []
        position = draw.randint(0, len(hypothesis))
        hypothesis[position:position] = block
    for _ in range(draw.randint(0, 6)):
        position = draw.randint(0, len(hypothesis))
        hypothesis[position : position + draw.randint(0, 1)] = draw.choices(range(vocabulary), k=draw.randint(0, 1))
    position = draw.randint(0, len(hypothesis))
    hypothesis[position : position + draw.choice([0, 40])] = draw.choices(range(vocabulary), k=draw.choice([0, 40]))
    return (hypothesis, reference) if draw.random() < 0.5 else (reference, hypothesis)


def shuffled(seed):
    """A text with few distinct words, in two orders."""
    draw = random.Random(seed)
    reference = draw.choices(range(draw.randint(2, 6)), k=draw.randint(12, 40))
    return draw.sample(reference, len(reference)), reference


# Pairs whose result changes if a limit of sacreBLEU changes by one, with the number of edits by sacreBLEU 2.6.0.
LIMITS = {
    (shuffled, "1000 candidates, not 1001"): {653: 19, 2410: 7, 4066: 9},
    (shuffled, "1000 candidates, not 999"): {289: 14, 1586: 15, 2489: 13},
    (shuffled, "a target within the block or at its end"): {52: 5, 219: 7, 488: 4},
    (disturbed, "10 words a block, not 9"): {41: 27, 50: 11, 58: 25},
    (disturbed, "10 words a block, not 11"): {20: 47, 39: 2, 41: 27},
    (disturbed, "starts 50 apart, not 49"): {65: 59, 311: 22},
    (disturbed, "starts 50 apart, not 51"): {28: 43},
    (disturbed, "25 columns, not 24"): {97: 55, 100: 48},
    (disturbed, "25 columns, not 26"): {96: 49, 103: 51},
    (disturbed, "the beam's left end"): {1: 40, 152: 61, 232: 38},
    (disturbed, "the beam's right end"): {210: 46, 387: 48},
    (disturbed, "no diagonal step from outside the beam"): {151: 49, 650: 48},
    (disturbed, "a shift saves what the beam missed"): {208: 59, 600: 56},
    (disturbed, "far from the diagonal with few edits"): {0: 127, 68: 121, 625: 31},
}


def test_golden_values_of_sacrebleu(shared):
    statistics_of, checked = {}, 0  # statistics are shared by corpus and sentence cases
    for case, hypotheses, references in golden.cases(shared, "ter"):
        metric, expected = TER(**case["options"]), case["expected"]
        if (metric, case["input"]) not in statistics_of:
            statistics_of[metric, case["input"]] = metric.statistics(hypotheses, references)
        statistics = statistics_of[metric, case["input"]]
        if case["level"] == "corpus":
            statistics, expected = statistics.sum(axis=0, keepdims=True), [expected]
        rows = np.column_stack([metric.score(statistics), statistics])
        expected_rows = [[row["score"], row["num_edits"], row["ref_length"]] for row in expected]
        np.testing.assert_allclose(rows, expected_rows, rtol=1e-9, atol=1e-12, err_msg=case["id"])
        checked += 1
    assert checked == 190


def test_by_hand():
    def edits(hypothesis, reference):
        return edits_with_shifts(hypothesis.split(), reference.split())

    assert edits("a b c", "a b c") == 0
    assert edits("b c a", "a b c") == 1  # one shift; 2 edits without it
    assert edits("d e f a b c", "a b c d e f") == 1
    assert edits("a x c", "a b c d") == 2  # a substitution and an insertion
    assert edits("b a x", "a b y") == 2  # a shift and a substitution
    assert edits("", "a b") == 2
    assert edits("a b", "") == 2
    # A shift, two substitutions and an insertion, as in the example of Snover et al. (2006).
    hypothesis = "today the danes sold fish caught near the old harbour"
    assert edits(hypothesis, "danish crews sold today fish caught near the little old harbour") == 4


def test_empty_texts_and_several_references():
    result = TER()(["", "a b", "", "a"], ["a b", "", "", ["", "b c d"]])
    np.testing.assert_allclose(result.segments, [100, 100, 0, 100 * 1 / 1.5])  # |r| of the last: (0 + 3) / 2
    assert result.parts == {"num_edits": 5.0, "ref_length": 3.5}
    assert TER()(["a b c"], [["x y z w", "a b"]]).score == pytest.approx(100 * 1 / 3)  # fewest edits, mean length


def test_options_of_the_tokenizer():
    line = "It's &quot;1,000.5&quot; (A-B 3-4), she said.\n-so 「漢字」かな。"
    words = tercom_words
    assert words(line, case_sensitive=True) == line.split()
    assert words(line) == line.lower().split()
    assert " ".join(words("It's &lt;b&gt; 1,000.5 3-4.", normalized=True)) == "it 's < b > 1,000.5 3 - 4 ."
    assert " ".join(words("end.\n-start one\ntwo", normalized=True)) == "end . start one two"
    assert words("(it's), 1,000! a-b", no_punct=True) == ["it's", "1000", "a-b"]
    assert words("「漢字」かな。", asian_support=True) == ["「漢字」かな。"]
    assert words("「漢字」かな。", normalized=True, asian_support=True) == ["「", "漢", "字", "」", "かな", "。"]
    assert words("「漢字」かな。", no_punct=True, asian_support=True) == ["漢字かな"]
    assert words("a \u3000\u2028\x85 b") == ["a", "b"]


def test_normalized_references_are_tokenized_twice():
    assert tercom_words(",.5", normalized=True) == [",", ".5"]
    assert TER(normalized=True)([",.5"], [",.5"]).parts == {"num_edits": 2.0, "ref_length": 3.0}  # , . 5
    assert TER()([",.5"], [",.5"]).score == 0


@given(few_words, few_words)
@settings(max_examples=100, deadline=None)
def test_edits_equal_sacrebleu(hypothesis, reference):
    peer = pytest.importorskip("sacrebleu").TER().sentence_score(" ".join(hypothesis), [" ".join(reference)])
    assert edits_with_shifts(hypothesis, reference) == peer.num_edits


@pytest.mark.parametrize(("texts", "limit"), LIMITS)
def test_limits_of_sacrebleu(texts, limit):
    expected = LIMITS[texts, limit]
    assert {seed: edits_with_shifts(*texts(seed)) for seed in expected} == expected


def test_the_beam_is_wider_for_a_much_longer_reference():  # expected values by sacreBLEU 2.6.0
    assert edits_with_shifts([5, 46, 136], range(153)) == 151
    assert edits_with_shifts([60, 80], range(153)) == 152
    assert edits_with_shifts([63, 152], range(153)) == 152
    assert edits_with_shifts([100, 3, 5, 309], range(311)) == 310


@given(st.lists(st.booleans(), min_size=4, max_size=4), text, st.lists(text, min_size=1, max_size=3))
@settings(max_examples=100, deadline=None)
def test_options_of_sacrebleu(values, hypothesis, references):
    options = dict(zip(OPTIONS, values, strict=True))
    peer = pytest.importorskip("sacrebleu").TER(**options).sentence_score(hypothesis, references)
    result = TER(**options)([hypothesis], [references])
    assert (result.score, *result.parts.values()) == (peer.score, peer.num_edits, peer.ref_length)


@given(few_words, few_words)
@settings(max_examples=100, deadline=None)
def test_bounds_of_ter(hypothesis, reference):
    edits = edits_with_shifts(hypothesis, reference)
    assert unmatched(hypothesis, reference) <= edits <= edit_distance(hypothesis, reference)
