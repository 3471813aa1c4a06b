"""Hierarchical attention networks (Yang et al., 2016): words form sentence vectors, sentences a document vector."""

from jax import Array

from nmt_jax.data.vocabulary.vocab import PAD
from nmt_jax.models.layers.classifier import Classifier


class Model(Classifier):
    """The words x_it of a sentence i form its vector s_i, and the sentences form the document vector v.

    h_it = [forward GRU(x_it); backward GRU(x_it)], u_it = tanh(W_w h_it + b_w), a_it = softmax_t(u_it^T u_w),
    s_i = sum_t a_it h_it (eq. 1 to 7); h_i = [forward GRU(s_i); backward GRU(s_i)], u_i = tanh(W_s h_i + b_s),
    a_i = softmax_i(u_i^T u_s), v = sum_i a_i h_i (eq. 8 to 10); p = softmax(W_c v + b_c) (eq. 11).
    """

    def setup(self) -> None:
        super().setup()
        self.word_encoder, self.sentence_encoder = self.encoder(), self.encoder()

    def __call__(self, words: Array, train: bool = False) -> tuple[Array, dict[str, Array]]:
        """Words int[B, N, W] -> logits float[B, C] and the weights; an empty document has the logits b_c."""
        batch_size, num_sentences, num_words = words.shape
        mask = words != PAD
        x = self.embed(words.reshape(batch_size, -1), train).reshape(-1, num_words, self.d_embedding)
        sentences, word_weights = self.word_encoder(x, mask.reshape(-1, num_words), train)
        sentences = sentences.reshape(batch_size, num_sentences, -1)
        document, sentence_weights = self.sentence_encoder(sentences, mask.any(axis=-1), train)
        logits = self.output(self.drop(document, train))
        return logits, {"word_weights": word_weights.reshape(words.shape), "sentence_weights": sentence_weights}
