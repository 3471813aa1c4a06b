"""The interface of encoders with pretrained weights: embeddings, then layers that are applied one after the other."""

from typing import Any

import flax.linen as nn
import jax.numpy as jnp
from jax import Array


class EncoderStack(nn.Module):
    """A stack of layers over embeddings: `Bert` and the encoders of other families.

    Subclasses have the fields vocab_size, num_layers, d_model, num_heads, max_positions, activation, epsilon and dtype,
    and in `setup` set `layers` to the modules of all layers, `layer(0)` and so on. Their parameters are named by
    `layer_name`; all other parameters belong to `begin`. Flax does not wrap `layer`: outside `setup`, it makes a module
    without a parent.
    """

    def begin(self, ids: Array, mask: Array) -> tuple[Array, tuple[Any, ...]]:
        """Ids int[B, S], mask bool[B, S] -> embeddings float[B, S, D], and the other arguments of every layer."""
        raise NotImplementedError

    @nn.nowrap
    def layer(self, number: int) -> nn.Module:
        """The layer `number`, from 0; called with its input and what `begin` returned, it returns (x, weights)."""
        raise NotImplementedError

    def layer_name(self, number: int) -> str:
        """The name of a layer in the parameters."""
        return f"layers_{number}"

    def last(self, ids: Array, mask: Array) -> Array:
        """Ids int[B, S], mask bool[B, S] -> the states of the last layer, float[B, S, D]."""
        x, context = self.begin(ids, mask)
        for layer in self.layers:
            x, _ = layer(x, *context)
        return x

    def __call__(
        self, ids: Array, mask: Array, segments: Array | None = None, train: bool = False
    ) -> tuple[Array, dict[str, Any]]:
        """Ids int[B, S], mask bool[B, S] (False: padding) -> hidden float[L+1, B, S, D], the embeddings first.

        Intermediates: `attention`, L weights float[B, H, S, S]. States at padding are meaningless. These encoders have
        no segments and no dropout: `segments` and `train` are those of `Bert`.
        """
        x, context = self.begin(ids, mask)
        hidden, attention = [x], []
        for layer in self.layers:
            x, weights = layer(x, *context)
            hidden.append(x)
            attention.append(weights)
        return jnp.stack(hidden), {"attention": tuple(attention)}
