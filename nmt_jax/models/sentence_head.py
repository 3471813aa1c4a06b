"""A pretrained encoder that says something of a whole row: the class of a sentence, how alike two are."""

import jax
import jax.numpy as jnp

from nmt_jax.models.layers.fine_tuned import FineTuned
from nmt_jax.models.layers.hyperparameters import check_choices
from nmt_jax.models.layers.pooling import POOLING, pool

Array = jax.Array


class Model(FineTuned):
    """y = W_o drop(tanh(W_h drop(x) + b_h)) + b_o, x the pooled states of the row.

    pooling: "mean" of all pieces (Reimers and Gurevych, 2019, section 3), or the "first" (Devlin et al., 2019). "pair":
    of the means u and v of two texts, read in one row, all of u, v, |u - v|, u * v (Conneau et al., 2017, section 3.1).
    """

    pooling: str = "mean"

    def __post_init__(self) -> None:
        """ValueError on hyperparameters that cannot be meant."""
        check_choices(self, {"pooling": (*POOLING, "pair")})
        if self.pooling == "pair" and self.encoder.num_segments < 2:
            raise ValueError("pooling='pair' needs an encoder that tells two texts apart: this one has no segments")
        super().__post_init__()

    def setup(self) -> None:
        """The hidden product."""
        super().setup()
        self.hidden = self.dense(self.encoder.d_model)

    def __call__(self, ids: Array, mask: Array, segments: Array | None = None, train: bool = False) -> Array:
        """Ids int[B, S], mask bool[B, S], segments int[B, S] or none -> float32[B, num_outputs]."""
        states = self.states(ids, mask, segments, train)
        if self.pooling == "pair":
            assert segments is not None
            u, v = (pool(states, mask & (segments == text), "mean") for text in (0, 1))
            pooled = jnp.concatenate([u, v, jnp.abs(u - v), u * v], axis=-1)
        else:
            pooled = pool(states, mask, self.pooling)
        return self.output(self.drop(jnp.tanh(self.hidden(self.drop(pooled, train))), train))
