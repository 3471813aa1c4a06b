"""A classifier over one self-attentive sentence encoder: one level of the hierarchical attention network."""

import jax.numpy as jnp
from jax import Array

from nmt_jax.data.vocabulary.vocab import PAD
from nmt_jax.models.layers.classifier import Classifier


class Model(Classifier):
    """All sentences are read as one sequence of words x_t.

    h_t = [forward GRU(x_t); backward GRU(x_t)], u_t = tanh(W h_t + b), a_t = softmax_t(u_t^T u), v = sum_t a_t h_t,
    p = softmax(W_c v + b_c) (Yang et al., 2016, eq. 1 to 7; Lin et al., 2017, with one row).
    """

    def setup(self) -> None:
        super().setup()
        self.word_encoder = self.encoder()

    def __call__(self, words: Array, train: bool = False) -> tuple[Array, dict[str, Array]]:
        """Words int[B, N, W] -> logits float[B, C], and a_t as sentence weights and word weights within sentences."""
        flat = words.reshape(words.shape[0], -1)
        text, weights = self.word_encoder(self.embed(flat, train), flat != PAD, train)
        weights = weights.reshape(words.shape)
        sentence_weights = weights.sum(axis=-1)
        total = jnp.where(sentence_weights == 0.0, 1.0, sentence_weights)[:, :, None]
        logits = self.output(self.drop(text, train))
        return logits, {"word_weights": weights / total, "sentence_weights": sentence_weights}
