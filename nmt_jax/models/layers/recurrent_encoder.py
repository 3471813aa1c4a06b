"""Recurrent encoders: layers of cells, in one direction or both, optionally with residual connections."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax.models.layers.cells import CELLS, State
from nmt_jax.models.layers.dropout import SequenceDropout
from nmt_jax.models.layers.lstmn import LSTMN
from nmt_jax.models.layers.recurrent import Cell
from nmt_jax.models.layers.subsampling import join_neighbours


class Encoder(nn.Module):
    """Stacked recurrent layers, in one direction or in both (Schuster and Paliwal, 1997).

    cell: one of ALL_CELLS in `lstmn`. d_hidden: width of a layer's output, half of it from each direction if
    `bidirectional`. residual: a layer's output is added to its input where both have the same width (Wu et al., 2016).
    variational_dropout: one mask for all steps of a sequence (Gal and Ghahramani, 2016). pyramid_layers: number of last
    layers that read two neighbouring outputs of the layer below at each step (Chan et al., 2016, section 3.1).
    """

    cell: str
    num_layers: int
    d_hidden: int
    bidirectional: bool = True
    residual: bool = False
    dropout: float = 0.0
    variational_dropout: bool = False
    pyramid_layers: int = 0
    dtype: str = "float32"

    def setup(self) -> None:
        width = self.d_hidden // 2 if self.bidirectional else self.d_hidden
        directions = range(1 + self.bidirectional)
        make = LSTMN if self.cell == "lstmn" else functools.partial(Cell, self.cell)
        self.layers = [[make(width, self.dtype) for _ in directions] for _ in range(self.num_layers)]
        self.drop = SequenceDropout(self.dropout, self.variational_dropout)

    def __call__(self, x: Array, mask: Array, train: bool) -> tuple[Array, tuple[State, ...]]:
        """x float[B, S, D], mask bool[B, S] -> float[B, S, H], and the last state of each layer, float[B, H] each.

        The mask of the output is mask[:, ::2 ** pyramid_layers].
        """
        last = []
        for number, cells in enumerate(self.layers):
            if number >= self.num_layers - self.pyramid_layers:
                x, mask = join_neighbours(x, mask), mask[:, ::2]
            dropped = self.drop(x, train)
            runs = [cell.run(dropped, mask, reverse=bool(backwards)) for backwards, cell in enumerate(cells)]
            y = jnp.concatenate([outputs for outputs, _ in runs], axis=-1)
            x = x + y if self.residual and x.shape == y.shape else y
            last.append(jax.tree.map(lambda *ends: jnp.concatenate(ends, axis=-1), *(state for _, state in runs)))
        return x, tuple(last)


class Unordered(nn.Module):
    """Passes on vectors without order, such as the cells of an image; the last state of each layer is their mean.

    The decoder attends to the vectors directly (Xu et al., 2015, section 3.1).
    """

    cell: str
    num_layers: int

    def __call__(self, x: Array, mask: Array, train: bool) -> tuple[Array, tuple[State, ...]]:
        """x float[B, S, H], mask bool[B, S] -> x in float32, and the last state of each layer, float[B, H] each."""
        x = x.astype(jnp.float32)
        vectors = CELLS["lstm" if self.cell == "lstmn" else self.cell].num_vectors
        return x, ((masked_mean(x, mask),) * vectors,) * self.num_layers


def masked_mean(states: Array, mask: Array) -> Array:
    """The mean of the states float[..., S, D] whose place is in the mask bool[..., S], float[..., D]."""
    return (states * mask[..., None]).sum(axis=-2) / jnp.maximum(mask.sum(axis=-1), 1)[..., None]
