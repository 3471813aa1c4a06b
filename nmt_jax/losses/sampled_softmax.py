"""The softmax over a sample of a large vocabulary (Bengio and Senécal, 2008; Jean et al., 2015)."""

import jax
import jax.numpy as jnp

from nmt_jax.models.layers.dense import matmul

Array = jax.Array


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
