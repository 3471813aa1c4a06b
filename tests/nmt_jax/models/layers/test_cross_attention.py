"""A decoder layer of the Transformer with several sources, against the equations; what the encoder lets them see."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax.data.vocabulary.vocab import EOS, PAD
from nmt_jax.models.layers.multi_head_attention import MultiHeadAttention
from nmt_jax.models.layers.transformer_layers import COMBINATIONS, DecoderLayer
from nmt_jax.models.transformer import Model
from tests.fixtures.parameters import draw_parameters

B, N, T, S, D, H = 2, 3, 4, 5, 8, 2
ATTENTION = {"d_model": D, "num_heads": H, "d_k": 4, "d_v": 4, "dropout": 0.0, "dtype": "float32"}
FEED_FORWARD = {"d_ff": 12, "activation": "relu", "dropout": 0.0, "dtype": "float32"}
LENGTHS = np.array([[5, 2, 4], [1, 5, 3]])
RANDOM = np.random.default_rng(0)
X, STATES = (RANDOM.normal(size=(B, length, D)).astype(np.float32) for length in (T, N * S))
MASK = (np.arange(S) < LENGTHS[..., None]).reshape(B, 1, 1, N * S)
CAUSAL = np.tril(np.ones((1, 1, T, T), bool))


def make(combination, num_sources=N, norm="pre"):
    """A layer, its parameters, and what its sublayer for the sources returns."""
    layer = DecoderLayer(ATTENTION, FEED_FORWARD, norm, 0.0, combination=combination, num_sources=num_sources)
    states, mask = STATES[:, : num_sources * S], MASK[..., : num_sources * S]

    def whole(layer):
        return layer(X, CAUSAL, layer.memory(states), mask, False)

    def sublayer(layer):
        return layer._attend_to_source(X, layer.memory(states), mask, False)

    variables = draw_parameters(functools.partial(layer.init, method=whole))
    return layer, variables, jax.jit(lambda: layer.apply(variables, method=sublayer))()


def attend(params, query, states, mask):
    """What an attention alone returns: a context and its weights."""
    attention = MultiHeadAttention(**ATTENTION)

    @jax.jit
    def call(params):
        memory = attention.apply(params, states, method="memory")
        return attention.apply(params, query, memory, mask, False)

    return jax.tree.map(np.asarray, call({"params": params}))


def normalized(params, x):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-6) * params["layer_norm"]["scale"] + params["layer_norm"]["bias"]


@pytest.mark.parametrize("combination", ["serial", "parallel", "hierarchical"])
def test_a_combination_equals_its_equations(combination):
    _, variables, (found, weights) = make(combination)
    params = jax.tree.map(np.asarray, variables["params"])
    x, contexts, expected = X.copy(), [], []
    for k, (states, mask) in enumerate(zip(np.split(STATES, N, axis=1), np.split(MASK, N, axis=-1), strict=True)):
        suffix = f"_{k}" if k else ""
        residual = params[f"cross_attention_residual{suffix if combination == 'serial' else ''}"]
        query = normalized(residual, x)
        y, one = attend(params[f"cross_attention{suffix}"], query, states, mask)
        if combination == "serial":
            x = x + y
        contexts.append(y)
        expected.append(one.copy())
    if combination == "parallel":
        x = x + sum(contexts)
    if combination == "hierarchical":
        for row, t in np.ndindex(B, T):  # position by position
            candidates = np.stack([context[row, t] for context in contexts])[None]
            y, share = attend(params["choose"], query[None, None, row, t], candidates, np.ones((1, 1, 1, N), bool))
            x[row, t] += y[0, 0]
            for k in range(N):
                expected[k][row, :, t] *= share[0, :, 0, k].mean()
    np.testing.assert_allclose(found, x, atol=2e-6)
    np.testing.assert_allclose(weights, np.concatenate(expected, axis=-1), atol=1e-6)
    np.testing.assert_allclose(weights.sum(-1), 1 if combination == "hierarchical" else N, rtol=1e-5)
    assert (np.asarray(weights)[~np.broadcast_to(MASK, weights.shape)] == 0).all(), "padding has weight"


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_one_source_is_attended_to_as_without_a_combination(norm):
    _, expected, outputs = make("joint", 1, norm)
    for combination in COMBINATIONS[1:]:
        _, variables, found = make(combination, 1, norm)
        jax.tree.map(np.testing.assert_array_equal, variables, expected)
        jax.tree.map(np.testing.assert_array_equal, found, outputs)


SOURCE = np.array([[[4, 5, 6, EOS], [7, EOS, PAD, PAD]], [[8, EOS, PAD, PAD], [9, 4, EOS, PAD]]])


@pytest.mark.parametrize("combination", COMBINATIONS)
def test_a_state_of_the_encoder_depends_on_other_sources_only_if_they_are_read_jointly(combination):
    sizes = {"num_encoder_layers": 2, "num_decoder_layers": 1, "d_model": D, "d_ff": 12, "num_heads": H}
    model = Model(11, 11, num_sources=2, combination=combination, **sizes)
    variables = draw_parameters(model.init, SOURCE, np.array([[5, EOS], [4, EOS]]))

    @jax.jit
    def encode(source):
        return model.apply(variables, source, method="encode").reshape(2, 2, 4, D)

    changed = SOURCE.copy()
    changed[:, 1, 0] = 10
    moved = jnp.abs(encode(changed) - encode(SOURCE)).max(axis=(2, 3))
    assert (moved[:, 1] > 1e-3).all()
    assert ((moved[:, 0] > 1e-3) == (combination == "joint")).all()
    assert combination == "joint" or (moved[:, 0] == 0).all()
