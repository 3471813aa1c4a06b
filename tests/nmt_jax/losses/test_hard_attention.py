"""Hard attention: its expected gradient is that of the likelihood and the entropy, and padding has no influence."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax.losses.hard_attention import hard_attention

B, T, S = 2, 2, 3
RANDOM = np.random.default_rng(0)
SCORES = jnp.asarray(RANDOM.normal(size=(B, T, S)))
LOG_PROBS = jnp.asarray(RANDOM.normal(size=(T, S, S)))  # of the token of a step, for the positions of both steps


def log_probs(positions):
    """Log-probabilities float[T] of the tokens of a row; a position changes its own and later steps."""
    first, second = positions
    return jnp.stack([LOG_PROBS[0, first, 0], LOG_PROBS[1, first, second]])


def loss(scores, positions, entropy):
    """The loss for drawn positions int[B, T]."""
    drawn = jax.nn.one_hot(positions, S)
    found = jnp.stack([log_probs(row) for row in positions])
    return hard_attention(drawn * jax.nn.softmax(scores), found, jnp.ones((B, T)), 1.0, entropy)


def likelihood(scores, entropy):
    """sum over rows of E[log p(y | positions)] + entropy * H[positions], by all positions of all rows."""
    weights, total = jax.nn.softmax(scores), 0.0
    for row in range(B):
        for first, second in itertools.product(range(S), repeat=T):
            probability = weights[row, 0, first] * weights[row, 1, second]
            total += probability * log_probs((first, second)).sum()
        total -= entropy * (weights[row] * jnp.log(weights[row])).sum()
    return total


@pytest.mark.parametrize("entropy", [0.0, 0.7])
def test_the_expected_gradient_is_that_of_the_likelihood_and_the_entropy(entropy):
    weights = jax.nn.softmax(SCORES)
    gradient = jax.jit(jax.grad(loss))
    expected = jnp.zeros_like(SCORES)
    for flat in itertools.product(range(S), repeat=B * T):
        positions = (flat[:T], flat[T:])
        probability = np.prod([weights[row, t, positions[row][t]] for row in range(B) for t in range(T)])
        expected -= probability * gradient(SCORES, jnp.array(positions), entropy)
    np.testing.assert_allclose(expected, jax.grad(likelihood)(SCORES, entropy), rtol=1e-4, atol=1e-5)


def test_padding_has_no_influence():
    attention = jax.nn.one_hot(jnp.zeros((B, T), jnp.int32), S) * jax.nn.softmax(SCORES)
    found, weights = jnp.asarray(RANDOM.normal(size=(B, T))), jnp.array([[1.0, 1.0], [1.0, 0.0]])
    changed = attention.at[1, 1].set(0.0), found.at[1, 1].set(9.0)
    more = (jnp.concatenate([x, x[:1]]) for x in (*changed, weights))  # a third row, which completes a batch
    attention_of_3, found_of_3, weights_of_3 = more
    empty = weights_of_3.at[2].set(0.0)
    expected = hard_attention(attention, found, weights, 1.0, 0.1)
    assert expected != 0
    np.testing.assert_allclose(hard_attention(attention_of_3, found_of_3, empty, 1.0, 0.1), expected, rtol=1e-6)
