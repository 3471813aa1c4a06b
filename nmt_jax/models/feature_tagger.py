"""A tagger over word vectors, the layers of ELMo, and word embeddings of its own."""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax.models.layers.dense import Dense
from nmt_jax.models.layers.dropout import Dropout
from nmt_jax.models.layers.embedding import Embedding
from nmt_jax.models.layers.hyperparameters import check_rates
from nmt_jax.models.layers.recurrent_encoder import Encoder


class Model(nn.Module):
    """y_t = W drop(biLSTM([e_t; x_t; ELMo_t])) + b: the tagger of Peters et al. (2018), section 4, without its CRF.

    ELMo_t = gamma sum_j s_j h_tj with learned gamma and s = softmax(w) (eq. 1). layers: "mixture", or the number of the
    only layer used; layer 0 is the word vectors of ELMo. vocab_size: size of the learned embeddings e; 0 for none.
    d_hidden: width of the biLSTM, half of it per direction; 0 for none. dropout: on the input and before the output
    layer.
    """

    vocab_size: int
    num_outputs: int
    d_word: int = 50
    d_hidden: int = 100
    layers: str = "mixture"
    dropout: float = 0.5

    def __post_init__(self) -> None:
        check_rates(self, "dropout")
        if self.d_hidden < 0 or self.d_hidden % 2:
            raise ValueError(f"d_hidden={self.d_hidden} must be an even number or 0: each direction has half of it")
        if self.layers != "mixture" and not self.layers.isdecimal():
            raise ValueError(f"layers={self.layers!r}: use mixture or the number of a layer")
        super().__post_init__()

    @nn.compact
    def __call__(
        self, words: Array, mask: Array, vectors: Array | None = None, elmo: Array | None = None, train: bool = False
    ) -> Array:
        """Words int[B, S], mask bool[B, S], vectors float[B, S, Dx], elmo float[B, S, L + 1, D] -> float[B, S, C]."""
        parts = [] if vectors is None else [vectors]
        if self.vocab_size:
            parts.append(Embedding(self.vocab_size, self.d_word, name="embedding")(words))
        if elmo is not None and self.layers == "mixture":
            weights = self.param("mixture_weights", nn.initializers.zeros, elmo.shape[-2:-1])
            scale = self.param("mixture_scale", nn.initializers.ones, ())
            parts.append(scale * jnp.einsum("l,bsld->bsd", jax.nn.softmax(weights), elmo))
        elif elmo is not None:
            parts.append(elmo[..., int(self.layers), :])
        x = Dropout(self.dropout)(jnp.concatenate(parts, axis=-1), train)
        if self.d_hidden:
            x, _ = Encoder("lstm", 1, self.d_hidden, name="states")(x, mask, train)
        return Dense(self.num_outputs, name="output")(Dropout(self.dropout)(x, train))
