"""RUSE: features, regressor and scores."""

import dataclasses

import numpy as np
import pytest

from metrics_jax import RUSE, parse
from metrics_jax.embedding.ruse import Regressor, features, sentence_vectors
from tests.fixtures import tiny_encoder

D, HIDDEN = tiny_encoder.D, 6
TEXTS = ["the cat", "a", "", "the cat sat on the mat", "dogs"]


def encoders():
    other = np.random.default_rng(5).normal(size=(3 + 2 * tiny_encoder.LETTERS, D))
    return tiny_encoder.make(), dataclasses.replace(tiny_encoder.make(table=other), fingerprint="b" * 64)


def regressor(normalize=False, seed=0) -> Regressor:
    random = np.random.default_rng(seed)
    shapes = ((8 * D, HIDDEN), (HIDDEN, 1))
    layers = tuple(tuple(random.normal(size=s).astype(np.float32) for s in (shape, shape[1:])) for shape in shapes)
    return Regressor(encoders(), layers, normalize)


def mean_state(encoder, text):
    ids, mask, _ = encoder.tokenize([text])
    return np.asarray([*encoder.embed(ids, mask)][-1])[0].mean(axis=0)


def test_features_are_reference_translation_difference_product():
    r, t = np.array([[1.0, -2.0]]), np.array([[3.0, 5.0]])
    assert features([r], [t]).tolist() == [[1, -2, 3, 5, 2, 7, 3, -10]]
    two = features([r, r[:, :1]], [t, t[:, :1]])
    assert two.tolist() == [[1, -2, 3, 5, 2, 7, 3, -10, 1, 3, 2, 3]]  # encoder by encoder


@pytest.mark.parametrize("normalize", [False, True])
def test_a_score_by_hand(normalize):
    found, (kernel, bias), (last, shift) = regressor(normalize), *regressor().layers
    sides = []
    for text in ("the cat", "a cat"):
        means = [mean_state(encoder, text) for encoder in encoders()]
        sides.append([mean / np.sqrt(np.mean(mean**2)) if normalize else mean for mean in means])
    row = np.concatenate([part for r, t in zip(*sides, strict=True) for part in (r, t, abs(r - t), r * t)])
    expected = np.maximum(row @ kernel + bias, 0) @ last + shift
    assert RUSE(found)(["a cat"], ["the cat"]).score == pytest.approx(float(expected[0]), abs=1e-4)


def test_a_score_is_independent_of_other_segments():
    metric = RUSE(regressor())
    whole = metric(TEXTS, TEXTS[::-1])
    alone = [metric([a], [b]).score for a, b in zip(TEXTS, TEXTS[::-1], strict=True)]
    np.testing.assert_array_equal(whole.segments, alone)
    assert np.isfinite(whole.segments).all()
    assert whole.score == pytest.approx(np.mean(alone))
    np.testing.assert_array_equal(
        metric.pairwise(TEXTS[:2], TEXTS[3:]), [[metric([h], [r]).score for r in TEXTS[3:]] for h in TEXTS[:2]]
    )


def test_several_references_give_the_maximum_or_the_mean():
    each = [RUSE(regressor())(["a cat"], [reference]).score for reference in TEXTS]
    assert RUSE(regressor())(["a cat"], [TEXTS]).score == max(each)
    assert RUSE(regressor(), multi_reference="mean")(["a cat"], [TEXTS]).score == pytest.approx(np.mean(each))


def test_long_texts_are_counted_or_read_in_windows():
    short = dataclasses.replace(tiny_encoder.make(), max_length=8)
    found = Regressor((short,), ((np.ones((4 * D, 1), np.float32), np.zeros(1, np.float32)),))
    assert RUSE(found)(["a", "abcdefghij"], ["a", "a"]).parts == {"long": 1.0}
    cut, read = (RUSE(found, long=long)(["abcdefghij"], ["a"]).score for long in ("truncate", "window"))
    assert cut == RUSE(found)(["abcdef"], ["a"]).score != read


def test_vectors_of_equal_texts_are_equal():
    vectors, _ = sentence_vectors(tiny_encoder.make(), ["a b", "c", "a b"], normalize=True)
    np.testing.assert_array_equal(vectors[0], vectors[2])
    np.testing.assert_allclose(np.mean(vectors**2, axis=1), 1, rtol=1e-6)


def test_save_load_and_signature(tmp_path):
    found = regressor(normalize=True)
    found.save(tmp_path / "ruse.npz")
    loaded = Regressor.load(tmp_path / "ruse.npz", encoders())
    assert loaded.fingerprint == found.fingerprint
    assert RUSE(loaded)(TEXTS, TEXTS[::-1]).score == RUSE(found)(TEXTS, TEXTS[::-1]).score
    metric = RUSE(found)
    assert metric.signature.startswith(f"ruse|regressor:{found.fingerprint[:16]}|multi_reference:max|long:truncate|")
    assert parse(metric.signature, regressor=found) == metric
    assert len({one.fingerprint for one in (found, regressor(), regressor(seed=1))}) == 3
    with pytest.raises(ValueError, match=r"ruse\.npz: saved with 2 encoders that are not the 1 given"):
        Regressor.load(tmp_path / "ruse.npz", encoders()[:1])
    (tmp_path / "bad.npz").write_bytes(b"PK nothing of the kind")
    with pytest.raises(ValueError, match=r"bad\.npz: not a regressor"):
        Regressor.load(tmp_path / "bad.npz", encoders())


def test_mismatches_raise_errors():
    zeros = np.zeros((3, 2), np.float32), np.zeros(2, np.float32)
    with pytest.raises(ValueError, match="each must read the outputs of the previous one"):
        Regressor(encoders(), (zeros, zeros))
    narrow = Regressor(encoders(), ((np.zeros((3, 1), np.float32), np.zeros(1, np.float32)),))
    with pytest.raises(ValueError, match=r"produce 64 features per pair, the regressor expects 3: .* other encoders"):
        RUSE(narrow)(["a"], ["b"])
    with pytest.raises(ValueError, match="long='error': choose truncate or window"):
        RUSE(regressor(), long="error")
    nan = dataclasses.replace(regressor(), layers=((np.full((8 * D, 1), np.nan), np.zeros(1)),))
    with pytest.raises(ValueError, match="NaN or infinity"):
        RUSE(nan)(["a"], ["b"])
