"""Transport plans of finite temperature between the tokens of two texts, in JAX, and their mean similarity."""

import functools

import jax
import jax.numpy as jnp
from jax import Array

from metrics_jax.embedding.token_batches import Side


@functools.partial(jax.jit, static_argnames=("relaxed", "pairwise"))
def similarity(
    x: Side, y: Side, *, temperature: float, relaxed: bool, num_iters: int, pairwise: bool
) -> tuple[Array, Array]:
    """Two mean cosines float32[...]: under the plan normalized last over x, and under the one normalized last over y.

    Vectors must have length 1; the result is 0 if a side has no weight. x and y are B pairs of texts, or with
    `pairwise` H and R texts. Options as for `TemperedWMD`.
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
    """The mean of cosines [..., S, T] under the plan whose row sums are exact; a [..., S], b [..., T]: weights."""
    a, b = (weights / weights.sum(axis=-1, keepdims=True) for weights in (a, b))
    log_a = jnp.broadcast_to(jnp.log(a)[..., :, None], (*cosines.shape[:-1], 1))
    log_b = jnp.broadcast_to(jnp.log(b)[..., None, :], (*cosines.shape[:-2], 1, cosines.shape[-1]))
    logits = cosines / temperature
    f, g = jnp.where(log_a > -jnp.inf, 0, log_a), jnp.where(log_b > -jnp.inf, 0, log_b)

    def iterate(_: int, potentials: tuple[Array, Array]) -> tuple[Array, Array]:
        f = potentials[0]
        g = log_b - jax.nn.logsumexp(f + logits, axis=-2, keepdims=True)
        return log_a - jax.nn.logsumexp(g + logits, axis=-1, keepdims=True), g

    if not relaxed:
        f, g = jax.lax.fori_loop(0, num_iters, iterate, (f, g))
    return (a * (jax.nn.softmax(g + logits, axis=-1) * cosines).sum(axis=-1)).sum(axis=-1)
