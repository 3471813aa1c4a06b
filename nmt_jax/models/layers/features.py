"""Sources of feature rows instead of tokens, or of both, and what models and searches ask of any kind."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nmt_jax.data.vocabulary.vocab import EOS, PAD
from nmt_jax.models.layers.embedding import sinusoids


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


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Mixed:
    """N sources of different kinds, each token ids int[B, S] or `Features`, padded to the same S."""

    parts: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.parts[0])

    @property
    def shape(self) -> tuple[int, ...]:
        """(B, N, S), as of several texts."""
        rows, *length = self.parts[0].shape
        return rows, len(self.parts), *length


Source = Array | Features | Mixed  # token ids int[B, S], or int[B, N, S] of several texts, or rows, or both


def source_mask(source: Source, reduction: int = 1) -> Array:
    """The places of a source that are not padding, bool[B, S], or bool[B, N, S] for several sources.

    reduction: of the states that a model makes of so many rows each, see `reduction_of`; bool[B, ceil(S / reduction)].
    """
    if isinstance(source, Mixed):
        return jnp.stack([source_mask(part, reduction) for part in source.parts], axis=1)
    if isinstance(source, Features):
        places = jax.lax.broadcasted_iota(jnp.int32, source.shape, len(source.shape) - 1)
        return (places < source.lengths[..., None])[..., ::reduction]
    return source != PAD


def reduction_of(model: Any) -> int:
    """Rows of a source for each state of a model's encoder; 1 for models that have no such property."""
    return getattr(model, "reduction", 1)


def word_mask(source: Source, reduction: int = 1) -> Array:
    """The `source_mask` without the ends of sentences: the places that a translation should cover."""
    if isinstance(source, Mixed):
        return jnp.stack([word_mask(part, reduction) for part in source.parts], axis=1)
    mask = source_mask(source, reduction)
    return mask if isinstance(source, Features) else mask & (source != EOS)


def parts_of(source: Source) -> list[Any]:
    """The sources of a model that reads several: each int[B, S] or `Features`."""
    if isinstance(source, Mixed):
        return list(source.parts)
    if isinstance(source, Features):
        return [Features(source.rows[:, k], source.lengths[:, k]) for k in range(source.shape[1])]
    return [source[:, k] for k in range(source.shape[1])]


def columns_of(columns: tuple[int, ...], number: int) -> int:
    """The columns of a source in `source_columns` of a model, which may name the first sources only."""
    return columns[number] if number < len(columns) else 0


def check_number(source: Source, num_sources: int) -> None:
    """Raise ValueError if the batch has another number of sources than the model."""
    axes = source.shape[1:-1]
    if axes != ((num_sources,) if num_sources > 1 else ()):
        raise ValueError(
            f"num_sources={num_sources}, but the batch has {axes[0] if axes else 1} per sentence: {list(source.shape)}"
        )


def batch_source(batch: Mapping[str, Any]) -> Any:
    """The source of a batch, as `SourceReader.fill` makes it, in the form that a model reads."""
    if "source" in batch:
        return _one_source(batch, "source")
    names = itertools.takewhile(batch.__contains__, (f"source{number}" for number in itertools.count()))
    return Mixed(tuple(_one_source(batch, name) for name in names))


def _one_source(batch: Mapping[str, Any], name: str) -> Any:
    lengths = batch.get(f"{name}_lengths")
    return batch[name] if lengths is None else Features(batch[name], lengths)


def grid_sinusoids(length: int, columns: int, d_model: int) -> np.ndarray:
    """Embeddings of the places of a grid, row by row, float32[length, D]: those of the row, then those of the column.

    Each half is `sinusoids` of width D / 2.
    """
    rows, half = -(-length // columns), d_model // 2
    down, across = sinusoids(rows, half), sinusoids(columns, d_model - half)
    grid = np.concatenate([np.repeat(down, columns, axis=0), np.tile(across, (rows, 1))], axis=1)
    return grid[:length]
