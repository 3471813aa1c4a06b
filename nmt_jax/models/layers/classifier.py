"""What document classifiers share: word vectors, an attentive recurrent encoder and an output layer.

Every classifier has the same call: words int[B, N, W] of N sentences (PAD elsewhere) -> logits float[B, C], and the
intermediates `word_weights` float32[B, N, W], which sum to 1 in each sentence, and `sentence_weights` float32[B, N],
which sum to 1. The word vectors are the submodule `embedding`.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp

from nmt_jax.models.layers.dense import Dense
from nmt_jax.models.layers.dropout import Dropout
from nmt_jax.models.layers.embedding import Embedding
from nmt_jax.models.layers.hyperparameters import check_choices, check_positive, check_rates
from nmt_jax.models.layers.pooling import AttentionPooling
from nmt_jax.models.layers.recurrence import CELLS
from nmt_jax.models.layers.recurrent import Encoder

Array = jax.Array

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
        """Create the network and the pooling."""
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
        """Raise ValueError if a hyperparameter is invalid."""
        check_choices(self, CHOICES)
        check_positive(self, "num_classes", "num_layers", "d_embedding", "d_hidden", "d_attention")
        check_rates(self, "dropout", "word_dropout")
        if self.d_hidden % 2:
            raise ValueError(f"d_hidden={self.d_hidden} must be even: each direction has half of it")
        super().__post_init__()

    def setup(self) -> None:
        """Create the word vectors and the output layer."""
        self.embedding = Embedding(self.vocab_size, self.d_embedding)
        self.drop, self.drop_words = Dropout(self.dropout), Dropout(self.word_dropout)
        self.output = Dense(self.num_classes)

    def embed(self, words: Array, train: bool) -> Array:
        """Words int[B, T] of B documents -> word vectors float[B, T, D], after word dropout."""
        x = self.embedding(words)
        if not (train and self.word_dropout):
            return x
        kept = self.drop_words(jnp.ones((words.shape[0], self.vocab_size)), train)
        return x * jnp.take_along_axis(kept, words, axis=1)[..., None]

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
