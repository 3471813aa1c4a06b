"""Compiled programs of an encoder with a head, and of a small module beside it."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from nmt_jax.models.layers.encoder_stack import EncoderStack
from nmt_jax.pretrained.bert_encoder import hidden_states
from nmt_jax.pretrained.reproducibility import exact_products


@functools.cache
def with_head(encoder: EncoderStack, head: nn.Module) -> Callable[..., Iterator[jax.Array]]:
    """A generator of what a head computes from the states of an encoder; the same function for equal models.

    One layer is compiled for each shape, and then the head.
    """
    states, compiled = hidden_states(encoder), compiled_module(head)

    def outputs(params: dict[str, Any], ids: jax.Array, mask: jax.Array) -> Iterator[jax.Array]:
        yield compiled(params["head"], [*states(params["encoder"], ids, mask)], mask)

    return outputs


@functools.cache
def compiled_module(module: nn.Module) -> Callable[..., jax.Array]:
    """The compiled function of a module with products in float32; the same function for equal modules."""

    @jax.jit
    def apply(params: dict[str, Any], *inputs: Any) -> jax.Array:
        with exact_products("float32"):
            return jnp.asarray(module.apply({"params": params}, *inputs))

    return apply
