"""The self-attentive sentence encoder with a class on top: one level of the hierarchical attention network."""

import jax
import jax.numpy as jnp

from nmt_jax.data.vocabulary.vocab import PAD
from nmt_jax.models.layers.classifier import Classifier

Array = jax.Array


class Model(Classifier):
    """All sentences are read as one of words x_t (Yang et al., 2016, eq. 1 to 7; Lin et al., 2017, of one row).

    h_t = [GRU(x_t) forwards; backwards], u_t = tanh(W h_t + b), a_t = softmax_t(u_t^T u), p = softmax(W_c v + b_c) with
    v = sum_t a_t h_t.
    """

    def setup(self) -> None:
        """The encoder."""
        super().setup()
        self.word_encoder = self.encoder()

    def __call__(self, words: Array, train: bool = False) -> tuple[Array, dict[str, Array]]:
        """Words int[B, N, W] -> logits float[B, C]; a_t as the weights of sentences and, within them, of words."""
        flat = words.reshape(words.shape[0], -1)
        text, weights = self.word_encoder(self.embed(flat, train), flat != PAD, train)
        weights = weights.reshape(words.shape)
        sentence_weights = weights.sum(axis=-1)
        total = jnp.where(sentence_weights == 0.0, 1.0, sentence_weights)[:, :, None]
        logits = self.output(self.drop(text, train))
        return logits, {"word_weights": weights / total, "sentence_weights": sentence_weights}
