import numpy as np
import pytest

from metrics_jax import NIST, parse
from tests.fixtures import golden


def test_equal_to_mteval(shared):
    result = NIST()(*golden.mteval(shared))
    assert round(result.score, 4) == 5.0564
    np.testing.assert_allclose(result.parts["information"], [4.4488, 0.5554, 0.0477, 0.0045, 0], atol=5.1e-5)


def test_by_hand():
    # References: a b a c; information a: log2(4/2) = 1, b: 2, ab: log2(2/1) = 1.
    result = NIST(max_ngram_order=2)(["a b"], ["a b a c"])
    brevity = np.exp(np.log(0.5) * (np.log(2 / 4) / np.log(1.5)) ** 2)
    assert result.score == pytest.approx(((1 + 2) / 2 + 1 / 1) * brevity)


def test_frozen_information_makes_segments_independent():
    hypotheses, references = ["a b c", "b c"], [["a b"], ["b c", "c"]]
    metric = NIST().fitted(references)
    both = metric(hypotheses, references)
    np.testing.assert_allclose(both.segments, NIST()(hypotheses, references).segments)
    alone = [metric([h], [r]).score for h, r in zip(hypotheses, references, strict=True)]
    np.testing.assert_array_equal(both.segments, alone)
    assert parse(both.signature, information=metric.information) == metric
    with pytest.raises(ValueError, match="pass the same one as information="):
        parse(both.signature)


def test_invalid_options():
    with pytest.raises(ValueError, match="at least 1"):
        NIST(max_ngram_order=0)


def test_fitting_needs_references():
    for references, error, words in (([], ValueError, "no segments"), ("ab", TypeError, "not a single string")):
        with pytest.raises(error, match=words):
            NIST().fitted(references)
