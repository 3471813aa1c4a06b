"""Losses over a sample of the vocabulary: negative sampling, and the sampled softmax."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nmt_jax import platforms
from nmt_jax.models.layers.dense import matmul


class Alias(NamedTuple):
    """A distribution over 0 .. V-1 sampled with two table lookups (Walker, 1977; tables after Vose, 1991).

    keep float32[V], other int32[V]: a uniform draw v stays v with probability keep[v], and else becomes other[v].
    """

    keep: np.ndarray
    other: np.ndarray

    @classmethod
    def of(cls, weights: np.ndarray) -> "Alias":
        """The tables of p(v) proportional to weights[v] >= 0, float[V], at least one of them positive."""
        share = np.asarray(weights, np.float64) * len(weights) / np.sum(weights)
        keep, other = share.copy(), np.arange(len(share), dtype=np.int32)
        # Zero weights come last and are taken first, so that rounding cannot affect them.
        order = np.argsort(-share, kind="stable")
        small, large = [v for v in order if share[v] < 1], [v for v in order if share[v] >= 1]
        while small and large:
            poor, rich = small.pop(), large[-1]
            other[poor] = rich
            keep[rich] -= 1 - keep[poor]
            if keep[rich] < 1:
                small.append(large.pop())
        keep[small + large] = 1.0
        return cls(keep.astype(np.float32), other)

    def draw(self, rng: Array, shape: tuple[int, ...]) -> Array:
        """Draw int32[shape]; a pure function."""
        column, coin = jax.random.split(rng)
        drawn = jax.random.randint(column, shape, 0, len(self.keep))
        stays = jax.random.uniform(coin, shape) < jnp.asarray(self.keep)[drawn]
        return jnp.where(stays, drawn, jnp.asarray(self.other)[drawn])


@jax.custom_jvp
def log_sigmoid(x: Array) -> Array:
    """log(1 / (1 + exp(-x))) with its gradient by tanh: on CPUs a third of the time of jax.nn.log_sigmoid."""
    return jnp.minimum(x, 0.0) - jnp.log(1.0 + jnp.exp(-jnp.abs(x)))


log_sigmoid.defjvps(lambda tangent, _, x: tangent * (0.5 - 0.5 * jnp.tanh(0.5 * x)))


def negative_sampling(scores: Array, pairs: Array, num_negatives: int) -> Array:
    """-sum over pairs of (log sigmoid(s) + k * mean over negatives of log sigmoid(-s)), in nats; a scalar.

    scores float[B, T, P + K]: of the P pairs of each word, weighted by `pairs` float[B, T, P], and of K negatives
    shared by all pairs. Mikolov et al. (2013b), section 2.2, eq. 4, with k = num_negatives times the mean over K draws
    in place of k draws per pair: with shared negatives the scores are matrix products (Ji et al., 2016, section 3).
    """
    count = scores.shape[-1] - pairs.shape[-1]
    each = num_negatives / count * jnp.sum(pairs, axis=-1, keepdims=True)
    weights = jnp.concatenate([pairs, jnp.broadcast_to(each, (*pairs.shape[:-1], count))], axis=-1)
    signs = np.repeat(np.array([1, -1], np.float32), [pairs.shape[-1], count])
    log = jax.nn.log_sigmoid if platforms.current().log_sigmoid == "jax" else log_sigmoid
    return -jnp.sum(weights * log(scores * signs[None, None, :]))


def log_uniform(rng: Array, count: int, vocab_size: int) -> Array:
    """Draw words int32[count] from an approximate Zipf distribution; the vocabulary is sorted by falling frequency."""
    drawn = jnp.exp(jax.random.uniform(rng, (count,)) * jnp.log(vocab_size + 1.0)) - 1.0
    return jnp.minimum(drawn.astype(jnp.int32), vocab_size - 1)


def log_uniform_probability(words: Array, vocab_size: int) -> Array:
    """log Q(v) of words int[...] under `log_uniform`: Q(v) = log((v + 2) / (v + 1)) / log(V + 1)."""
    words = words.astype(jnp.float32)
    return jnp.log(jnp.log1p(1.0 / (words + 1.0)) / jnp.log(vocab_size + 1.0))


def sampled_cross_entropy(
    hidden: Array,
    kernel: Array,
    labels: Array,
    weights: Array,
    samples: Array,
    log_proposal: tuple[Array, Array],
    dtype: str = "float32",
) -> tuple[Array, Array]:
    """Cross-entropy of a softmax over the label and K samples -> (sum in nats, weight), float32 scalars.

    hidden float[B, T, D], kernel float[D, V], labels int[B, T], weights float[B, T]; samples int[K], shared by all
    rows, drawn from a proposal Q; log_proposal: log Q of the labels, float[B, T], and of the samples, float[K]. log Q
    is subtracted from each logit (Jean et al., 2015, eq. 8 to 10); samples equal to the label are left out.
    """
    log_q_label, log_q_samples = log_proposal
    right = jnp.einsum("btd,btd->bt", hidden, kernel.T[labels]) - log_q_label
    wrong = matmul(hidden, kernel[:, samples], dtype) - log_q_samples[None, None]
    wrong = jnp.where(samples[None, None] == labels[..., None], -jnp.inf, wrong)
    both = jnp.concatenate([right[..., None], wrong], axis=-1)
    return jnp.sum((jax.nn.logsumexp(both, axis=-1) - right) * weights), jnp.sum(weights)
