"""Similarity matrices and transport plans reproduce the scores of the metrics."""

import numpy as np
import pytest

from metrics_jax.embedding.bertscore import BERTScore, f_score
from metrics_jax.embedding.idf import Idf
from metrics_jax.embedding.moverscore import MoverScore
from metrics_jax.embedding.vectors import Vectors
from metrics_jax.embedding.wmd import WMD
from metrics_jax.embedding.yisi import YiSi1
from nmt_jax.errors import UserError
from nmt_jax.reporting.plots.compared import plan, similarities
from nmt_jax.reporting.plots.labels import readable
from tests.fixtures import tiny_encoder

HYPOTHESIS, REFERENCE = "a coat, old", "the green coat is red."
WORDS = ("zebra", "coat", "the", "red", "old", "green", "a")
VECTORS = Vectors(WORDS, np.random.default_rng(1).normal(size=(7, 5)))


@pytest.fixture(scope="module")
def encoder():
    return tiny_encoder.make()


def idf_weights(encoder) -> Idf:
    return BERTScore(encoder).count(["a red coat", "the coat", "old"])


@pytest.mark.parametrize("name", ["plain", "idf", "yisi"])
def test_precision_recall_and_score_follow_from_the_matrix(encoder, name):
    metric = {
        "plain": lambda: BERTScore(encoder, layer=2),
        "idf": lambda: BERTScore(encoder, idf=idf_weights(encoder)),
        "yisi": lambda: YiSi1(encoder),
    }[name]()
    found = similarities(metric, HYPOTHESIS, REFERENCE)
    own = metric([HYPOTHESIS], [REFERENCE])
    assert found.matrix.shape == (len(found.hypothesis), len(found.reference))
    precision = np.average(found.best(1), weights=found.weights[0])
    recall = np.average(found.best(0), weights=found.weights[1])
    assert precision == pytest.approx(own.parts["precision"], abs=1e-6)
    assert recall == pytest.approx(own.parts["recall"], abs=1e-6)
    alpha = metric.alpha if name == "yisi" else 0.5
    assert f_score(np.array(precision), np.array(recall), alpha) == pytest.approx(own.score, abs=1e-6)
    assert found.result.score == own.score
    outer = [] if name == "yisi" else ["[CLS]"]
    assert found.hypothesis[:2] == [*outer, "a", "c"][:2]


@pytest.mark.parametrize(
    "options",
    [{}, {"n_gram": 2}, {"n_gram": 40}, {"variant": "v2"}, {"transport": "sinkhorn"}, {"remove_subwords": False}],
    ids=str,
)
def test_the_cost_of_the_plan_of_moverscore_gives_its_score(encoder, options):
    metric = MoverScore(encoder, **options)
    found = plan(metric, HYPOTHESIS, REFERENCE)
    check(found)
    own = metric([HYPOTHESIS], [REFERENCE]).score
    assert found.result.score == own
    distance = 1 / own - 1 if metric.variant == "v2" else 1 - own
    assert found.distance == pytest.approx(distance, abs=1e-5)
    assert len(found.hypothesis) == found.cost.shape[0]
    assert len(found.reference) == found.cost.shape[1]


def test_the_cost_of_the_plan_of_wmd_is_its_distance_and_words_are_in_order():
    metric = WMD(VECTORS)
    found = plan(metric, "The old coat, the old the!", "A red unknown coat")
    check(found)
    assert found.hypothesis == ["the", "old", "coat"]
    assert found.reference == ["a", "red", "coat"]
    np.testing.assert_allclose(found.weights[0], [1 / 2, 1 / 3, 1 / 6])
    assert found.distance == pytest.approx(found.result.score, abs=1e-9)
    assert found.cost[2, 2] == pytest.approx(0, abs=1e-7)  # coat to coat: labels and costs belong to the same words
    unit = VECTORS.matrix / np.linalg.norm(VECTORS.matrix, axis=1, keepdims=True)
    assert found.cost[0, 1] == pytest.approx(np.linalg.norm(unit[WORDS.index("the")] - unit[WORDS.index("red")]))


def check(found):
    np.testing.assert_allclose(found.moved.sum(axis=1), found.weights[0], atol=2e-6)
    np.testing.assert_allclose(found.moved.sum(axis=0), found.weights[1], atol=2e-6)
    assert found.moved.min() >= 0
    assert found.moved.sum() == pytest.approx(1)


def test_ignored_pieces_of_a_word_are_in_brackets(encoder):
    assert plan(MoverScore(encoder), "coat, a", "a").hypothesis == ["[CLS]", "c(oat,)", "a", "[SEP]"]
    whole = plan(MoverScore(encoder, remove_subwords=False), "ab", "a").hypothesis
    assert whole == ["[CLS]", "a", "·b", "[SEP]"]


@pytest.mark.parametrize(
    ("pieces", "labels"),
    [
        (["[CLS]", "un", "##able", "##", "to"], ["[CLS]", "un", "·able", "##", "to"]),
        (["▁un", "able", "▁", "</s>"], ["un", "·able", "_", "</s>"]),
        (["<s>", "na", "Ã¯ve", "ĠÙħÙĨ", "Ġ", "</s>"], ["<s>", "·na", "·ïve", "من", "_", "</s>"]),
        (["彼", "は"], ["彼", "は"]),
    ],
)
def test_pieces_of_all_kinds_of_vocabularies_become_readable_labels(pieces, labels):
    assert readable(pieces) == labels


def test_metrics_without_such_a_plot_are_errors(encoder):
    with pytest.raises(UserError, match="moverscore does not match tokens"):
        similarities(MoverScore(encoder), "a", "b")
    with pytest.raises(UserError, match="compares n-grams"):
        similarities(YiSi1(encoder, n_gram=2), "a", "b")
    with pytest.raises(UserError, match="bertscore has no transport plan"):
        plan(BERTScore(encoder), "a", "b")
    with pytest.raises(UserError, match=r"'unknown' is in the word vectors"):
        plan(WMD(VECTORS), "a", "unknown")
    with pytest.raises(UserError, match=r"'\.' has weight"):
        plan(MoverScore(tiny_encoder.plain()), ".", "a")
