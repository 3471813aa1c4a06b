"""Dropout (Srivastava et al., 2014), of units and of whole sequences."""

import flax.linen as nn
import jax
import jax.numpy as jnp

from nmt_jax import platforms

Array = jax.Array


def dropout(x: Array, rate: float, key: Array) -> Array:
    """Set units of x float[..., D] to zero with probability `rate`, and scale up the others by 1 / (1 - rate).

    The mask is the same on any number of devices. On CPUs the rate is rounded to a multiple of 1/256.
    """
    return IMPLEMENTATIONS[platforms.current().dropout](x, rate, key)


def _bernoulli(x: Array, rate: float, key: Array) -> Array:
    return jnp.where(jax.random.bernoulli(key, 1.0 - rate, x.shape), x / (1.0 - rate), 0.0)


def _bytes(x: Array, rate: float, key: Array) -> Array:
    """One random byte per unit: a quarter of the random bits of a Bernoulli draw, the main cost of dropout on a CPU."""
    keep = round(256 * (1 - rate))
    words = jax.random.bits(key, (*x.shape[:-1], -(-x.shape[-1] // 4)), jnp.uint32)
    units = jax.lax.bitcast_convert_type(words, jnp.uint8).reshape(*x.shape[:-1], -1)[..., : x.shape[-1]]
    return jnp.where(units < keep, x * (256 / keep), 0.0)


IMPLEMENTATIONS = {"bernoulli": _bernoulli, "bytes": _bytes}  # by `Platform.dropout`


class Dropout(nn.Module):
    """`dropout` with the module's own random stream; the identity outside training or if the rate is 0."""

    rate: float

    @nn.compact
    def __call__(self, x: Array, train: bool) -> Array:
        """x float[..., D] -> float[..., D]."""
        if not train or self.rate == 0.0:
            return x
        return dropout(x, self.rate, self.make_rng("dropout"))


class SequenceDropout(nn.Module):
    """Dropout on float[..., T, D], with a new mask at every step or, if `variational`, one mask for all T steps.

    Variational dropout: Gal and Ghahramani (2016).
    """

    rate: float
    variational: bool

    @nn.compact
    def __call__(self, x: Array, train: bool) -> Array:
        """x float[..., T, D] -> float[..., T, D]."""
        if not self.variational:
            return Dropout(self.rate)(x, train)
        return x * Dropout(self.rate)(jnp.ones((*x.shape[:-2], 1, x.shape[-1])), train)
