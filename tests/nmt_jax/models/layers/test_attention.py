"""Global and local attention for recurrent decoders."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax.models.layers.attention import Attention

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


def look_hard(streams):
    """Hard attention of 400 equal rows -> context, weights."""
    module = Attention("general", "hard", d_query=D, d_attention=5, window=2)
    states = jnp.broadcast_to(jax.random.normal(jax.random.key(1), (1, S, D)), (400, S, D))
    query = jnp.broadcast_to(jax.random.normal(jax.random.key(2), (1, Q, D)), (400, Q, D))
    mask = jnp.broadcast_to(jnp.arange(S) < 5, (400, S))

    def look(module, query, states, mask):
        return module(query, module.memory(states, mask), jnp.arange(Q))

    variables = module.init(jax.random.key(0), query, states, mask, method=look)
    rngs = {name: jax.random.key(number) for number, name in enumerate(streams)}
    return states, *module.apply(variables, query, states, mask, method=look, rngs=rngs)


def test_hard_attention_reads_the_best_position():
    states, context, weights = look_hard([])
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-6)
    for t in range(Q):
        np.testing.assert_array_equal(context[0, t], states[0, np.argmax(weights[0, t])])


def test_hard_attention_draws_positions_in_training_and_averages_in_half_of_the_rows():
    states, context, weights = (np.asarray(x) for x in look_hard(["positions", "averaging"]))
    probabilities = np.asarray(look_hard([])[2])[0]
    soft = np.einsum("qs,sd->qd", probabilities, states[0])
    averages = np.isclose(context, soft, atol=1e-5).all(axis=(1, 2))
    assert 150 < averages.sum() < 250
    assert (np.sort(weights[averages])[..., -1] == 1).all()
    assert (np.count_nonzero(weights, axis=-1) == 1).all()
    drawn = weights[~averages]
    position = drawn.argmax(axis=-1)
    np.testing.assert_allclose(drawn.max(axis=-1), np.take_along_axis(probabilities, position.T, axis=1).T, rtol=1e-5)
    np.testing.assert_allclose(context[~averages], states[0][position], rtol=1e-6)
    frequencies = np.stack([(position == place).mean(axis=0) for place in range(S)], axis=1)
    np.testing.assert_allclose(frequencies, probabilities, atol=0.12)
