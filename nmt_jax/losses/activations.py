"""Penalties on the outputs of a recurrent network (Merity et al., 2018, section 4.6)."""

import jax
import jax.numpy as jnp


def activation_penalty(outputs: jax.Array, weights: jax.Array) -> jax.Array:
    """Return the sum over tokens of the mean squared output.

    outputs float[B, T, H] after dropout, weights float[B, T] of the tokens.
    """
    return jnp.sum(jnp.mean(jnp.square(outputs), axis=-1) * weights)


def temporal_penalty(outputs: jax.Array, weights: jax.Array) -> jax.Array:
    """Return the sum over tokens of the mean squared difference to the output of the next token in the row.

    Arguments as for `activation_penalty`, but outputs without dropout.
    """
    change = jnp.mean(jnp.square(outputs[:, 1:] - outputs[:, :-1]), axis=-1)
    return jnp.sum(change * weights[:, 1:])
