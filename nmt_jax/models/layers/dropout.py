"""Dropout of units, of the same units at every step, and of words."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nmt_jax import platforms


def dropout(x: Array, rate: float, key: Array) -> Array:
    """Set units of x float[..., D] to zero with probability `rate`, and scale up the others by 1 / (1 - rate).

    The mask is the same on any number of devices. On CPUs the rate is rounded to a multiple of 1/256 below 1.
    """
    if platforms.current().dropout == "hash":
        return _hashed_dropout(x, jax.random.key_data(key), rate)
    # One random byte per unit: a quarter of the random bits of a Bernoulli draw, the main cost of dropout on a CPU.
    keep = max(round(256 * (1 - rate)), 1)
    if keep == 256:  # no byte is as large
        return x
    words = jax.random.bits(key, (*x.shape[:-1], -(-x.shape[-1] // 4)), jnp.uint32)
    units = jax.lax.bitcast_convert_type(words, jnp.uint8).reshape(*x.shape[:-1], -1)[..., : x.shape[-1]]
    return jnp.where(units < keep, x * (256 / keep), 0.0)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def _hashed_dropout(x: Array, key: Array, rate: float) -> Array:
    """Dropout by a mask that is computed where it is used, also in the backward pass: no random bits are in memory.

    A unit is kept if the hash of its position and of key uint32[2] is below a threshold. Every device computes the part
    of the mask that it needs.
    """
    kept = hash_positions(x.shape, key) < np.uint32(min(round((1.0 - rate) * 2**32), 2**32 - 1))
    return jnp.where(kept, x * (1.0 / (1.0 - rate)), 0.0).astype(x.dtype)


def _hashed_dropout_forward(x: Array, key: Array, rate: float) -> tuple[Array, Array]:
    return _hashed_dropout(x, key, rate), key


def _hashed_dropout_backward(rate: float, key: Array, gradient: Array) -> tuple[Array, None]:
    # Without the barrier XLA keeps the mask of the forward pass in memory.
    return _hashed_dropout(gradient, jax.lax.optimization_barrier(key), rate), None


_hashed_dropout.defvjp(_hashed_dropout_forward, _hashed_dropout_backward)


def hash_positions(shape: tuple[int, ...], key: Array) -> Array:
    """A pseudo-random number, uint32, for every position of an array of `shape`, from key uint32[2].

    Positions are counted modulo 2^32: larger arrays repeat their numbers. The mixing function is `lowbias32` (Wellons,
    2018, "Prospecting for hash functions"), with half of the mixed key before each of its two multiplications.
    """
    # The numbers of rows are counted apart from those of columns, so that a unit takes no multiplication.
    row = jnp.zeros((*shape[:-1], 1), jnp.uint32)
    for axis, size in enumerate(shape[:-1]):
        row = row * np.uint32(size) + jax.lax.broadcasted_iota(jnp.uint32, row.shape, axis)
    column = jax.lax.broadcasted_iota(jnp.uint32, shape, len(shape) - 1)
    first = _mix(key[0] ^ _mix(key[1], 0), 0)  # so that keys that differ in a few bits have nothing in common
    x = jnp.broadcast_to(row * np.uint32(shape[-1]), shape) + column
    return _mix(x ^ jnp.broadcast_to(first, shape), _mix(key[1] ^ first, 0))


def _mix(x: Array, key: Array | int) -> Array:
    """A bijection of uint32 in which every bit of the result depends on all bits of x."""
    x = (x ^ (x >> 16)) * np.uint32(0x7FEB352D)
    x = x ^ jnp.broadcast_to(jnp.uint32(key), x.shape)
    x = (x ^ (x >> 15)) * np.uint32(0x846CA68B)
    return x ^ (x >> 16)


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def dropped_relu(x: Array, rate: float, key: Array) -> Array:
    """`dropout` of max(x, 0); the backward pass reads only the result: units of 0 have no gradient for both reasons."""
    return dropout(nn.relu(x), rate, key)


def _dropped_relu_forward(x: Array, rate: float, key: Array) -> tuple[Array, Array]:
    y = dropped_relu(x, rate, key)
    return y, y


def _dropped_relu_backward(rate: float, y: Array, gradient: Array) -> tuple[Array, None]:
    return jnp.where(y > 0, gradient * (1.0 / (1.0 - rate)), 0).astype(y.dtype), None


dropped_relu.defvjp(_dropped_relu_forward, _dropped_relu_backward)


class Dropout(nn.Module):
    """`dropout` with the module's own random stream; the identity outside training or if the rate is 0."""

    rate: float

    @nn.compact
    def __call__(self, x: Array, train: bool) -> Array:
        """x float[..., D] -> float[..., D]."""
        key = self.key(train)
        return x if key is None else dropout(x, self.rate, key)

    def key(self, train: bool) -> Array | None:
        """A random key for one mask; None if nothing is dropped."""
        return self.make_rng("dropout") if train and self.rate else None


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


class WordDropout(nn.Module):
    """Dropout of whole words: all vectors of a dropped word in a row become zero (Gal and Ghahramani, 2016, sec. 4.2).

    The others are scaled up by 1 / (1 - rate).
    """

    rate: float
    vocab_size: int

    @nn.compact
    def __call__(self, x: Array, words: Array, train: bool) -> Array:
        """x float[B, T, D], the vectors of words int[B, T] -> float[B, T, D]."""
        if not (train and self.rate):
            return x
        kept = dropout(jnp.ones((words.shape[0], self.vocab_size)), self.rate, self.make_rng("dropout"))
        return x * jnp.take_along_axis(kept, words, axis=1)[..., None]
