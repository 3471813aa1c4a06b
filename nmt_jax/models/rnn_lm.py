"""The recurrent language model (Mikolov et al., 2010; Zaremba et al., 2014), with or without a pointer."""

from typing import Any

import flax.linen as nn
import jax.numpy as jnp
from jax import Array

from nmt_jax.data.vocabulary.vocab import PAD
from nmt_jax.models.layers.basic import Dense, Embedding, SequenceDropout, matmul
from nmt_jax.models.layers.copying import PointerSentinel
from nmt_jax.models.layers.hyperparameters import check_choices, check_positive, check_rates
from nmt_jax.models.layers.recurrent import CELLS, Cell, zero_state

CHOICES = {"cell": tuple(CELLS), "dtype": ("float32", "bfloat16")}


class Model(nn.Module):
    """p(x_{t+1} | x_1 .. x_t) = softmax(W h_t + b), h_t the output of stacked recurrent cells.

    tie_embeddings: the output layer uses the table of the input embeddings (Press and Wolf, 2017; Inan et al., 2017),
    after a linear layer if d_hidden differs from d_embedding. dropout: on the input of each layer and of the output
    layer. variational_dropout: one mask for all steps (Gal and Ghahramani, 2016). pointer_window: number of preceding
    words that the pointer can select (`PointerSentinel`); 0 for no pointer.
    """

    vocab_size: int
    cell: str = "lstm"
    num_layers: int = 1
    d_embedding: int = 200
    d_hidden: int = 200
    dropout: float = 0.5
    variational_dropout: bool = True
    tie_embeddings: bool = True
    pointer_window: int = 0
    dtype: str = "float32"

    def __post_init__(self) -> None:
        check_choices(self, CHOICES)
        check_positive(self, "num_layers", "d_embedding", "d_hidden")
        check_rates(self, "dropout")
        if self.pointer_window < 0:
            raise ValueError(f"pointer_window={self.pointer_window} must not be negative; 0 means no pointer")
        super().__post_init__()

    def setup(self) -> None:
        self.embedding = Embedding(self.vocab_size, self.d_embedding)
        self.cells = [Cell(self.cell, self.d_hidden, self.dtype) for _ in range(self.num_layers)]
        self.drop = SequenceDropout(self.dropout, self.variational_dropout)
        if not self.tie_embeddings:
            self.output_table = Embedding(self.vocab_size, self.d_hidden)
        elif self.d_embedding != self.d_hidden:
            self.projection = Dense(self.d_embedding, dtype=self.dtype)
        self.output_bias = self.param("output_bias", nn.initializers.zeros, (self.vocab_size,))
        if self.pointer_window:
            self.pointer = PointerSentinel(self.d_hidden)

    def __call__(self, tokens: Array, train: bool = False) -> tuple[Array, dict[str, Any]]:
        """Tokens int[B, T] -> logits float[B, T, V], at t those of token t + 1, and intermediates.

        Without a pointer: `hidden` float[B, T, R] and `output_kernel` float[R, V], whose product is the logits, for a
        chunked loss. With a pointer the logits are log-probabilities, and the intermediates are those of
        `PointerSentinel`.
        """
        x = self.embedding(tokens)
        everywhere = jnp.ones(tokens.shape, bool)
        for cell in self.cells:
            start = zero_state(self.cell, (tokens.shape[0], self.d_hidden))
            x, _ = cell.run(self.drop(x, train), everywhere, start)
        hidden, kernel = self._output(self.drop(x, train))
        logits = matmul(hidden, kernel, self.dtype)
        if not self.pointer_window:
            return logits, {"hidden": hidden, "output_kernel": kernel}
        distance = jnp.arange(tokens.shape[1])[:, None] - jnp.arange(tokens.shape[1])[None, :]
        near = (distance >= 0) & (distance < self.pointer_window)
        # The pointer compares states without dropout: two different masks would leave different units.
        return self.pointer(logits, x, x, tokens, near[None] & (tokens != PAD)[:, None, :])

    def _output(self, x: Array) -> tuple[Array, Array]:
        """States float[..., H] -> float[..., R] and float[R, V], whose product is the logits; the last of R is 1."""
        if not self.tie_embeddings:
            table = self.output_table.table
        else:
            table = self.embedding.table
            x = x if self.d_embedding == self.d_hidden else self.projection(x)
        one = jnp.ones((*x.shape[:-1], 1))
        return jnp.concatenate([x, one], axis=-1), jnp.concatenate([table.T, self.output_bias[None]])

    def init_cache(self, batch_size: int, max_length: int) -> dict[str, Any]:
        """The decoding cache for up to max_length steps; every leaf leads with B."""
        cache: dict[str, Any] = {
            "states": tuple(zero_state(self.cell, (batch_size, self.d_hidden)) for _ in range(self.num_layers))
        }
        if self.pointer_window:
            window = min(self.pointer_window, max_length)
            cache["words"] = jnp.full((batch_size, window), PAD)
            cache["outputs"] = jnp.zeros((batch_size, window, self.d_hidden))
        return cache

    def decode_step(self, tokens: Array, cache: dict[str, Any]) -> tuple[Array, dict[str, Any]]:
        """The tokens at this step, int[B] -> logits float[B, V] of the next ones, and the new cache."""
        x, states = self.embedding(tokens), []
        for cell, state in zip(self.cells, cache["states"], strict=True):
            states.append(cell(x, state))
            x = states[-1][0]
        hidden, kernel = self._output(x)
        logits = matmul(hidden, kernel, self.dtype)
        if not self.pointer_window:
            return logits, {"states": tuple(states)}
        words = jnp.concatenate([cache["words"][:, 1:], tokens[:, None]], axis=1)
        outputs = jnp.concatenate([cache["outputs"][:, 1:], x[:, None]], axis=1)
        visible = (words != PAD)[:, None, :]
        log_p, _ = self.pointer(logits[:, None], x[:, None], outputs, words, visible)
        return log_p[:, 0], {"states": tuple(states), "words": words, "outputs": outputs}
