"""The model of fast_align (Dyer et al., 2013): IBM model 2 whose prior prefers positions near the diagonal."""

import dataclasses
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from nmt_jax.alignment.ibm1 import Expectations, Lexical, independent

TENSION = 4.0  # that of fast_align, as is the range for fitting it
TENSION_LOW, TENSION_HIGH = 0.1, 14.0


class Slope(NamedTuple):
    """Derivatives of the expected log-likelihood with respect to the tension: the first, and minus the second."""

    gradient: Array
    curvature: Array


@dataclasses.dataclass(frozen=True)
class Diagonal:
    """p(a_j = NULL) = null_probability; p(a_j = i) is proportional to exp(-tension |i / S - j / T|).

    The parameter is the tension, float32[]. fit_tension: whether training changes it.
    """

    null_probability: float = 0.08
    fit_tension: bool = False

    def initial(self, longest: int) -> Array:
        """Returns the tension before training."""
        return jnp.float32(TENSION)

    def expectations(self, parameters: Array, lexical: Lexical) -> Expectations:
        """Returns the posteriors of a batch (Dyer et al., 2013, section 2)."""
        feature = distance_from_diagonal(lexical)  # [B, T, S]
        weight = jnp.where(lexical.source[:, None, :], jnp.exp(parameters * feature), 0.0)
        prior = weight / weight.sum(-1, keepdims=True).clip(1e-30)
        found = independent(lexical.words * (1.0 - self.null_probability) * prior, lexical.null * self.null_probability)
        # The derivative of the log-likelihood is the posterior's expectation of the feature minus the prior's.
        not_null = found.links.sum(-1)  # [B, T]
        mean = (prior * feature).sum(-1)
        variance = (prior * feature**2).sum(-1) - mean**2
        gradient = (found.links * feature).sum() - (not_null * mean).sum()
        return found._replace(statistics=Slope(gradient, (not_null * variance).sum()))

    def update(self, parameters: Array, statistics: Slope) -> Array:
        """Returns the tension; if fitted, after one step of Newton's method (fast_align: eight gradient steps)."""
        if not self.fit_tension:
            return parameters
        step = statistics.gradient / jnp.maximum(statistics.curvature, 1e-6)
        return jnp.clip(parameters + step, TENSION_LOW, TENSION_HIGH)


def distance_from_diagonal(lexical: Lexical) -> Array:
    """Returns h(i, j) = -|i / S - j / T|, float32[B, T, S], where positions count from 1."""

    def relative(mask: Array) -> Array:
        return jnp.arange(1, mask.shape[-1] + 1)[None, :] / jnp.maximum(mask.sum(-1, keepdims=True), 1)

    return -jnp.abs(relative(lexical.source)[:, None, :] - relative(lexical.target)[:, :, None])
