import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics_jax import TER, tercom
from metrics_jax.ter import edits_with_shifts
from tests.metrics_jax import golden

OPTIONS = ("normalized", "no_punct", "asian_support", "case_sensitive")
few_words = st.lists(st.sampled_from("abcdef"), max_size=14)
text = st.lists(
    st.sampled_from(
        ["the", "Cat", "cats'", "it's", "'s ", ",", ".", ",.5", "3-4", "&quot;", "\n-", " ", "漢字", "かな", "。", "「"]
    ),
    max_size=12,
).map("".join)


def moved(generator, words, edits):
    """The words after some moves of blocks, and with some words inserted, deleted and replaced."""
    words = list(words)
    for _ in range(edits):
        start, length = generator.randrange(len(words)), generator.randint(1, 12)
        block, words[start : start + length] = words[start : start + length], []
        place = generator.randint(0, len(words))
        words[place:place] = block
    for _ in range(edits):
        place = generator.randint(0, len(words))
        words[place : place + generator.randint(0, 1)] = generator.choice([[], [generator.choice(words or ["x"])]])
    return words


def test_golden_values_of_sacrebleu(shared):
    counted, checked = {}, 0  # statistics; corpus and sentence cases share them
    for case, hypotheses, references in golden.cases(shared, "ter"):
        metric, expected = TER(**case["options"]), case["expected"]
        if (metric, case["input"]) not in counted:
            counted[metric, case["input"]] = metric.statistics(hypotheses, references)
        statistics = counted[metric, case["input"]]
        if case["level"] == "corpus":
            statistics, expected = statistics.sum(axis=0, keepdims=True), [expected]
        rows = np.column_stack([metric.score(statistics), statistics])
        wanted = [[row["score"], row["num_edits"], row["ref_length"]] for row in expected]
        np.testing.assert_allclose(rows, wanted, rtol=1e-9, atol=1e-12, err_msg=case["id"])
        checked += 1
    assert checked == 190


def test_cases_by_hand():
    def edits(hypothesis, reference):
        return edits_with_shifts(hypothesis.split(), reference.split())

    assert edits("a b c", "a b c") == 0
    assert edits("b c a", "a b c") == 1  # one shift; 2 edits without it
    assert edits("d e f a b c", "a b c d e f") == 1
    assert edits("a x c", "a b c d") == 2  # a substitution and an insertion
    assert edits("b a x", "a b y") == 2  # a shift and a substitution
    assert edits("", "a b") == 2
    assert edits("a b", "") == 2
    # Snover et al. (2006), figure 1: two shifts count one each, however far, and so does every other edit.
    snover = "THIS WEEK THE SAUDIS denied information published in the new york times"
    assert edits(snover, "SAUDI ARABIA denied THIS WEEK information published in the AMERICAN new york times") == 4


def test_empty_texts_and_several_references():
    result = TER()(["", "a b", "", "a"], ["a b", "", "", ["", "b c d"]])
    np.testing.assert_allclose(result.segments, [100, 100, 0, 100 * 1 / 1.5])  # |r| of the last: (0 + 3) / 2
    assert result.parts == {"num_edits": 5.0, "ref_length": 3.5}
    assert TER()(["a b c"], [["x y z w", "a b"]]).score == pytest.approx(100 * 1 / 3)  # fewest edits, mean length


def test_the_tokenizer_option_by_option():
    line = "It's &quot;1,000.5&quot; (A-B 3-4), she said.\n-so 「漢字」かな。"
    words = tercom.tokenize
    assert words(line, case_sensitive=True) == line.split()
    assert words(line) == line.lower().split()
    assert words("It's &lt;b&gt; 1,000.5 3-4.", normalized=True) == "it 's < b > 1,000.5 3 - 4 .".split()
    assert words("end.\n-start one\ntwo", normalized=True) == "end . start one two".split()
    assert words("(it's), 1,000! a-b", no_punct=True) == ["it's", "1000", "a-b"]
    assert words("「漢字」かな。", asian_support=True) == ["「漢字」かな。"]
    assert words("「漢字」かな。", normalized=True, asian_support=True) == ["「", "漢", "字", "」", "かな", "。"]
    assert words("「漢字」かな。", no_punct=True, asian_support=True) == ["漢字かな"]
    assert words("a \u3000\u2028\x85 b") == ["a", "b"]


def test_a_normalized_reference_is_tokenized_twice_as_in_sacrebleu():
    assert tercom.tokenize(",.5", normalized=True) == [",", ".5"]
    assert TER(normalized=True)([",.5"], [",.5"]).parts == {"num_edits": 2.0, "ref_length": 3.0}  # , . 5
    assert TER()([",.5"], [",.5"]).score == 0


@given(few_words, few_words)
@settings(max_examples=100, deadline=None)
def test_the_edits_of_sacrebleu(hypothesis, reference):
    peer = pytest.importorskip("sacrebleu").TER().sentence_score(" ".join(hypothesis), [" ".join(reference)])
    assert edits_with_shifts(hypothesis, reference) == peer.num_edits


@pytest.mark.parametrize("seed", range(20))
def test_the_edits_of_sacrebleu_on_long_texts(seed):
    sacrebleu = pytest.importorskip("sacrebleu")
    generator = random.Random(seed)
    reference = generator.choices([str(i) for i in range(generator.choice([20, 60, 300]))], k=generator.randint(30, 70))
    hypothesis = moved(generator, reference, generator.randint(1, 6))
    if seed % 2:  # far from the diagonal: the beam is felt
        place = generator.randint(0, len(hypothesis))
        hypothesis[place:place] = generator.choices(reference, k=generator.randint(20, 40))
    if seed % 4 > 1:
        hypothesis, reference = reference, hypothesis
    peer = sacrebleu.TER().sentence_score(" ".join(hypothesis), [" ".join(reference)])
    assert edits_with_shifts(hypothesis, reference) == peer.num_edits


def test_the_beam_is_wider_for_a_much_longer_reference():
    sacrebleu = pytest.importorskip("sacrebleu")
    reference = [str(i) for i in range(230)]
    for hypothesis in (["229", "0", "x"], ["100", "3", "5", "228"], ["50"]):
        peer = sacrebleu.TER().sentence_score(" ".join(hypothesis), [" ".join(reference)])
        assert edits_with_shifts(hypothesis, reference) == peer.num_edits


@given(st.lists(st.booleans(), min_size=4, max_size=4), text, st.lists(text, min_size=1, max_size=3))
@settings(max_examples=100, deadline=None)
def test_the_options_of_sacrebleu(values, hypothesis, references):
    options = dict(zip(OPTIONS, values, strict=True))
    peer = pytest.importorskip("sacrebleu").TER(**options).sentence_score(hypothesis, references)
    result = TER(**options)([hypothesis], [references])
    assert (result.score, *result.parts.values()) == (peer.score, peer.num_edits, peer.ref_length)


@given(few_words, few_words)
@settings(max_examples=100, deadline=None)
def test_shifts_never_cost(hypothesis, reference):
    from metrics_jax.edits import edit_distance, unmatched

    edits = edits_with_shifts(hypothesis, reference)
    assert unmatched(hypothesis, reference) <= edits <= edit_distance(hypothesis, reference)
