"""ELMo (Peters et al., 2018): words from their characters, read by LSTMs from the left and from the right.

A word's vector is made by a convolution over its characters (Kim et al., 2016; Jozefowicz et al., 2016); it and the
softmax are shared by both directions. No state of the forward network has seen a word after its own, none of the
backward network a word before it.
"""

import functools
from collections.abc import Sequence
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from nmt_jax.data.vocabulary.word_types import NOTHING, NUM_CHARACTERS
from nmt_jax.models.layers.dense import Dense, product, transposed
from nmt_jax.models.layers.dropout import Dropout
from nmt_jax.models.layers.hyperparameters import check_choices, check_positive, check_rates
from nmt_jax.models.layers.recurrent import lstm

Array = jax.Array

CHOICES = {"dtype": ("float32", "bfloat16")}
# The first bias of a highway's gate: it begins by letting nearly everything pass (Srivastava et al., 2015).
CARRY = -2.0


class Highway(nn.Module):
    """y = g relu(W x + b) + (1 - g) x with g = sigmoid(W_g x + b_g) (Srivastava et al., 2015, eq. 3)."""

    dtype: str = "float32"

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """x float[..., D] -> float[..., D]."""
        changed = nn.relu(Dense(x.shape[-1], dtype=self.dtype, name="change")(x))
        bias = self.param("gate_bias", nn.initializers.constant(CARRY), (x.shape[-1],))
        logits = Dense(x.shape[-1], use_bias=False, dtype=self.dtype, name="gate")(x)
        gate = jax.nn.sigmoid(logits + jnp.broadcast_to(bias, logits.shape))
        return gate * changed + (1.0 - gate) * x


class CharacterEncoder(nn.Module):
    """A word's vector: f_w filters over each w characters, the strongest answer of each, highways, a projection.

    Kim et al. (2016), eq. 1 to 3 and 5, with relu for tanh as in Jozefowicz et al. (2016). What follows the last
    character is zero and begins no window, so that the number of places for characters has no influence.
    """

    d_character: int
    widths: Sequence[int]
    filters: Sequence[int]
    num_highways: int
    d_word: int
    dtype: str = "float32"

    def setup(self) -> None:
        """Create the table of characters, the filters, the highways and the projection."""
        self.table = self.param("table", nn.initializers.normal(1.0), (NUM_CHARACTERS, self.d_character))
        self.convolutions = [Dense(number, dtype=self.dtype) for number in self.filters]
        self.highways = [Highway(self.dtype) for _ in range(self.num_highways)]
        self.projection = Dense(self.d_word, dtype=self.dtype)

    def __call__(self, characters: Array) -> Array:
        """Characters int[..., C] -> float[..., D]."""
        there = characters != NOTHING
        x = self.table[characters] * there[..., None]
        length = x.shape[-2]
        around = [(0, 0)] * (x.ndim - 2)
        found = []
        for width, convolution in zip(self.widths, self.convolutions, strict=True):
            padded = jnp.pad(x, [*around, (0, width - 1), (0, 0)])
            windows = jnp.concatenate([padded[..., k : k + length, :] for k in range(width)], axis=-1)
            answers = jnp.where(there[..., None], convolution(windows), -jnp.inf)
            found.append(nn.relu(jnp.max(answers, axis=-2)))  # of nothing 0
        y = jnp.concatenate(found, axis=-1)
        for highway in self.highways:
            y = highway(y)
        return self.projection(y)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def recur(dtype: str, inputs: Array, mask: Array, kernel: Array, projection: Array) -> Array:
    """Run an LSTM with projection from a zero state: r_t = W_r (o tanh c_t) (Sak et al., 2014, eq. 1 to 6).

    inputs float[T, B, 4 H]: of the gates from x_t; mask bool[T, B]: False changes no state; kernel float[P, 4 H] reads
    r_{t-1}; projection float[H, P] -> r float[T, B, P]. As in `recurrent.recur`, the gradient of the weights is one
    product over all steps; the cell has no peepholes.
    """
    return _recur(dtype, inputs, mask, kernel, projection)[0]


def _recur(
    dtype: str, inputs: Array, mask: Array, kernel: Array, projection: Array
) -> tuple[Array, tuple[Array, Array, Array, Array]]:
    """r of each step; and r and c before each step, what the gates got from r, and o tanh c."""
    width, out = projection.shape

    def step(old: tuple[Array, Array], at: tuple[Array, Array]) -> Any:
        gates, keep = at
        before, memory = old
        hidden = product(before, kernel, dtype)
        cell, new = lstm(gates, hidden, (before, memory))
        kept = jnp.where(keep[:, None], product(cell, projection, dtype), before)
        return (kept, jnp.where(keep[:, None], new, memory)), (kept, before, memory, hidden, cell)

    start = (jnp.zeros((inputs.shape[1], out)), jnp.zeros((inputs.shape[1], width)))
    outputs, *saved = jax.lax.scan(step, start, (inputs, mask))[1]
    return outputs, tuple(saved)


def _recur_forward(dtype: str, inputs: Array, mask: Array, kernel: Array, projection: Array) -> tuple[Array, Any]:
    kernel, projection = kernel.astype(dtype), projection.astype(dtype)
    outputs, saved = _recur(dtype, inputs, mask, kernel, projection)
    return outputs, (inputs, mask, kernel, projection, saved)


def _recur_backward(dtype: str, residuals: Any, gradient: Array) -> tuple[Array, None, Array, Array]:
    inputs, mask, kernel, projection, (before, memory, hidden, cell) = residuals
    kernel_t, projection_t = transposed(kernel, dtype), transposed(projection, dtype)

    def step(carry: tuple[Array, Array], at: Any) -> Any:
        d_r, d_c = carry
        gates, keep, h, c, d_out = at
        keep = keep[:, None]
        d_r = d_r + d_out
        d_kept = jnp.where(keep, d_r, 0.0)
        _, pull = jax.vjp(lambda h, c: lstm(gates, h, (c, c)), h, c)
        d_hidden, d_memory = pull((product(d_kept, projection_t, dtype), jnp.where(keep, d_c, 0.0)))
        d_before = product(d_hidden, kernel_t, dtype) + jnp.where(keep, 0.0, d_r)
        return (d_before, d_memory + jnp.where(keep, 0.0, d_c)), (d_hidden, d_kept)

    last = (jnp.zeros_like(before[0]), jnp.zeros_like(memory[0]))
    _, (d_hidden, d_kept) = jax.lax.scan(step, last, (inputs, mask, hidden, memory, gradient), reverse=True)

    def total(x: Array, d_y: Array) -> Array:
        rows, d_rows = x.reshape(-1, x.shape[-1]), d_y.reshape(-1, d_y.shape[-1])
        return product(transposed(rows, dtype), d_rows, dtype)

    return d_hidden, None, total(before, d_hidden), total(cell, d_kept)  # gates = inputs + hidden: one gradient


recur.defvjp(_recur_forward, _recur_backward)


class ProjectedLSTM(nn.Module):
    """H memory cells of which each step sees and puts out P numbers."""

    d_hidden: int
    d_projection: int
    dtype: str = "float32"

    def setup(self) -> None:
        """Create the weights of the input, of the last output, and of the projection."""
        init = nn.initializers.xavier_uniform()
        self.input = Dense(4 * self.d_hidden, dtype=self.dtype)
        self.kernel = self.param("kernel", init, (self.d_projection, 4 * self.d_hidden))
        self.projection = self.param("projection", init, (self.d_hidden, self.d_projection))

    def __call__(self, x: Array, mask: Array, reverse: bool = False) -> Array:
        """x float[B, T, D], mask bool[B, T] -> float[B, T, P]; with `reverse` from the last step to the first."""
        inputs, mask = self.input(x).swapaxes(0, 1), mask.T
        if reverse:
            inputs, mask = inputs[::-1], mask[::-1]
        outputs = recur(self.dtype, inputs, mask, self.kernel, self.projection)
        return (outputs[::-1] if reverse else outputs).swapaxes(0, 1)


class Model(nn.Module):
    """The bidirectional language model of Peters et al. (2018), section 3.4, at a smaller default size.

    widths, filters: of the convolutions, so many filters of each width. d_projection: P, of words and of each layer's
    output in each direction. A layer adds to what it reads, but for the first. dropout: on what a layer reads and on
    what the softmax reads. vocab_size: of the softmax alone; a word is read by its characters.
    """

    vocab_size: int
    max_characters: int = 20
    d_character: int = 16
    widths: Sequence[int] = (1, 2, 3, 4, 5)
    filters: Sequence[int] = (32, 32, 64, 128, 128)
    num_highways: int = 2
    num_layers: int = 2
    d_hidden: int = 512
    d_projection: int = 128
    dropout: float = 0.1
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """ValueError on hyperparameters that cannot be meant."""
        check_choices(self, CHOICES)
        check_positive(self, "d_character", "num_layers", "d_hidden", "d_projection")
        check_rates(self, "dropout")
        if self.max_characters < 3:
            raise ValueError(f"max_characters={self.max_characters} must be at least 3: begin and end are two of them")
        if self.num_highways < 0:
            raise ValueError(f"num_highways={self.num_highways} is negative")
        if not self.widths or len(self.widths) != len(self.filters) or min(*self.widths, *self.filters) < 1:
            raise ValueError(
                f"widths={tuple(self.widths)} and filters={tuple(self.filters)}: as many numbers of filters as widths, "
                "at least one, all of 1 or more"
            )
        super().__post_init__()

    def setup(self) -> None:
        """Create the encoder of characters, the layers of both directions, and the softmax."""
        self.characters = CharacterEncoder(
            self.d_character, self.widths, self.filters, self.num_highways, self.d_projection, self.dtype
        )
        lstm = functools.partial(ProjectedLSTM, self.d_hidden, self.d_projection, self.dtype)
        self.forward = [lstm() for _ in range(self.num_layers)]
        self.backward = [lstm() for _ in range(self.num_layers)]
        self.drop = Dropout(self.dropout)
        init = nn.initializers.normal(self.d_projection**-0.5)
        self.output_table = self.param("output_table", init, (self.vocab_size, self.d_projection))
        self.output_bias = self.param("output_bias", nn.initializers.zeros, (self.vocab_size,))

    def _run(self, x: Array, mask: Array, train: bool, reverse: bool) -> list[Array]:
        """The outputs of each layer of one direction."""
        outputs = []
        for number, layer in enumerate(self.backward if reverse else self.forward):
            y = layer(self.drop(x, train), mask, reverse)
            x = x + y if number else y
            outputs.append(x)
        return outputs

    def __call__(self, characters: Array, train: bool = False) -> tuple[Array, Array]:
        """Characters int[B, T, C] of T words -> what the softmax reads of either direction, float[B, T, P + 1].

        The first at t has seen the words up to t and tells of the one at t + 1; the second has seen those from t on and
        tells of the one at t - 1. The last of P + 1 is 1; `output_kernel` is what they are multiplied with.
        """
        x, mask = self.characters(characters), jnp.ones(characters.shape[:2], bool)
        return self._top(self._run(x, mask, train, False), train), self._top(self._run(x, mask, train, True), train)

    def _top(self, outputs: list[Array], train: bool) -> Array:
        top = self.drop(outputs[-1], train)
        return jnp.concatenate([top, jnp.ones((*top.shape[:-1], 1))], axis=-1)

    def output_kernel(self) -> Array:
        """-> float[P + 1, V] of the softmax, biases last."""
        return jnp.concatenate([self.output_table.T, self.output_bias[None]])

    def states(self, characters: Array, mask: Array) -> Array:
        """Characters int[B, T, C], mask bool[B, T] (False: padding) -> float[L + 1, B, T, 2 P], forward then backward.

        Layer 0 is the word's own vector, twice (section 3.2).
        """
        x = self.characters(characters)
        both = zip(self._run(x, mask, False, False), self._run(x, mask, False, True), strict=True)
        return jnp.stack([jnp.concatenate(pair, axis=-1) for pair in ((x, x), *both)])
