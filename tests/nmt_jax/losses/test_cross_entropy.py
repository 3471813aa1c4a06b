import dataclasses
import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax import platforms
from nmt_jax.losses import cross_entropy as losses
from nmt_jax.losses import vocabulary_chunks

B, T, D, V = 3, 7, 5, 13


def case(seed=0):
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(B, T, D)).astype(np.float32)
    kernel = rng.normal(size=(D, V)).astype(np.float32)
    labels = rng.integers(0, V, (B, T), np.int32)
    weights = rng.integers(0, 2, (B, T)).astype(np.float32)
    return hidden, kernel, labels, weights


def chunks_of(num_logits):
    return platforms.use(dataclasses.replace(platforms.current(), logits_per_chunk=num_logits))


def on_accelerators():
    return platforms.use(platforms.ACCELERATOR)


def dense(hidden, kernel, labels, weights, smoothing):
    """The definition, with the whole smoothed label distribution written out."""
    log_p = jax.nn.log_softmax(hidden @ kernel)
    q = (1 - smoothing) * jax.nn.one_hot(labels, V) + smoothing / V
    return jnp.sum(-jnp.sum(q * log_p, -1) * weights)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("budget", [1, 4 * B * V, 1 << 20])
def test_loss_and_gradient_are_the_definition_for_any_chunks(smoothing, budget):
    hidden, kernel, labels, weights = case()

    @jax.jit
    def chunked(h, k):
        gradient = jax.grad(lambda h, k: 2.5 * losses.cross_entropy(h, k, labels, weights, smoothing)[0], (0, 1))
        return *losses.cross_entropy(h, k, labels, weights, smoothing), gradient(h, k)

    with chunks_of(budget):
        total, weight, ours = chunked(hidden, kernel)
    definition = jax.jit(jax.value_and_grad(lambda h, k: 2.5 * dense(h, k, labels, weights, smoothing), (0, 1)))
    expected, theirs = definition(hidden, kernel)
    np.testing.assert_allclose(2.5 * total, expected, rtol=1e-5)
    assert weight == weights.sum()
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_differentiated_and_plain_value_agree():
    hidden, kernel, labels, weights = case()

    def loss(h):
        return losses.cross_entropy(h, kernel, labels, weights, 0.1)[0]

    np.testing.assert_allclose(jax.jit(jax.value_and_grad(loss))(hidden)[0], jax.jit(loss)(hidden), rtol=1e-6)


def test_zero_weight_has_no_influence():
    hidden, kernel, labels, weights = case()
    loss = jax.jit(lambda h, y: losses.cross_entropy(h, kernel, y, weights, 0.1)[0])
    gradient = jax.jit(jax.grad(loss))(hidden, labels)
    assert (np.asarray(gradient)[weights == 0] == 0).all()
    changed = np.where(weights == 0, (labels + 1) % V, labels)
    assert float(loss(hidden, changed)) == pytest.approx(float(loss(hidden, labels)))


@pytest.mark.parametrize("platform", [platforms.CPU, platforms.ACCELERATOR], ids=lambda one: one.name)
def test_bfloat16_is_near_float32(platform, monkeypatch):
    monkeypatch.setattr(vocabulary_chunks, "WORDS", 4)
    hidden, kernel, labels, weights = case()

    def with_gradient(dtype):
        loss = jax.value_and_grad(lambda h: losses.cross_entropy(h, kernel, labels, weights, 0.1, dtype)[0])
        return jax.jit(loss)(hidden)

    with platforms.use(platform):
        exact, rough = with_gradient("float32"), with_gradient("bfloat16")
    np.testing.assert_allclose(rough[0], exact[0], rtol=1e-2)
    assert np.abs(np.subtract(rough[1], exact[1])).max() < 0.05


def test_accelerators_hold_no_float32_logits():
    """Products of bfloat16 are bfloat16, so that half as many bytes move; the gradient of the table is float32."""
    hidden, kernel, labels, weights = case()

    def loss(h, k):
        return losses.cross_entropy(h, k, labels, weights, 0.1, "bfloat16")[0]

    with on_accelerators():
        gradient = jax.make_jaxpr(jax.grad(loss, (0, 1)))(hidden.astype(jnp.bfloat16), kernel)
    types = re.findall(r"(\w+)\[[\d,]*\] = dot_general", str(gradient))
    assert types
    assert set(types) == {"bf16"}
    assert [one.dtype for one in gradient.out_avals] == [jnp.bfloat16, jnp.float32]


def test_log_probs_of_sequences_and_their_gradient_are_the_definition():
    hidden, kernel, labels, weights = case()
    direction = np.random.default_rng(1).normal(size=B).astype(np.float32)

    def by_definition(h, k):
        own = jnp.take_along_axis(jax.nn.log_softmax(h @ k), labels[..., None], axis=-1)[..., 0]
        return jnp.sum(own * weights, axis=1)

    def with_gradient(log_probs):
        gradient = jax.grad(lambda h, k: direction @ log_probs(h, k), (0, 1))
        return jax.jit(lambda h, k: (log_probs(h, k), gradient(h, k)))(hidden, kernel)

    expected, d_expected = with_gradient(by_definition)
    for budget in (1, 1 << 20):
        with chunks_of(budget):
            found, d_found = with_gradient(lambda h, k: losses.sequence_log_probs(h, k, labels, weights))
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        for a, b in zip(d_found, d_expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("size", [4, 13, 100])  # 13 words in 4 parts, the last of one word; 1 part; less than 1 part
def test_loss_and_gradient_are_the_definition_for_any_parts_of_the_vocabulary(smoothing, size, monkeypatch):
    for name, value in {"WORDS": size, "TILE": 1}.items():
        monkeypatch.setattr(vocabulary_chunks, name, value)
    hidden, kernel, labels, weights = case()

    def loss(h, k):
        return 2.5 * losses.cross_entropy(h, k, labels, weights, smoothing, shards=3)[0]

    with on_accelerators():
        ours = jax.jit(jax.value_and_grad(loss, (0, 1)))(hidden, kernel)
    definition = jax.jit(jax.value_and_grad(lambda h, k: 2.5 * dense(h, k, labels, weights, smoothing), (0, 1)))
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-5), ours, definition(hidden, kernel))


def test_the_number_of_shards_does_not_matter():
    hidden, kernel, labels, weights = case()

    def loss(h, k, shards):
        return losses.cross_entropy(h, k, labels, weights, 0.1, shards=shards)[0]

    with on_accelerators():
        one, three, seven = (jax.value_and_grad(loss, (0, 1))(hidden, kernel, shards) for shards in (1, 3, 7))
    for other in (three, seven):
        jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6), one, other)
