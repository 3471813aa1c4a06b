"""Sources of feature rows instead of tokens, and what models and searches ask of either kind."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nmt_jax.data.vocabulary.vocab import PAD
from nmt_jax.models.layers.basic import sinusoids


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Features:
    """Rows float32[B, S, F], of which the first `lengths` int32[B] are real; of N sources [B, N, S, F] and [B, N].

    What rows after the length contain has no influence.
    """

    rows: Array
    lengths: Array

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def shape(self) -> tuple[int, ...]:
        """(B, S), or (B, N, S) for several sources: the shape of as many tokens."""
        return self.rows.shape[:-1]


Source = Array | Features  # token ids int[B, S], or rows


def source_mask(source: Source, reduction: int = 1) -> Array:
    """The places of a source that are not padding, bool[B, S], or bool[B, N, S] for several sources.

    reduction: of the states that a model makes of so many rows each, see `reduction_of`; bool[B, ceil(S / reduction)].
    """
    if isinstance(source, Features):
        places = jax.lax.broadcasted_iota(jnp.int32, source.shape, len(source.shape) - 1)
        return (places < source.lengths[..., None])[..., ::reduction]
    return source != PAD


def reduction_of(model: Any) -> int:
    """Rows of a source for each state of a model's encoder; 1 for models that have no such property."""
    return getattr(model, "reduction", 1)


def batch_source(batch: Mapping[str, Any]) -> Any:
    """The source of a batch as a model reads it: the token ids "source", or features if it has "source_lengths"."""
    return Features(batch["source"], batch["source_lengths"]) if "source_lengths" in batch else batch["source"]


def grid_sinusoids(length: int, columns: int, d_model: int) -> np.ndarray:
    """Embeddings of the places of a grid, row by row, float32[length, D]: those of the row, then those of the column.

    Each half is `sinusoids` of width D / 2.
    """
    rows, half = -(-length // columns), d_model // 2
    down, across = sinusoids(rows, half), sinusoids(columns, d_model - half)
    grid = np.concatenate([np.repeat(down, columns, axis=0), np.tile(across, (rows, 1))], axis=1)
    return grid[:length]
