import numpy as np
import pytest

from metrics_jax import BLEU, SARI, TER, WER, ChrF, Rouge
from metrics_jax.api import best, flatten, pair, starts

TEXTS, OWNER = flatten(["a", "b"], [["r", "s", "t"], "u"])


def test_flatten_and_pair():
    assert TEXTS == ["a", "b", "r", "s", "t", "u"]
    assert OWNER.tolist() == [0, 0, 0, 1]
    assert starts(OWNER).tolist() == [0, 3]
    assert pair(TEXTS, OWNER) == (["a", "a", "a", "b"], ["r", "s", "t", "u"])
    with pytest.raises(ValueError, match="1 hypotheses but 2 references"):
        flatten(["a"], ["r", "s"])


def test_best_reference_and_ties():
    scores = np.array([0.5, 0.9, 0.9, -1.0])
    assert best(scores, OWNER).tolist() == [1, 3]
    assert best(scores, OWNER, np.array([0, 5, 4, 9])).tolist() == [2, 3]
    assert best(scores, OWNER, np.array([0, 4, 4, 9]), np.array([1, 2, 1, 1])).tolist() == [2, 3]
    assert best(scores, OWNER, np.array([0, 4, 5, 9]), np.array([1, 2, 1, 1])).tolist() == [1, 3]
    assert best(scores, OWNER, np.array([0, 4, 4, 9]), np.array([1, 2, 2, 1])).tolist() == [1, 3]  # the first


@pytest.mark.parametrize("metric", [BLEU(), ChrF(), TER(), WER(), Rouge("Lsum"), Rouge("L")], ids=lambda one: one.name)
def test_pairwise_without_texts(metric):
    assert metric.pairwise(["a", "b"], []).shape == (2, 0)
    assert metric.pairwise([], ["a", "b"]).shape == (0, 2)
    assert metric.pairwise([], []).shape == (0, 0)


def test_pairwise_without_texts_but_with_sources():
    assert SARI().pairwise(["a", "b"], [], ["s", "t"]).shape == (2, 0)
    with pytest.raises(ValueError, match="2 hypotheses but 1 sources"):
        SARI().pairwise(["a", "b"], [], ["s"])


@pytest.mark.parametrize("metric", [BLEU(), TER()], ids=lambda one: one.name)
@pytest.mark.parametrize("wrong", [None, 5, ["a"]])
def test_what_is_no_text(metric, wrong):
    with pytest.raises(TypeError, match="segment 1: hypothesis and references must be strings"):
        metric(["a", wrong], ["a", "b"])
    if not isinstance(wrong, list):  # several references
        with pytest.raises(TypeError, match="segment 1: hypothesis and references must be strings"):
            metric(["a", "b"], ["a", wrong])
    kind = type(wrong).__name__
    with pytest.raises(TypeError, match=f"segment 1 of the hypotheses must be a string, not {kind}"):
        metric.pairwise(["a", wrong], ["a"])
    with pytest.raises(TypeError, match=f"segment 1 of the references must be a string, not {kind}"):
        metric.pairwise(["a"], ["a", wrong])
