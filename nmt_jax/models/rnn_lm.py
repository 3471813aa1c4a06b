"""The recurrent language model (Mikolov et al., 2010; Zaremba et al., 2014; Merity et al., 2018), and its pointer."""

from typing import Any

import flax.linen as nn
import jax.numpy as jnp
from jax import Array

from nmt_jax.data.vocabulary.vocab import PAD
from nmt_jax.models.layers.cells import zero_state
from nmt_jax.models.layers.dense import Dense, matmul
from nmt_jax.models.layers.dropout import SequenceDropout, WordDropout
from nmt_jax.models.layers.embedding import Embedding
from nmt_jax.models.layers.hyperparameters import check_choices, check_positive, check_rates
from nmt_jax.models.layers.lstmn import ALL_CELLS, LSTMN
from nmt_jax.models.layers.pointer_sentinel import PointerSentinel
from nmt_jax.models.layers.recurrent import Cell

CHOICES = {"cell": ALL_CELLS, "dtype": ("float32", "bfloat16")}


class Model(nn.Module):
    """p(x_{t+1} | x_1 .. x_t) = softmax(W h_t + b), h_t the output of stacked recurrent cells.

    tie_embeddings: the output layer uses the table of the input embeddings (Press and Wolf, 2017; Inan et al., 2017),
    after a linear layer if d_hidden differs from d_embedding. dropout: on the input of each layer and of the output
    layer; input_dropout and hidden_dropout, unless -1, replace it on the first layer and on those above.
    variational_dropout: one mask for all steps (Gal and Ghahramani, 2016). word_dropout: of whole words of the input.
    weight_dropout: of the recurrent weights (Merity et al., 2018). pointer_window: number of preceding words that the
    pointer can select (`PointerSentinel`); 0 for no pointer. cell: "lstmn" attends to its own past (`LSTMN`), but not
    beyond the beginning of the block.
    """

    vocab_size: int
    cell: str = "lstm"
    num_layers: int = 1
    d_embedding: int = 200
    d_hidden: int = 200
    dropout: float = 0.5
    input_dropout: float = -1.0
    hidden_dropout: float = -1.0
    variational_dropout: bool = True
    word_dropout: float = 0.0
    weight_dropout: float = 0.0
    tie_embeddings: bool = True
    pointer_window: int = 0
    dtype: str = "float32"

    def __post_init__(self) -> None:
        check_choices(self, CHOICES)
        check_positive(self, "num_layers", "d_embedding", "d_hidden")
        check_rates(self, "dropout", "word_dropout", "weight_dropout")
        check_rates(self, *(name for name in ("input_dropout", "hidden_dropout") if getattr(self, name) != -1))
        if self.cell == "lstmn" and self.weight_dropout:
            raise ValueError(f"weight_dropout={self.weight_dropout}: cell='lstmn' does not support it; set it to 0")
        if self.pointer_window < 0:
            raise ValueError(f"pointer_window={self.pointer_window} must not be negative; 0 means no pointer")
        super().__post_init__()

    def setup(self) -> None:
        self.embedding = Embedding(self.vocab_size, self.d_embedding)
        self.drop_words = WordDropout(self.word_dropout, self.vocab_size)
        self.cells: list[Any] = [self._cell() for _ in range(self.num_layers)]
        self.drop = SequenceDropout(self.dropout, self.variational_dropout)
        if self.input_dropout != -1:
            self.drop_input = SequenceDropout(self.input_dropout, self.variational_dropout)
        if self.hidden_dropout != -1:
            self.drop_hidden = SequenceDropout(self.hidden_dropout, self.variational_dropout)
        if not self.tie_embeddings:
            self.output_table = Embedding(self.vocab_size, self.d_hidden)
        elif self.d_embedding != self.d_hidden:
            self.projection = Dense(self.d_embedding, dtype=self.dtype)
        self.output_bias = self.param("output_bias", nn.initializers.zeros, (self.vocab_size,))
        if self.pointer_window:
            self.pointer = PointerSentinel(self.d_hidden)

    def _cell(self) -> nn.Module:
        if self.cell == "lstmn":
            return LSTMN(self.d_hidden, self.dtype)
        return Cell(self.cell, self.d_hidden, self.dtype, self.weight_dropout)

    def __call__(
        self, tokens: Array, train: bool = False, cache: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Tokens int[B, T] -> logits float[B, T, V], at t those of token t + 1, and intermediates.

        cache: that of the tokens before these, as `init_cache` and this function return it; None before the first
        token. The intermediate `cache` is that after the last token. `outputs` and `dropped` float[B, T, H]:
        those of the last layer, without and with dropout. Without a pointer: `hidden` float[B, T, R] and
        `output_kernel` float[R, V], whose product is the logits, for a chunked loss. With a pointer the logits are
        log-probabilities, and the other intermediates are those of `PointerSentinel`. Of an LSTMN: `attention`, the
        weights of each layer, float32[B, 1, T, T]. Raises ValueError if an LSTMN gets a cache.
        """
        if cache and self.cell == "lstmn":
            raise ValueError("cell='lstmn' cannot go on after a cache: its state grows with every step")
        x = self.drop_words(self.embedding(tokens), tokens, train)
        everywhere = jnp.ones(tokens.shape, bool)
        starts = cache["states"] if cache else [None] * self.num_layers
        states, attention = [], []
        for number, (cell, start) in enumerate(zip(self.cells, starts, strict=True)):
            x = self._drop_before(number)(x, train)
            if self.cell == "lstmn":
                x, last, weights = cell.run_with_weights(x, everywhere)
                attention.append(weights[:, None])
            else:
                x, last = cell.run(x, everywhere, start, train=train)
            states.append(last)
        dropped = self.drop(x, train)
        hidden, kernel = self._output(dropped)
        logits = matmul(hidden, kernel, self.dtype)
        out: dict[str, Any] = {"outputs": x, "dropped": dropped, "cache": {"states": tuple(states)}}
        if attention:
            out["attention"] = tuple(attention)
        if not self.pointer_window:
            return logits, {**out, "hidden": hidden, "output_kernel": kernel}
        words, outputs = tokens, x
        if cache:
            words = jnp.concatenate([cache["words"], tokens], axis=1)
            outputs = jnp.concatenate([cache["outputs"], x], axis=1)
            window = cache["words"].shape[1]
            out["cache"] |= {"words": words[:, -window:], "outputs": outputs[:, -window:]}
        steps = jnp.arange(words.shape[1] - tokens.shape[1], words.shape[1])
        distance = steps[:, None] - jnp.arange(words.shape[1])[None, :]
        near = (distance >= 0) & (distance < self.pointer_window)
        # The pointer compares states without dropout: two different masks would leave different units.
        log_p, pointed = self.pointer(logits, x, outputs, words, near[None] & (words != PAD)[:, None, :])
        return log_p, {**out, **pointed}

    def _drop_before(self, layer: int) -> SequenceDropout:
        """The dropout on the input of a layer."""
        if layer == 0:
            return self.drop if self.input_dropout == -1 else self.drop_input
        return self.drop if self.hidden_dropout == -1 else self.drop_hidden

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
        if self.cell == "lstmn":
            start = self.cells[0].zero_state(batch_size, max_length)
        else:
            start = zero_state(self.cell, (batch_size, self.d_hidden))
        cache: dict[str, Any] = {"states": (start,) * self.num_layers}
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
