"""A pretrained encoder with one output per text or pair of texts: a class, or a similarity."""

import jax.numpy as jnp
from jax import Array

from nmt_jax.models.layers.bert_stack import POOLING, FineTuned, pool
from nmt_jax.models.layers.hyperparameters import check_choices


class Model(FineTuned):
    """y = W_o drop(tanh(W_h drop(x) + b_h)) + b_o, where x is the pooled states of the row.

    pooling: the "mean" over all pieces (Reimers and Gurevych, 2019, section 3), or the "first" piece (Devlin et al.,
    2019). "pair": [u; v; |u - v|; u * v] of the means u and v of two texts in one row (Conneau et al., 2017, section
    3.1).
    """

    pooling: str = "mean"

    def __post_init__(self) -> None:
        check_choices(self, {"pooling": (*POOLING, "pair")})
        if self.pooling == "pair" and self.encoder.num_segments < 2:
            raise ValueError("pooling='pair' needs an encoder with segment embeddings, which this one lacks")
        super().__post_init__()

    def setup(self) -> None:
        super().setup()
        self.hidden = self.dense(self.encoder.d_model)

    def __call__(self, ids: Array, mask: Array, segments: Array | None = None, train: bool = False) -> Array:
        """Ids int[B, S], mask bool[B, S], segments int[B, S] or None -> float32[B, num_outputs]."""
        states = self.states(ids, mask, segments, train)
        if self.pooling == "pair":
            assert segments is not None
            u, v = (pool(states, mask & (segments == text), "mean") for text in (0, 1))
            pooled = jnp.concatenate([u, v, jnp.abs(u - v), u * v], axis=-1)
        else:
            pooled = pool(states, mask, self.pooling)
        return self.output(self.drop(jnp.tanh(self.hidden(self.drop(pooled, train))), train))
