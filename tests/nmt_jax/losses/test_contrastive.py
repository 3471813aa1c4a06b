import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from nmt_jax.losses.contrastive import equal_rows, info_nce

loss_of = jax.jit(info_nce)
NOTHING = np.zeros((6, 6), bool)


@pytest.fixture
def vectors():
    random = np.random.default_rng(0)
    found = random.normal(size=(2, 6, 4)).astype(np.float32)
    return found / np.linalg.norm(found, axis=-1, keepdims=True)


def test_two_pairs_by_hand():
    first = jnp.array([[1.0, 0.0], [0.0, 1.0]])
    second = jnp.array([[1.0, 0.0], [0.6, 0.8]])
    total, weight = loss_of(first, second, jnp.float32(2.0), np.zeros((2, 2), bool), jnp.ones(2))
    # Logits [[2, 1.2], [0, 1.6]].
    rows = np.log1p(np.exp(1.2 - 2.0)) + np.log1p(np.exp(0.0 - 1.6))
    columns = np.log1p(np.exp(0.0 - 2.0)) + np.log1p(np.exp(1.2 - 1.6))
    assert weight == 2
    np.testing.assert_allclose(total, (rows + columns) / 2, rtol=1e-6)


def test_it_is_the_mean_of_two_cross_entropies(vectors):
    logits = 5.0 * vectors[0] @ vectors[1].T
    expected = sum(
        optax.softmax_cross_entropy_with_integer_labels(jnp.array(table), jnp.arange(6)).sum()
        for table in (logits, logits.T)
    )
    total, weight = loss_of(*vectors, jnp.float32(5.0), NOTHING, jnp.ones(6))
    np.testing.assert_allclose(total, expected / 2, rtol=1e-5)
    np.testing.assert_allclose(total, loss_of(*vectors[::-1], jnp.float32(5.0), NOTHING, jnp.ones(6))[0], rtol=1e-6)
    assert weight == 6


def test_equal_vectors_cost_the_logarithm_of_the_candidates():
    total, _ = loss_of(jnp.ones((6, 4)), jnp.ones((6, 4)), jnp.float32(3.0), NOTHING, jnp.ones(6))
    np.testing.assert_allclose(total, 6 * np.log(6), rtol=1e-6)


def test_padding_has_no_influence(vectors):
    weights = jnp.array([1.0, 1.0, 1.0, 1.0, 0.0, 0.0])

    def loss(first, second):
        return loss_of(first, second, jnp.float32(5.0), NOTHING, weights)[0]

    alone = loss_of(*vectors[:, :4], jnp.float32(5.0), NOTHING[:4, :4], jnp.ones(4))[0]
    np.testing.assert_allclose(loss(*vectors), alone, rtol=1e-6)
    for gradient in jax.jit(jax.grad(loss, argnums=(0, 1)))(*vectors):
        assert (gradient[4:] == 0).all()
        assert (gradient[:4] != 0).any()


def test_pairs_with_equal_texts_are_no_negatives(vectors):
    ids = np.array([[3, 4, 0], [5, 2, 0], [3, 4, 0], [3, 4, 2], [3, 0, 0], [4, 3, 0]])
    same = equal_rows(ids)
    assert np.argwhere(same & ~np.eye(6, dtype=bool)).tolist() == [[0, 2], [2, 0]]
    logits = 5.0 * vectors[0] @ vectors[1].T

    def spared(pair, others):
        """The part of the loss of a pair that goes if only `others` are candidates."""
        tables = (logits[pair], logits[:, pair])
        return sum(np.logaddexp.reduce(one) - np.logaddexp.reduce(one[others]) for one in tables) / 2

    one, none = (loss_of(*vectors, jnp.float32(5.0), table, jnp.ones(6))[0] for table in (same, NOTHING))
    np.testing.assert_allclose(none - one, spared(0, [0, 1, 3, 4, 5]) + spared(2, [1, 2, 3, 4, 5]), rtol=1e-4)
