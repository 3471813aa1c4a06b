"""What document classifiers share: word vectors, an attentive recurrent encoder and an output layer.

Every classifier has the same call: words int[B, N, W] of N sentences (PAD elsewhere) -> logits float[B, C], and the
intermediates `word_weights` float32[B, N, W], which sum to 1 in each sentence, and `sentence_weights` float32[B, N],
which sum to 1. The word vectors are the submodule `embedding`.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax.models.layers.cells import CELLS
from nmt_jax.models.layers.dense import Dense
from nmt_jax.models.layers.dropout import Dropout, WordDropout
from nmt_jax.models.layers.embedding import Embedding
from nmt_jax.models.layers.hyperparameters import check_choices, check_positive, check_rates
from nmt_jax.models.layers.recurrent_encoder import Encoder
from nmt_jax.models.layers.scores import make_score


def masked_softmax(scores: Array, mask: Array) -> Array:
    """exp(e_t) / sum_t' exp(e_t') over the positions of `mask`, in float32.

    scores float[..., T], mask bool[..., T] -> float32[..., T]: exactly 0 outside the mask, and everywhere if the mask
    is empty.
    """
    scores = jnp.where(mask, scores.astype(jnp.float32), -jnp.inf)
    top = jax.lax.stop_gradient(jnp.max(scores, axis=-1, keepdims=True))
    # An empty mask has the maximum -inf, which must not enter the derivative of exp.
    exponentials = jnp.where(mask, jnp.exp(jnp.where(mask, scores - jnp.where(mask, top, 0.0), 0.0)), 0.0)
    total = jnp.sum(exponentials, axis=-1, keepdims=True)
    return exponentials / jnp.where(total == 0.0, 1.0, total)


class AttentionPooling(nn.Module):
    """The weighted mean v of states h (Yang et al., 2016, eq. 5 to 7 and 8 to 10).

    u_t = tanh(W h_t + b), a_t = exp(u_t^T u) / sum_t' exp(u_t'^T u), v = sum_t a_t h_t, with learned W, b and context
    vector u.
    """

    d_attention: int
    dtype: str = "float32"

    def setup(self) -> None:
        self.hidden = Dense(self.d_attention, dtype=self.dtype)
        self.context = self.param("context", nn.initializers.normal(self.d_attention**-0.5), (self.d_attention,))
        self.score_function = make_score("dot", self.d_attention, self.d_attention)

    def __call__(self, states: Array, mask: Array) -> tuple[Array, Array]:
        """States float[B, T, D], mask bool[B, T] -> float[B, D], weights float32[B, T]; zeros for an empty row."""
        query = jnp.broadcast_to(self.context, (states.shape[0], 1, self.d_attention))
        scores = self.score_function(query, jnp.tanh(self.hidden(states)))[:, 0]
        weights = masked_softmax(scores, mask)
        return jnp.einsum("bt,btd->bd", weights, states), weights


CHOICES = {"cell": tuple(CELLS), "dtype": ("float32", "bfloat16")}


class AttentiveEncoder(nn.Module):
    """A bidirectional recurrent network over a sequence, and attention pooling of its states."""

    cell: str
    num_layers: int
    d_hidden: int
    d_attention: int
    dropout: float
    variational_dropout: bool
    dtype: str

    def setup(self) -> None:
        self.states = Encoder(
            self.cell,
            self.num_layers,
            self.d_hidden,
            dropout=self.dropout,
            variational_dropout=self.variational_dropout,
            dtype=self.dtype,
        )
        self.pooling = AttentionPooling(self.d_attention, self.dtype)

    def __call__(self, x: Array, mask: Array, train: bool) -> tuple[Array, Array]:
        """x float[B, T, D], mask bool[B, T] -> float[B, H], weights float32[B, T]."""
        states, _ = self.states(x, mask, train)
        return self.pooling(states, mask)


class Classifier(nn.Module):
    """The base class of document classifiers: hyperparameters, word vectors and output layer.

    d_hidden: width of an encoder's states, half of it per direction. word_dropout: probability with which a word type
    is dropped from a document in training (Gal and Ghahramani, 2016, section 4.2).
    """

    vocab_size: int
    num_classes: int
    cell: str = "gru"
    num_layers: int = 1
    d_embedding: int = 100
    d_hidden: int = 100
    d_attention: int = 100
    dropout: float = 0.5
    variational_dropout: bool = False
    word_dropout: float = 0.0
    dtype: str = "float32"

    def __post_init__(self) -> None:
        check_choices(self, CHOICES)
        check_positive(self, "num_classes", "num_layers", "d_embedding", "d_hidden", "d_attention")
        check_rates(self, "dropout", "word_dropout")
        if self.d_hidden % 2:
            raise ValueError(f"d_hidden={self.d_hidden} must be even: each direction has half of it")
        super().__post_init__()

    def setup(self) -> None:
        self.embedding = Embedding(self.vocab_size, self.d_embedding)
        self.drop, self.drop_words = Dropout(self.dropout), WordDropout(self.word_dropout, self.vocab_size)
        self.output = Dense(self.num_classes)

    def embed(self, words: Array, train: bool) -> Array:
        """Words int[B, T] of B documents -> word vectors float[B, T, D], after word dropout."""
        return self.drop_words(self.embedding(words), words, train)

    def encoder(self) -> AttentiveEncoder:
        """A new encoder, of words or of sentences."""
        return AttentiveEncoder(
            self.cell,
            self.num_layers,
            self.d_hidden,
            self.d_attention,
            self.dropout,
            self.variational_dropout,
            self.dtype,
        )
