"""Sinkhorn's algorithm for entropic optimal transport in JAX: batched, differentiable, with a bound on its error."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from metrics_jax.embedding.exact_transport import Solution

_ANNEALED = 0.5  # the share of the iterations over which epsilon decreases from 1 to its value


@functools.partial(jax.jit, static_argnames=("num_iters", "rounded"))
def sinkhorn(
    a: Array | np.ndarray,
    b: Array | np.ndarray,
    cost: Array | np.ndarray,
    *,
    epsilon: float = 0.005,
    num_iters: int = 200,
    relaxation: float = 1.8,
    rounded: bool = True,
) -> Solution:
    """Approximately optimal plans for weights float[..., n], float[..., m] and costs float[..., n, m].

    The problem is defined in `exact_transport`. The computation is in float32, or in float64 if JAX has it enabled and
    the costs are float64.

    epsilon: the weight of the plan's entropy (Cuturi, 2013), relative to the cost of the independent plan a b^T. It
    decreases from 1 to this value over the first half of `num_iters` iterations, in the log domain. relaxation: the
    over-relaxation factor of the second half, in [1, 2); 1 turns it off, and some problems diverge from 1.9 on
    (Thibault et al., 2021). rounded: round the plan so that its sums are exactly the weights (Altschuler et al., 2017,
    algorithm 2); otherwise, the plan is the entropic one.

    The `value` of a rounded plan is at least the optimal cost, up to rounding of floats, and `lower` is at most the
    optimal cost: the value of a feasible dual minus a bound on the rounding errors. So `gap` bounds the true error,
    converged or not. Everything is differentiable as computed, except `lower`.

    With the defaults, on 965 pairs of WMT21 of up to 32 words, the error relative to the cost of the independent plan
    is 0.0003 on average and 0.008 at most; without relaxation 0.0028 and 0.019. With 1000 iterations it is 0.0001 and
    0.0012.
    """
    dtype = jnp.promote_types(jnp.result_type(cost), jnp.float32)
    a, b, cost = (jnp.asarray(array, dtype) for array in (a, b, cost))
    real = (a > 0)[..., :, None] & (b > 0)[..., None, :]
    solvable = real.any(axis=(-2, -1))
    a, b = _shares(a, solvable), _shares(b, solvable)
    cost = jnp.where(real, cost, 0)
    scale = jnp.einsum("...n,...nm,...m->...", a, jnp.abs(cost), b)
    scale = jnp.where(solvable & (scale > 0), scale, 1)
    cost = cost / scale[..., None, None]

    steps = jnp.arange(num_iters)
    annealing = steps < _ANNEALED * num_iters
    epsilons = jnp.maximum(epsilon, epsilon ** (steps / (_ANNEALED * num_iters))).astype(dtype)
    # The last iteration is not relaxed, so that the row sums of the plan are exactly a.
    relaxations = jnp.where(annealing | (steps == num_iters - 1), 1, relaxation).astype(dtype)
    log_a, log_b = _log(a)[..., :, None], _log(b)[..., None, :]

    def iterate(potentials: tuple[Array, Array], step: tuple[Array, Array]) -> tuple[tuple[Array, Array], None]:
        f, g = potentials
        eps, omega = step
        g += omega * (-eps * jax.nn.logsumexp(log_a + (f[..., :, None] - cost) / eps, axis=-2) - g)
        f += omega * (-eps * jax.nn.logsumexp(log_b + (g[..., None, :] - cost) / eps, axis=-1) - f)
        return (f, g), None

    (f, g), _ = jax.lax.scan(iterate, (jnp.zeros_like(a), jnp.zeros_like(b)), (epsilons, relaxations))
    plan = jnp.exp(log_a + log_b + (f[..., :, None] + g[..., None, :] - cost) / epsilons[-1])
    if rounded:
        plan = _rounded(plan, a, b)
    plan = jnp.where(solvable[..., None, None], plan, 0)
    value = (plan * cost).sum(axis=-1).sum(axis=-1)
    lower = jnp.where(solvable, _lower_bound(a, b, cost, g, real), 0)
    return Solution(plan, value * scale, lower * scale)


def _shares(weights: Array, solvable: Array) -> Array:
    """Weights scaled to sum to 1; arbitrary ones if the problem has no weight."""
    weights = jnp.where(solvable[..., None], weights, 1)
    return weights / weights.sum(axis=-1, keepdims=True)


def _log(weights: Array) -> Array:
    """The logarithm, with value -inf and gradient 0 at 0."""
    return jnp.where(weights > 0, jnp.log(jnp.where(weights > 0, weights, 1)), -jnp.inf)


def _rounded(plan: Array, a: Array, b: Array) -> Array:
    """Scales rows and columns down to their weights, and adds the missing weight as an independent plan."""
    plan = plan * _at_most_one(a, plan.sum(axis=-1))[..., :, None]
    plan = plan * _at_most_one(b, plan.sum(axis=-2))[..., None, :]
    missing_a, missing_b = jnp.maximum(a - plan.sum(axis=-1), 0), jnp.maximum(b - plan.sum(axis=-2), 0)
    missing = missing_a.sum(axis=-1)[..., None, None]
    share = missing_a[..., :, None] * missing_b[..., None, :]
    return plan + jnp.where(missing > 0, share / jnp.where(missing > 0, missing, 1), 0)


def _at_most_one(target: Array, total: Array) -> Array:
    """The factor by which `total` must be scaled down to `target`; 1 if it is not larger."""
    return jnp.where(total > target, target / jnp.where(total > target, total, 1), 1)


def _lower_bound(a: Array, b: Array, cost: Array, g: Array, real: Array) -> Array:
    """A lower bound float[...] of the cost: the dual value of feasible potentials minus a bound on rounding errors."""
    a, b, cost, g = map(jax.lax.stop_gradient, (a, b, cost, g))
    costs = jnp.where(real, cost, jnp.inf)
    f = jnp.where(a > 0, (costs - g[..., None, :]).min(axis=-1), 0)  # the c-transforms: f + g <= cost,
    g = jnp.where(b > 0, (costs - f[..., :, None]).min(axis=-2), 0)  # and neither can be raised
    # A sum of n terms is off by up to n units in the last place of the largest term. This holds for the weights of both
    # sides, for the sums and the cost of the plan, and for this dual.
    size = (a > 0).sum(axis=-1) + (b > 0).sum(axis=-1)
    largest = jnp.abs(cost).max(axis=(-2, -1)) + jnp.abs(f).max(axis=-1) + jnp.abs(g).max(axis=-1)
    rounding = 4 * jnp.finfo(cost.dtype).eps * size * largest
    return (a * f).sum(axis=-1) + (b * g).sum(axis=-1) - rounding
