"""Recurrent layers: a cell with its weights, an LSTM with projection, an LSTM with intra-attention, and encoders."""

import functools
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from nmt_jax.models.layers.attention import MASKED
from nmt_jax.models.layers.dense import Dense, product
from nmt_jax.models.layers.dropout import SequenceDropout
from nmt_jax.models.layers.recurrence import CELLS, State, Weights, run, where_state, zero_state
from nmt_jax.models.layers.scores import Additive

Array = jax.Array

ENCODER_CELLS = (*CELLS, "lstmn")  # encoders see their whole input at once, which an LSTMN needs


class Cell(nn.Module):
    """A cell with its weights: one step for many sequences, or all steps of a batch."""

    cell: str
    d_hidden: int
    dtype: str = "float32"

    def setup(self) -> None:
        """Create the weights of the input and of the state; the latter orthogonal (Saxe et al., 2014), gate by gate."""
        gates = CELLS[self.cell].num_gates
        self.input = Dense(gates * self.d_hidden, dtype=self.dtype)
        orthogonal = nn.initializers.orthogonal()
        self.kernel = self.param(
            "kernel",
            lambda rng, h: jnp.concatenate([orthogonal(key, (h, h)) for key in jax.random.split(rng, gates)], axis=1),
            self.d_hidden,
        )
        self.bias = self.param("bias", nn.initializers.zeros, (gates * self.d_hidden,))

    def __call__(self, x: Array, state: State) -> State:
        """One step: x float[..., D], state float[..., H] each -> the next state."""
        rows = state[0].reshape(-1, self.d_hidden)
        hidden = product(rows, self.kernel, self.dtype).reshape(*state[0].shape[:-1], -1)
        return CELLS[self.cell].function(self.input(x), hidden + jnp.broadcast_to(self.bias, hidden.shape), state)

    def run(self, x: Array, mask: Array, state: State | None = None, reverse: bool = False) -> tuple[Array, State]:
        """All steps: x float[B, T, D], mask bool[B, T] -> outputs float[B, T, H], the state after the last real step.

        state: before the first step, zero by default. With `reverse` the steps run from the last to the first, so that
        output t depends on the steps t .. T-1.
        """
        state = state or zero_state(self.cell, (x.shape[0], self.d_hidden))
        return run(self.cell, self.dtype, self.input(x), mask, Weights(self.kernel, self.bias), state, reverse)


class ProjectedLSTM(nn.Module):
    """An LSTM with H memory cells whose output is projected to P units (Sak et al., 2014, eq. 1 to 6).

    r_t = W_r (o tanh c_t); the next step reads r_t. Without peephole connections.
    """

    d_hidden: int
    d_projection: int
    dtype: str = "float32"

    def setup(self) -> None:
        """Create the weights of the input, of the previous output, and of the projection."""
        init = nn.initializers.xavier_uniform()
        self.input = Dense(4 * self.d_hidden, dtype=self.dtype)
        self.kernel = self.param("kernel", init, (self.d_projection, 4 * self.d_hidden))
        self.projection = self.param("projection", init, (self.d_hidden, self.d_projection))

    def __call__(self, x: Array, mask: Array, reverse: bool = False) -> Array:
        """x float[B, T, D], mask bool[B, T] -> float[B, T, P]; with `reverse` from the last step to the first."""
        state = (jnp.zeros((x.shape[0], self.d_projection)), jnp.zeros((x.shape[0], self.d_hidden)))
        weights = Weights(self.kernel, projection=self.projection)
        return run("lstm", self.dtype, self.input(x), mask, weights, state, reverse)[0]


class LSTMN(nn.Module):
    """A long short-term memory-network: intra-attention to all earlier states, instead of the last one alone.

    Cheng et al. (2016), eq. 4 to 9. h_i and c_i, written by the steps i < t, are kept on two tapes:
    a_i = v^T tanh(W_h h_i + W_x x_t + W_r r_{t-1}), s = softmax(a) over i < t,
    r_t = sum_i s_i h_i, m_t = sum_i s_i c_i (zero at the first step),
    h_t, c_t = lstm(x_t, r_t, m_t).
    The paper writes r and m as h and c with a tilde. Training stores the tapes of every step: O(B T^2 H) memory.
    """

    d_hidden: int
    dtype: str = "float32"

    def setup(self) -> None:
        """Create the weights of an LSTM, and W_h, [W_x; W_r] and v."""
        self.cell = Cell("lstm", self.d_hidden, self.dtype)
        self.score = Additive(self.d_hidden, self.dtype)

    def run(self, x: Array, mask: Array, reverse: bool = False) -> tuple[Array, State]:
        """All steps: x float[B, T, D], mask bool[B, T] -> outputs float[B, T, H], the state after the last real step.

        The attention weights float32[B, T, T] of step t (row) over the steps i are sown as the intermediate `weights`.
        """
        if reverse:
            x, mask = x[:, ::-1], mask[:, ::-1]
        zero = zero_state("lstm", (x.shape[0], self.d_hidden))
        tapes = (jnp.zeros((*x.shape[:2], self.d_hidden)),) * 3  # of W_h h, h and c

        def step(layer: "LSTMN", carry: tuple[State, State, State], x: Array, keep: Array, t: Array) -> Any:
            tapes, read, last = carry
            seen = mask & (jnp.arange(mask.shape[1]) < t)[None]
            scores = layer.score(jnp.concatenate([x, read[0]], axis=-1)[:, None], tapes[0])[:, 0]
            weights = jax.nn.softmax(jnp.where(seen, scores.astype(jnp.float32), MASKED)) * seen
            found = tuple(jnp.einsum("bt,bth->bh", weights, tape) for tape in tapes[1:])
            new = layer.cell(x, found)
            written = (layer.score.prepare(new[0]), *new)
            tapes = tuple(tape.at[:, t].set(slot) for tape, slot in zip(tapes, written, strict=True))
            last = where_state(keep, new, last)
            return (tapes, where_state(keep, found, read), last), (last[0], weights)

        scan = nn.scan(step, variable_broadcast="params", split_rngs={"params": False}, in_axes=(1, 1, 0), out_axes=1)
        (_, _, last), (outputs, weights) = scan(self, (tapes, zero, zero), x, mask, jnp.arange(x.shape[1]))
        if reverse:
            outputs, weights = outputs[:, ::-1], weights[:, ::-1, ::-1]
        self.sow("intermediates", "weights", weights)
        return outputs, last


class Encoder(nn.Module):
    """Stacked recurrent layers, in one direction or in both (Schuster and Paliwal, 1997).

    cell: one of ENCODER_CELLS. d_hidden: width of a layer's output, half of it from each direction if `bidirectional`.
    residual: a layer's output is added to its input where both have the same width (Wu et al., 2016).
    variational_dropout: one mask for all steps of a sequence (Gal and Ghahramani, 2016).
    """

    cell: str
    num_layers: int
    d_hidden: int
    bidirectional: bool = True
    residual: bool = False
    dropout: float = 0.0
    variational_dropout: bool = False
    dtype: str = "float32"

    def setup(self) -> None:
        """Create the cells of each layer: one, or a forward and a backward one."""
        width = self.d_hidden // 2 if self.bidirectional else self.d_hidden
        directions = range(1 + self.bidirectional)
        make = LSTMN if self.cell == "lstmn" else functools.partial(Cell, self.cell)
        self.layers = [[make(width, self.dtype) for _ in directions] for _ in range(self.num_layers)]
        self.drop = SequenceDropout(self.dropout, self.variational_dropout)

    def __call__(self, x: Array, mask: Array, train: bool) -> tuple[Array, tuple[State, ...]]:
        """x float[B, S, D], mask bool[B, S] -> float[B, S, H], and the last state of each layer, float[B, H] each."""
        last = []
        for cells in self.layers:
            dropped = self.drop(x, train)
            runs = [cell.run(dropped, mask, reverse=bool(backwards)) for backwards, cell in enumerate(cells)]
            y = jnp.concatenate([outputs for outputs, _ in runs], axis=-1)
            x = x + y if self.residual and x.shape == y.shape else y
            last.append(jax.tree.map(lambda *ends: jnp.concatenate(ends, axis=-1), *(state for _, state in runs)))
        return x, tuple(last)
