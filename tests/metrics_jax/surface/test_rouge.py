"""ROUGE against the rouge-score package and worked examples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics_jax import parse
from metrics_jax.surface.rouge import VARIANTS, Rouge
from tests.fixtures import golden, rouge_cases, texts
from tests.fixtures.rouge_cases import row

metrics = st.builds(
    Rouge, st.sampled_from(VARIANTS), st.booleans(), st.sampled_from(["rouge_score", "unicode", "none"])
)


@pytest.mark.parametrize("level", ["sentence", "corpus"])
def test_golden_values(shared, level):
    compared = 0
    for case, hypotheses, references in golden.cases(shared, "rouge_score"):
        if case["level"] != level:
            continue
        for kind in case["options"]["types"]:
            metric = Rouge(kind.removeprefix("rouge"), use_stemmer=case["options"]["use_stemmer"])
            statistics, expected = metric.statistics(hypotheses, references), case["expected"]
            if level == "corpus":
                statistics, expected = statistics.sum(axis=0, keepdims=True), [expected]
            values = np.array([[row[kind][key] for key in "prf"] for row in expected])
            np.testing.assert_allclose(
                statistics[:, :3] / statistics[:, 3:], values, rtol=0, atol=1e-9, err_msg=f"{case['id']} {kind}"
            )
            np.testing.assert_allclose(metric.score(statistics), values[:, 2], rtol=0, atol=1e-9)
            compared += 1
    assert compared == 18 * 6


@pytest.mark.parametrize(("variant", "hypothesis", "reference", "precision", "recall", "f1"), rouge_cases.BY_HAND)
def test_by_hand(variant, hypothesis, reference, precision, recall, f1):
    np.testing.assert_allclose(row(Rouge(variant), hypothesis, reference), [precision, recall, f1])


def test_rouge_score_splits_at_hyphens():
    other = "The fast wood-coloured fox hopped over the lethargic dog"
    assert Rouge("L", tokenize="none")([other], [rouge_cases.FOX]).score == pytest.approx(5 / 9)
    # rouge-score makes two tokens of wood-coloured: ten words instead of nine.
    np.testing.assert_allclose(row(Rouge("L"), other, rouge_cases.FOX), [5 / 10, 5 / 9, 10 / 19])


def test_sentences_are_lines():
    hypothesis, reference = "d e f\na b c", "a b c\nd e f"
    assert Rouge("L")([hypothesis], [reference]).score == pytest.approx(3 / 6)
    assert Rouge("Lsum")([hypothesis], [reference]).score == 1


def test_stems():
    assert Rouge("1", use_stemmer=True)(["cats jumping"], ["cat jumped"]).score == 1
    assert Rouge("1")(["cats jumping"], ["cat jumped"]).score == 0
    assert Rouge("1", use_stemmer=True)(["ads jumping"], ["ad jumped"]).score == 1 / 2  # "ads" is too short


@pytest.mark.parametrize(
    ("hypothesis", "reference", "f1"),
    [
        ("Das schöne Mädchen", "das Schöne mädchen!", 1),
        ("我喜欢猫。", "我喜欢狗！", 3 / 4),
        ("ネコが好き", "イヌが好き", 3 / 5),
        ("고양이가 좋아", "고양이가 싫어", 1 / 2),  # Korean words are separated by spaces
        ("القطة جميلة", "القطة كبيرة", 1 / 2),
        ("हिन्दी भाषा", "हिन्दी, भाषा", 1),  # vowel signs are part of the word
        ("हिन्दी", "हन्द", 0),
        ("می\u200cخواهم", "میخواهم", 1),  # a joiner is ignored
        ("Cafe\u0301 ٣", "café ٣", 1),  # decomposed and composed letters, Arabic digits
        ("一つ々〇", "一つ々〇", 1),
    ],
)
def test_words_of_any_script(hypothesis, reference, f1):
    assert Rouge("1", tokenize="unicode")([hypothesis], [reference]).score == pytest.approx(f1)


def test_rouge_score_keeps_only_ascii():
    assert Rouge("1")(["我喜欢猫"], ["我喜欢猫"]).score == 0
    assert Rouge("1")(["schön"], ["sch n"]).score == 1
    assert Rouge("1")(["\u212a"], ["k"]).score == 1  # KELVIN SIGN, lower-cased


def test_tokenize_none_keeps_case():
    assert Rouge("1", tokenize="none")(["A b"], ["a b"]).score == 1 / 2


def test_best_reference():
    references = ["a x y z", "a b c", "a b d"]
    np.testing.assert_allclose(row(Rouge("1"), "a b", *references), [1, 2 / 3, 4 / 5])
    result = Rouge("1")(["a b", "q"], [references, "q"])
    assert result.score == pytest.approx((4 / 5 + 1) / 2)
    assert "nrefs:var" in result.signature
    # the first of two references with equal F1: P 1/2, R 1, or P 1, R 1/2
    np.testing.assert_allclose(row(Rouge("1"), "a b", "a", "a b c d"), [1 / 2, 1, 2 / 3])
    np.testing.assert_allclose(row(Rouge("1"), "a b", "a b c d", "a"), [1, 1 / 2, 2 / 3])


def test_result():
    result = Rouge("1")(["a b", "c"], ["a", "d"])
    assert result.parts == pytest.approx({"precision": 1 / 4, "recall": 1 / 2, "f1": 1 / 3})
    assert result.score == pytest.approx(1 / 3)
    np.testing.assert_allclose(result.segments, [2 / 3, 0])
    assert parse(result.signature) == Rouge("1")
    assert parse("rougeLsum") == Rouge("Lsum")


@given(metrics, texts.segments(texts.lines))
def test_segments_are_independent(metric, pairs):
    hypotheses, references = zip(*pairs, strict=True)
    result = metric(hypotheses, references)
    alone = [metric([hypothesis], [group]).score for hypothesis, group in pairs]
    np.testing.assert_array_equal(result.segments, alone)
    assert result.score == pytest.approx(np.mean(alone))
    assert ((result.segments >= 0) & (result.segments <= 1)).all()
    best = [max(metric([hypothesis], [one]).score for one in group) for hypothesis, group in pairs]
    np.testing.assert_array_equal(result.segments, best)


@given(metrics, texts.lines)
def test_identical_texts_score_1_or_0(metric, text):
    precision, recall, f1 = row(metric, text, text)
    assert precision == recall == f1 in (0, 1)


@given(metrics, texts.lines, texts.lines)
def test_swapped_texts_swap_precision_and_recall(metric, first, second):
    if metric.variant != "Lsum":  # its union of matches is not symmetric
        precision, recall, f1 = row(metric, first, second)
        np.testing.assert_array_equal(row(metric, second, first), [recall, precision, f1])


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("tokenize", ["rouge_score", "unicode", "none"])
def test_unusual_texts(variant, tokenize):
    metric = Rouge(variant, use_stemmer=True, tokenize=tokenize)
    pairs = [(first, second) for first in texts.ODD for second in texts.ODD]
    segments = metric(*zip(*pairs, strict=True)).segments
    assert np.isfinite(segments).all()
    empty = [not first.strip() or not second.strip() for first, second in pairs]
    assert (segments[empty] == 0).all()
    if variant == "1":
        assert segments[-1] == 1


def test_statistics_are_additive():
    metric, hypotheses, references = Rouge("2"), ["a b c", "a b", "x y"], ["a b d", "b a", "x y z"]
    statistics = metric.statistics(hypotheses, references)
    draws = np.random.default_rng(0).integers(3, size=(50, 3))
    resampled = metric.score(statistics[draws].sum(axis=1))
    np.testing.assert_allclose(resampled, metric.score(statistics)[draws].mean(axis=1))


def test_pairwise():
    hypotheses, references = ["a b", "b c d", ""], ["a b c", "d"]
    expected = [[Rouge("L")([first], [second]).score for second in references] for first in hypotheses]
    np.testing.assert_array_equal(Rouge("L").pairwise(hypotheses, references), expected)


@pytest.mark.parametrize("options", [{"variant": "10"}, {"variant": "0"}, {"variant": "W"}, {"tokenize": "13a"}])
def test_invalid_options(options):
    with pytest.raises(ValueError, match="choose one of '"):
        Rouge(**options)
