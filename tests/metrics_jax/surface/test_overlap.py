import pytest

from metrics_jax import WordOverlap

REFERENCE = "Israeli officials are responsible for airport security"


def test_published_example():
    result = WordOverlap()(["Israeli officials responsibility of airport safety"], [REFERENCE])
    assert result.parts["precision"] == 3 / 6
    assert result.parts["recall"] == 3 / 7
    assert round(100 * result.score) == 46


def test_order_does_not_matter():
    assert WordOverlap()(["airport security for responsible are officials Israeli"], [REFERENCE]).score == 1


def test_the_best_reference_is_used_and_counts_are_summed():
    result = WordOverlap()(["a b", "c"], [["x", "a"], ["d"]])
    assert result.segments.tolist() == [pytest.approx(2 / 3), 0]
    assert result.score == pytest.approx(2 * 1 / (3 + 2))


def test_beta_must_be_positive():
    with pytest.raises(ValueError, match="beta=0: must be at least"):
        WordOverlap(beta=0)
