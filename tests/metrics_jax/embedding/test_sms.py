import numpy as np
import pytest
from hypothesis import given, settings

from metrics_jax import parse
from metrics_jax.embedding.sms import SMS, VARIANTS, split_sentences
from metrics_jax.embedding.vectors import Vectors
from metrics_jax.embedding.wmd import WMD
from tests.fixtures import golden, texts
from tests.metrics_jax.embedding.test_wmd import VECTORS, WORDS, read_vectors

text = texts.spaced(*WORDS, "unknown", "cat.\n", "The")
METRICS = [SMS(VECTORS, variant, stop_words=()) for variant in VARIANTS]
each = pytest.mark.parametrize("metric", METRICS, ids=VARIANTS)


def test_golden_values_of_the_definition(shared):
    read = golden.read(shared, "wmd_sms")
    checked = 0
    for case in read["cases"]:
        if case["input"] != "sms_documents":
            continue
        metric = SMS(read_vectors(read, case["options"]["vectors"]), case["options"]["mode"], stop_words=())
        lines = [
            ["\n".join(map(" ".join, pair[side])) for pair in read["inputs"]["sms_documents"]["pairs"]]
            for side in ("hypothesis", "reference")
        ]
        # POT's distance of a vector from itself is 1e-8, up to 6e-8, not 0.
        expected = [row["similarity"] for row in case["expected"]]
        np.testing.assert_allclose(metric(*lines).segments, expected, rtol=1e-9, atol=2e-8)
        checked += 1
    assert checked == 6


def test_similarities_by_hand():
    vectors = Vectors(("one", "two", "far"), np.array([[0.0, 0.0], [0.0, 2.0], [4.0, 0.0]]))
    hypothesis, reference = "One two. Far!", "one\nfar"
    # Words: a third each onto halves. one stays; two goes: 1/6 to one, 1/6 to far; far gets what it lacks from two.
    assert SMS(vectors, "wms", stop_words=())([hypothesis], [reference]).score == pytest.approx(
        np.exp(-(2 / 6 + np.hypot(2, 4) / 6))
    )
    # Sentences: (0, 1) with weight 2/3 and far with 1/3, onto halves of (0, 0) and far.
    assert SMS(vectors, "sms", stop_words=())([hypothesis], [reference]).score == pytest.approx(
        np.exp(-(1 / 2 + np.hypot(1, 4) / 6))
    )


@each
@given(texts.segments(text))
@settings(max_examples=25, deadline=None)
def test_segments_are_independent_and_symmetric(metric, pairs):
    hypotheses, references = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    result = metric(hypotheses, references)
    np.testing.assert_array_equal(result.segments, [metric([hypothesis], [group]).score for hypothesis, group in pairs])
    assert np.isfinite(result.segments).all()
    assert ((result.segments >= 0) & (result.segments <= 1 + 1e-12)).all()
    assert result.score == pytest.approx(result.segments.mean())
    for hypothesis, group in pairs:
        similarities = metric.pairwise([hypothesis], group)[0]
        assert metric([hypothesis], [group]).score == similarities.max()
        np.testing.assert_allclose(metric.pairwise(group, [hypothesis])[:, 0], similarities, atol=1e-12)


@each
def test_identical_and_empty_texts(metric):
    result = metric(
        ["The cat sat. The dog ran.", "", "unknown", "cat"], ["The dog ran.\nThe cat sat.", "", "unknown", ""]
    )
    np.testing.assert_allclose(result.segments, [1, 0, 0, 0], atol=1e-12)
    assert result.parts == {"gap": 0, "missing": 3}


def test_words_only_equals_word_movers_distance():
    options = {"stop_words": (), "tokenize": "none", "alphabetic": False}
    hypotheses, references = ["the cat sat the", "dog ran house"], ["the mat", "dog dog cat"]
    distance = WMD(VECTORS, norm=False, **options)(hypotheses, references).segments
    np.testing.assert_allclose(SMS(VECTORS, "wms", **options)(hypotheses, references).segments, np.exp(-distance))


@each
def test_contextual_vectors_can_be_moved(metric):
    rows = VECTORS.rows(["the", "cat", "sat", "dog", "ran"])
    sentences = [VECTORS.matrix[rows[:3]], VECTORS.matrix[rows[:0]], VECTORS.matrix[rows[3:]]]
    (expected,) = metric.bags(["the cat sat. unknown!\nDog ran"])
    found = metric.bag(sentences, sentences[0].shape[1])
    np.testing.assert_allclose(found.vectors, expected.vectors)
    np.testing.assert_allclose(found.weights, expected.weights)
    assert found.weights.sum() == pytest.approx(1)
    assert len(found.weights) == {"wms": 5, "sms": 2, "s+wms": 7}[metric.variant]


def test_the_gap_bounds_the_error_of_sinkhorn():
    hypotheses, references = ["the cat sat. the dog ran", "new house", ""], ["dog ran the mat", "the house", "mat"]
    for metric in METRICS:
        near = SMS(VECTORS, metric.variant, transport="sinkhorn", stop_words=())
        for exact, row in zip(
            metric(hypotheses, references).segments, near.statistics(hypotheses, references), strict=True
        ):
            assert abs(float(near.score(row)) - exact) <= near.parts(row)["gap"] <= 0.05


@pytest.mark.parametrize(
    ("line", "sentences"),
    [
        ("One. Two! Three? “Four.” (Five.) six", ["One.", "Two!", "Three?", "“Four.”", "(Five.) six"]),
        ("It cost 3.50 at 10 a.m. and more. So it is.", ["It cost 3.50 at 10 a.m. and more.", "So it is."]),
        ("一。二！「三。」四", ["一。", "二！", "「三。」", "四"]),
        ("Да. Нет? но", ["Да.", "Нет? но"]),
        ("one\n\ntwo. \nthree", ["one", "two. ", "three"]),
        ("", []),
    ],
)
def test_where_sentences_end(line, sentences):
    assert [sentence.strip() for sentence in split_sentences(line)] == [sentence.strip() for sentence in sentences]
    assert split_sentences(line, "lines") == [part for part in line.split("\n") if part.strip()]


def test_which_words_count():
    hypotheses, references = ["The new cat , ran"], ["cat"]
    assert SMS(VECTORS)(hypotheses, references).score < 1  # computes without error
    assert SMS(VECTORS)(["The new cat ,"], references).score == 1
    assert SMS(VECTORS, stop_words=("new",))(["New cat ,"], references).score == 1
    assert SMS(VECTORS, alphabetic=False)(["cat ,"], references).score < 1


@pytest.mark.parametrize("metric", [*METRICS, SMS(VECTORS, sentences="lines", transport="sinkhorn")])
def test_a_signature_restores_the_metric(metric):
    assert parse(metric.signature, vectors=VECTORS) == metric


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"variant": "smd"}, "variant='smd' is none of wms, sms, s"),
        ({"sentences": "nltk"}, "sentences='nltk' is none of punctuation, lines"),
        ({"transport": "emd"}, "transport='emd'"),
    ],
)
def test_invalid_options_raise_errors(options, line):
    with pytest.raises(ValueError, match=line):
        SMS(vectors=VECTORS, **options)
