import numpy as np
import ot
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics_jax import BaryScore, Idf, load
from metrics_jax.embedding.baryscore import barycenter
from tests.fixtures import tiny_encoder

ENCODER = tiny_encoder.make()
IDF = Idf({3 + ord("a"): 3, 3 + ord("b") + 128: 1}, 4)
HYPOTHESES, REFERENCES = ["ab c", "cab abc", "c", "abca bab", ""], ["c ba", "cab abc", "ba", "ca", ""]

short = st.text("ab c", min_size=1, max_size=7).filter(str.strip)


def cloud(text, layers, idf):
    """POT's barycenter of the layers, from the same start, and the weights of its points."""
    per_layer = [tiny_encoder.states(ENCODER, text, layer) for layer in layers]
    _, ids, special = per_layer[0]
    weights = np.array([idf[int(one)] if idf else 1.0 for one in ids[~special]])
    weights = weights if weights.any() else np.ones(len(weights))
    points = [vectors[~special][weights > 0] for vectors, _, _ in per_layer]
    weights = weights[weights > 0] / weights.sum()
    start = np.mean(points, axis=0)
    found = ot.lp.free_support_barycenter(points, [weights] * len(points), start, b=weights, stopThr=1e-7)
    return found, weights


@pytest.mark.filterwarnings("ignore:.* have only tokens of idf weight 0")
@given(st.lists(st.tuples(short, short), min_size=1, max_size=4), st.booleans())
@settings(max_examples=8, deadline=None)
def test_equals_the_definition_in_pot(pairs, weighted):
    idf, layers = IDF if weighted else None, (-4, -2, -1)
    metric = BaryScore(ENCODER, layers=layers, idf=idf or "uniform")
    expected = []
    for hypothesis, reference in pairs:
        (x, a), (y, b) = cloud(hypothesis, layers, idf), cloud(reference, layers, idf)
        expected.append(ot.emd2(a, b, ot.dist(x, y)))
    segments = metric(*zip(*pairs, strict=True)).segments
    np.testing.assert_allclose(segments, expected, atol=1e-5)
    np.testing.assert_allclose(np.diag(metric.pairwise(*zip(*pairs, strict=True))), segments, atol=1e-12)


def test_a_barycenter_of_shuffled_clouds():
    """Clouds that differ in the order and the place of their points: the mean of the points that belong together."""
    random = np.random.default_rng(0)
    points, weights = random.normal(size=(6, 3)), np.full(6, 1 / 6)
    clouds = np.stack([points + 0.01, points[::-1] - 0.01, points[random.permutation(6)]])
    found = barycenter(clouds, weights)
    reference = ot.lp.free_support_barycenter([*clouds], [weights] * 3, clouds.mean(axis=0), b=weights)
    np.testing.assert_allclose(found, reference, atol=1e-9)
    np.testing.assert_allclose(barycenter(clouds[:1], weights), clouds[0])


def test_scores_and_their_signature():
    metric = BaryScore(ENCODER, idf="uniform")
    result = metric(HYPOTHESES, REFERENCES)
    np.testing.assert_allclose(result.segments[[1, 4]], 0, atol=1e-12)
    assert (result.segments[[0, 2, 3]] > 0.01).all()
    np.testing.assert_array_equal(metric(HYPOTHESES[::-1], REFERENCES[::-1]).segments[::-1], result.segments)
    assert metric(["", "a"], ["a", ""]).segments.tolist() == [4, 4]
    assert load(result.signature, encoder=ENCODER)(HYPOTHESES, REFERENCES).score == result.score
    plain = BaryScore(tiny_encoder.plain(), idf="uniform")  # an empty text has no rows at all
    assert plain(["", "ab", ""], ["ab", "ab", ""]).segments.tolist() == [4, 0, 0]
    groups = [[reference, hypothesis] for reference, hypothesis in zip(REFERENCES, HYPOTHESES, strict=True)]
    np.testing.assert_allclose(metric(HYPOTHESES, groups).segments, 0, atol=1e-12)
    assert metric.signature != BaryScore(ENCODER, layers=(-2, -1), idf="uniform").signature


def test_idf_is_that_of_the_references():
    whole = BaryScore(ENCODER)(HYPOTHESES[:3], REFERENCES[:3])
    fitted = BaryScore(ENCODER).fitted(REFERENCES[:3])
    assert fitted(HYPOTHESES[:1], REFERENCES[:1]).score == whole.segments[0]
    other = BaryScore(ENCODER, hypothesis_idf=fitted.count(HYPOTHESES))(HYPOTHESES[:3], REFERENCES[:3])
    assert other.score != whole.score
    with pytest.raises(ValueError, match="the encoder has layers 0"):
        BaryScore(ENCODER, layers=(9,))(["a"], ["b"])
