"""A pretrained encoder with one output per text or pair of texts: a class, or a similarity."""

import jax.numpy as jnp
from jax import Array

from nmt_jax.models.layers.fine_tuned import FineTuned
from nmt_jax.models.layers.hyperparameters import check_choices
from nmt_jax.models.layers.pooling import POOLING, pool
from nmt_jax.models.layers.recurrent_encoder import Encoder


class Model(FineTuned):
    """y = W_o drop(tanh(W_h drop(x) + b_h)) + b_o, where x is the pooled states of the row.

    pooling: the "mean" over all pieces (Reimers and Gurevych, 2019, section 3), or the "first" piece (Devlin et al.,
    2019). "pair": [u; v; |u - v|; u * v] of the means u and v of two texts in one row (Conneau et al., 2017, section
    3.1). bilstm_layers: of a bidirectional LSTM of width d_model, whose states are pooled; 0 for none. Devlin et al.
    (2019), section 5.1, have one on an encoder that reads from left to right.
    """

    pooling: str = "mean"
    bilstm_layers: int = 0

    def __post_init__(self) -> None:
        check_choices(self, {"pooling": (*POOLING, "pair")})
        if self.pooling == "pair" and self.encoder.num_segments < 2:
            raise ValueError("pooling='pair' needs an encoder with segment embeddings, which this one lacks")
        super().__post_init__()

    def setup(self) -> None:
        super().setup()
        self.bilstm = Encoder("lstm", self.bilstm_layers, self.encoder.d_model)
        self.hidden = self.dense(self.encoder.d_model)

    def __call__(self, ids: Array, mask: Array, segments: Array | None = None, train: bool = False) -> Array:
        """Ids int[B, S], mask bool[B, S], segments int[B, S] or None -> float32[B, num_outputs]."""
        states, _ = self.bilstm(self.states(ids, mask, segments, train), mask, train)
        if self.pooling == "pair":
            assert segments is not None
            u, v = (pool(states, mask & (segments == text), "mean") for text in (0, 1))
            pooled = jnp.concatenate([u, v, jnp.abs(u - v), u * v], axis=-1)
        else:
            pooled = pool(states, mask, self.pooling)
        return self.output(self.drop(jnp.tanh(self.hidden(self.drop(pooled, train))), train))
