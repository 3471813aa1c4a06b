"""Cross-entropy and log-probabilities of sequences, computed in chunks, and the expected risk."""

import functools
import math

import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax import platforms
from nmt_jax.losses import vocabulary_chunks
from nmt_jax.models.layers.dense import matmul, product, transposed


def smoothed_cross_entropy(logits: Array, labels: Array, label_smoothing: float) -> Array:
    """-sum_v q(v) log p(v) with q = (1 - a) onehot + a / V (Szegedy et al., 2016, section 7).

    logits float[..., V], labels int[...], label_smoothing a in [0, 1) -> float32[...], in nats.
    """
    logits = logits.astype(jnp.float32)
    log_normalizer = jax.nn.logsumexp(logits, axis=-1)
    label_logit = jnp.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]
    return log_normalizer - (1 - label_smoothing) * label_logit - label_smoothing * jnp.mean(logits, axis=-1)


def cross_entropy(
    hidden: Array,
    kernel: Array,
    labels: Array,
    weights: Array,
    label_smoothing: float = 0.0,
    dtype: str = "float32",
    shards: int = 1,
) -> tuple[Array, Array]:
    """Label-smoothed cross-entropy of softmax(hidden kernel), in nats -> (sum, weight), float32 scalars.

    hidden float[B, T, D], kernel float[D, V], labels int[B, T], weights float[B, T]. shards: number of devices over
    which B is divided. The B*T*V logits are never held all at once: a scan computes the loss and its gradient together,
    by chunks of T or by parts of the vocabulary.
    """
    if platforms.current().loss_parts == "vocabulary":
        shards = math.gcd(shards, len(labels))
        h, y, w = (x.reshape(shards, -1, *x.shape[2:]) for x in (hidden, labels, weights))
        return vocabulary_chunks.loss_sum(h, kernel.T, y, w, label_smoothing, dtype), jnp.sum(weights)
    chunk = functools.partial(_chunks, num_chunks=_num_chunks(labels.shape, kernel.shape[1]))
    total = _chunked_sum(chunk(hidden), kernel, chunk(labels), chunk(weights), label_smoothing, dtype)
    return total, jnp.sum(weights)


def sequence_log_probs(hidden: Array, kernel: Array, labels: Array, weights: Array, dtype: str = "float32") -> Array:
    """log p(labels) of each row under softmax(hidden kernel), in nats -> float32[B].

    hidden float[B, T, D], kernel float[D, V], labels int[B, T], weights float[B, T], 0 for padding. The backward pass
    recomputes the logits chunk by chunk.
    """
    chunk = functools.partial(_chunks, num_chunks=_num_chunks(labels.shape, kernel.shape[1]))
    kernel = kernel.astype(jnp.float32)  # so are the sums of its gradients over the chunks

    @jax.checkpoint
    def add(total: Array, chunk: tuple[Array, Array, Array]) -> tuple[Array, None]:
        h, y, w = chunk
        return total - jnp.sum(w * smoothed_cross_entropy(matmul(h, kernel, dtype), y, 0.0), axis=1), None

    start = jnp.zeros(len(labels), jnp.float32)
    return jax.lax.scan(add, start, (chunk(hidden), chunk(labels), chunk(weights)))[0]


def minimum_risk(
    log_probs: Array, risks: Array, distinct: Array, weights: Array, sharpness: float
) -> tuple[Array, Array]:
    """The expected risk sum_y Q(y) risk(y) over the candidates of each line -> (weighted sum, weight), float32 scalars.

    Q(y) = p(y)^a / sum_y' p(y')^a over the distinct candidates, a = sharpness > 0 (Shen et al., 2016, eq. 8 to 10).
    log_probs, risks float[B, N] of the candidates; risks are constants in the gradient. distinct bool[B, N]: False for
    repetitions of an earlier candidate. weights float[B].
    """
    q = jax.nn.softmax(jnp.where(distinct, sharpness * log_probs.astype(jnp.float32), -jnp.inf), axis=-1)
    expected = jnp.sum(q * jax.lax.stop_gradient(risks), axis=-1)
    return jnp.sum(weights * expected), jnp.sum(weights)


def _num_chunks(shape: tuple[int, ...], vocab_size: int) -> int:
    """Number of chunks of T that holds at most `Platform.logits_per_chunk` logits.

    Of that number up to twice as many, the one with the least padding.
    """
    batch_size, length = shape
    logits = batch_size * length * vocab_size
    least = min(length, -(-logits // platforms.current().logits_per_chunk))
    return min(range(least, min(length, 2 * least) + 1), key=lambda count: (-length % count, count))


def _chunks(x: Array, num_chunks: int) -> Array:
    """x [B, T, ...] -> [C, B, T / C, ...], padded with zeros; rows of B stay on their device."""
    x = jnp.pad(x, ((0, 0), (0, -x.shape[1] % num_chunks)) + ((0, 0),) * (x.ndim - 2))
    return x.reshape(x.shape[0], num_chunks, -1, *x.shape[2:]).swapaxes(0, 1)


@functools.partial(jax.custom_vjp, nondiff_argnums=(4, 5))
def _chunked_sum(
    hidden: Array, kernel: Array, labels: Array, weights: Array, label_smoothing: float, dtype: str
) -> Array:
    def add(total: Array, chunk: tuple[Array, Array, Array]) -> tuple[Array, None]:
        h, y, w = chunk
        logits = matmul(h, kernel, dtype)
        return total + jnp.sum(w * smoothed_cross_entropy(logits, y, label_smoothing)), None

    return jax.lax.scan(add, jnp.float32(0), (hidden, labels, weights))[0]


def _chunked_forward(
    hidden: Array, kernel: Array, labels: Array, weights: Array, label_smoothing: float, dtype: str
) -> tuple[Array, tuple[Array, Array, Array]]:
    vocab_size = kernel.shape[1]
    kernel = kernel.astype(dtype)
    kernel_t = transposed(kernel, dtype)

    def add(carry: tuple[Array, Array], chunk: tuple[Array, Array, Array]) -> tuple[tuple[Array, Array], Array]:
        total, d_kernel = carry
        h, y, w = chunk
        rows = h.reshape(-1, h.shape[-1])
        y, w = y.reshape(-1, 1), w.reshape(-1, 1)
        logits = product(rows, kernel, dtype)
        top = jnp.max(logits, axis=-1, keepdims=True)
        exponentials = jnp.exp(logits - top)
        normalizer = jnp.sum(exponentials, axis=-1, keepdims=True)
        label_logit = jnp.take_along_axis(logits, y, axis=-1)
        mean_logit = jnp.mean(logits, axis=-1, keepdims=True) if label_smoothing else 0.0
        loss = top + jnp.log(normalizer) - (1 - label_smoothing) * label_logit - label_smoothing * mean_logit
        # d loss / d logits = softmax - q, where q is the smoothed label
        onehot = (jnp.arange(vocab_size)[None, :] == y).astype(jnp.float32)
        d_logits = exponentials * (w / normalizer) - w * ((1 - label_smoothing) * onehot + label_smoothing / vocab_size)
        d_hidden = product(d_logits, kernel_t, dtype).reshape(h.shape).astype(h.dtype)
        return (total + jnp.sum(w * loss), d_kernel + product(transposed(rows, dtype), d_logits, dtype)), d_hidden

    start = (jnp.float32(0), jnp.zeros(kernel.shape, jnp.float32))
    (total, d_kernel), d_hidden = jax.lax.scan(add, start, (hidden, labels, weights))
    return total, (d_hidden, d_kernel, weights)


def _chunked_backward(
    label_smoothing: float, dtype: str, saved: tuple[Array, Array, Array], gradient: Array
) -> tuple[Array, Array, None, Array]:
    d_hidden, d_kernel, weights = saved
    return (gradient * d_hidden).astype(d_hidden.dtype), gradient * d_kernel, None, jnp.zeros_like(weights)


_chunked_sum.defvjp(_chunked_forward, _chunked_backward)
