"""A pretrained GPT with one output per row, read from the state of the last token (Radford et al., 2018)."""

import jax.numpy as jnp
from jax import Array

from nmt_jax.models.layers.fine_tuned import FineTuned


class Model(FineTuned):
    """y = W drop(h) + b, h the state of the last token of a row (Radford et al., 2018, eq. 3).

    both_orders: a pair of texts is read in both orders, and h is the sum of both states (section 3.3, similarity).
    """

    both_orders: bool = False

    def __call__(self, ids: Array, mask: Array, segments: Array | None = None, train: bool = False) -> Array:
        """Ids int[B, S] and mask bool[B, S], or [B, 2, S] each with `both_orders` -> float32[B, num_outputs]."""
        return self._outputs(self.states(*self._rows(ids, mask), None, train), mask, train)

    def with_language_model(
        self, ids: Array, mask: Array, segments: Array | None = None, train: bool = False
    ) -> tuple[Array, Array]:
        """As `__call__`, and the last states of the encoder, float[B, S, D] or [2 B, S, D], to predict next tokens."""
        hidden = self.hidden_states(*self._rows(ids, mask), None, train)
        return self._outputs(self.head_input(hidden), mask, train), hidden[-1]

    def _rows(self, ids: Array, mask: Array) -> tuple[Array, Array]:
        length = ids.shape[-1]
        return ids.reshape(-1, length), mask.reshape(-1, length)

    def _outputs(self, states: Array, mask: Array, train: bool) -> Array:
        """States float[B or 2 B, S, E], mask as given to `__call__` -> float32[B, num_outputs]."""
        last = jnp.maximum(mask.reshape(-1, mask.shape[-1]).sum(axis=-1) - 1, 0)
        pooled = jnp.take_along_axis(states, last[:, None, None], axis=1)[:, 0]
        pooled = pooled.reshape(len(mask), -1, pooled.shape[-1]).sum(axis=1)
        return self.output(self.drop(pooled, train))
