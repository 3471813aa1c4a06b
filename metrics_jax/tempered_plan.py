"""Plans of finite temperature between the tokens of two texts, in JAX, and how similar what they pair is."""

import functools

import jax
import jax.numpy as jnp
from jax import Array

from metrics_jax.contextual import Side


@functools.partial(jax.jit, static_argnames=("relaxed", "num_iters", "pairwise"))
def similarity(
    x: Side, y: Side, *, temperature: float, relaxed: bool, num_iters: int, pairwise: bool
) -> tuple[Array, Array]:
    """-> float32[...] twice: the mean cosine under the plan whose sums over x, or over y, were made right last.

    Vectors are of length 1; 0 where a side has no weight. For B pairs of texts, or pairwise for all of H and R. Options
    as those of `TemperedWMD`.
    """
    if pairwise:
        x, y = Side(*(array[:, None] for array in x)), Side(*(array[None] for array in y))
    cosines = jnp.matmul(x.vectors, jnp.swapaxes(y.vectors, -1, -2), precision="highest")
    scale = functools.partial(_mean_cosine, temperature=temperature, relaxed=relaxed, num_iters=num_iters)
    matchable = (x.weights.sum(axis=-1) > 0) & (y.weights.sum(axis=-1) > 0)
    over_x = scale(cosines, x.weights, y.weights)
    over_y = scale(jnp.swapaxes(cosines, -1, -2), y.weights, x.weights)
    return jnp.where(matchable, over_x, 0), jnp.where(matchable, over_y, 0)


def _mean_cosine(cosines: Array, a: Array, b: Array, temperature: float, relaxed: bool, num_iters: int) -> Array:
    """Cosines [..., S, T], weights [..., S] and [..., T] -> [...], under the plan whose row sums are right."""
    a, b = (weights / weights.sum(axis=-1, keepdims=True) for weights in (a, b))
    log_a, log_b = jnp.log(a)[..., :, None], jnp.log(b)[..., None, :]
    logits = cosines / temperature
    f, g = jnp.where(log_a > -jnp.inf, 0, log_a), jnp.where(log_b > -jnp.inf, 0, log_b)
    for _ in range(0 if relaxed else num_iters):
        g = log_b - jax.nn.logsumexp(f + logits, axis=-2, keepdims=True)
        f = log_a - jax.nn.logsumexp(g + logits, axis=-1, keepdims=True)
    return (a * (jax.nn.softmax(g + logits, axis=-1) * cosines).sum(axis=-1)).sum(axis=-1)
