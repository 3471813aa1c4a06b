"""Softmax, and global and local attention for recurrent decoders."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax import platforms
from nmt_jax.models.layers.attention import Attention, attend, fused_context, softmax

B, Q, S, D = 2, 6, 7, 4
LENGTHS = np.array([7, 3])


def weights_of(kind, window=2, **fields):
    module = Attention("general", kind, d_query=D, d_attention=5, window=window, **fields)
    states = jax.random.normal(jax.random.key(1), (B, S, D))
    query = jax.random.normal(jax.random.key(2), (B, Q, D))
    mask = jnp.asarray(np.arange(S) < LENGTHS[:, None])

    def look(module, query, states, mask):
        return module(query, module.memory(states, mask), jnp.arange(Q))

    variables = module.init(jax.random.key(0), query, states, mask, method=look)
    context, weights = module.apply(variables, query, states, mask, method=look)
    np.testing.assert_allclose(context, np.einsum("bqs,bsd->bqd", weights, states), atol=1e-6)
    return np.asarray(weights), variables["params"], np.asarray(query, np.float64)


@pytest.mark.parametrize("kind", ["global", "local-m", "local-p"])
def test_padding_gets_exactly_no_weight(kind):
    weights, _, _ = weights_of(kind)
    assert (weights[1, :, 3:] == 0).all()
    if kind != "local-p":
        np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-6)


def test_local_m_looks_round_its_own_position():
    weights, _, _ = weights_of("local-m", window=1)
    for t in range(Q):
        for row, length in enumerate(LENGTHS):
            centre = min(t, length - 1)
            inside = [s for s in range(length) if abs(s - centre) <= 1]
            assert sorted(np.flatnonzero(weights[row, t])) == inside


def test_local_p_predicts_where_to_look():
    weights, params, query = weights_of("local-p", window=2)
    hidden = np.tanh(query @ np.asarray(params["position_hidden"]["kernel"], np.float64))
    centres = (
        LENGTHS[:, None] / (1 + np.exp(-(hidden @ np.asarray(params["position_vector"]["kernel"], np.float64))))[..., 0]
    )
    distance = np.abs(np.arange(S) - centres[..., None])
    inside = (distance <= 2) & (np.arange(S) < LENGTHS[:, None])[:, None, :]
    assert ((weights > 0) == inside).all()
    # Behind the Gaussian of deviation D / 2 stands a softmax over the window.
    plain = np.where(inside, weights / np.exp(-(distance**2) / (2 * 1.0**2)), 0)
    np.testing.assert_allclose(plain.sum(axis=-1), 1, rtol=1e-4)


def test_softmax_of_bfloat16_is_that_of_float32_rounded():
    scores, push = (jax.random.normal(jax.random.key(seed), (5, 33)).astype(jnp.bfloat16) for seed in range(2))
    y, pull = jax.vjp(softmax, scores)
    exact, exact_pull = jax.vjp(softmax, scores.astype(jnp.float32))
    np.testing.assert_array_equal(y, exact.astype(jnp.bfloat16))
    (ours,), (expected,) = pull(push), exact_pull(push.astype(jnp.float32))
    assert y.dtype == ours.dtype == jnp.bfloat16
    np.testing.assert_allclose(np.asarray(ours, np.float32), expected, atol=0.01 * float(jnp.abs(expected).max()))


def test_attention_without_cudnn_is_that_of_other_accelerators():
    query, keys, values = (jax.random.normal(jax.random.key(seed), (2, 3, 32, 8), jnp.bfloat16) for seed in range(3))
    mask = jnp.tril(jnp.ones((32, 32), bool))[None, None]
    with platforms.use(platforms.GPU):
        assert fused_context(query, keys, values, mask) is None
        ours = attend(query, keys, values, mask)
    with platforms.use(platforms.ACCELERATOR):
        others = attend(query, keys, values, mask)
    jax.tree.map(np.testing.assert_array_equal, ours, others)
