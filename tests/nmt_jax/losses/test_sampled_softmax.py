"""The softmax over a sample: with every word in it the softmax itself, and on average near it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax.losses import cross_entropy as losses
from nmt_jax.losses.sampled import log_uniform, log_uniform_probability, sampled_cross_entropy

B, T, D, V = 2, 3, 4, 50
RNG = np.random.default_rng(0)
HIDDEN = RNG.normal(size=(B, T, D)).astype(np.float32)
KERNEL = RNG.normal(size=(D, V)).astype(np.float32)
LABELS = np.array([[0, 1, 7], [49, 3, 3]])
WEIGHTS = np.array([[1.0, 1.0, 0.0], [1.0, 0.5, 1.0]], np.float32)


draw = jax.jit(log_uniform, static_argnums=(1, 2))


def sampled(hidden, kernel, samples):
    proposal = (log_uniform_probability(LABELS, V), log_uniform_probability(samples, V))
    return sampled_cross_entropy(hidden, kernel, LABELS, WEIGHTS, samples, proposal)


def test_a_sample_of_every_word_once_is_the_softmax():
    def ours(hidden, kernel):
        nothing = (jnp.zeros((B, T)), jnp.zeros(V))
        return sampled_cross_entropy(hidden, kernel, LABELS, WEIGHTS, jnp.arange(V), nothing)[0]

    def whole(hidden, kernel):
        return losses.cross_entropy(hidden, kernel, LABELS, WEIGHTS)[0]

    found, expected = (jax.jit(jax.value_and_grad(f, argnums=(0, 1)))(HIDDEN, KERNEL) for f in (ours, whole))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), found, expected)
    assert float(jax.jit(sampled)(HIDDEN, KERNEL, np.arange(5))[1]) == float(WEIGHTS.sum())


def test_large_samples_have_the_softmax_s_gradient():
    samples = draw(jax.random.key(1), 200_000, V)
    found = jax.jit(jax.grad(lambda hidden: sampled(hidden, KERNEL, samples)[0]))(HIDDEN)
    expected = jax.jit(jax.grad(lambda hidden: losses.cross_entropy(hidden, KERNEL, LABELS, WEIGHTS)[0]))(HIDDEN)
    np.testing.assert_allclose(found, expected, atol=0.03)


def test_words_are_drawn_as_their_probability_says():
    drawn = np.asarray(draw(jax.random.key(0), 400_000, V))
    probabilities = np.exp(jax.jit(log_uniform_probability, static_argnums=1)(np.arange(V), V))
    assert probabilities.sum() == pytest.approx(1, abs=1e-5)
    assert (np.diff(probabilities) < 0).all()
    np.testing.assert_allclose(np.bincount(drawn, minlength=V) / len(drawn), probabilities, atol=0.002)
