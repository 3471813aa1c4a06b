"""A pretrained encoder applied to two texts separately: their vectors can be stored, searched and compared."""

import jax.numpy as jnp
from jax import Array

from nmt_jax.models.layers.fine_tuned import FineTuned
from nmt_jax.models.layers.hyperparameters import check_choices
from nmt_jax.models.layers.pooling import POOLING, pool, unit_vectors


class Model(FineTuned):
    """y = cos(u, v) of the pooled states u and v of two texts (Reimers and Gurevych, 2019, section 3, figure 2)."""

    pooling: str = "mean"
    dropout: float = 0.0

    def __post_init__(self) -> None:
        check_choices(self, {"pooling": POOLING})
        super().__post_init__()

    def __call__(self, ids: Array, mask: Array, segments: Array | None = None, train: bool = False) -> Array:
        """Ids int[B, 2, S], mask bool[B, 2, S], segments int[B, 2, S] or None -> float32[B, 1]."""
        length = ids.shape[-1]
        mask = mask.reshape(-1, length)
        segments = None if segments is None else segments.reshape(-1, length)
        states = self.states(ids.reshape(-1, length), mask, segments, train)
        pooled = self.drop(pool(states, mask, self.pooling), train)
        first, second = jnp.moveaxis(unit_vectors(pooled).reshape(len(ids), 2, -1), 1, 0)
        return jnp.sum(first * second, axis=-1, keepdims=True)
