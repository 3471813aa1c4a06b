"""Long short-term memory-networks (LSTMN; Cheng et al., 2016): LSTMs with attention to all their earlier states."""

import functools
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax.models.layers.cells import CELLS, State, lstm, where_state
from nmt_jax.models.layers.dense import product
from nmt_jax.models.layers.recurrent import Cell
from nmt_jax.models.layers.scaled_attention import MASKED
from nmt_jax.models.layers.scores import Additive

ALL_CELLS = (*CELLS, "lstmn")  # decoders need a state of constant size, which an LSTMN does not have


class Weights(NamedTuple):
    """Weights of what a step reads from earlier steps."""

    query: Array  # W_r float[H, H]
    key: Array  # W_h float[H, H]
    vector: Array  # v float[H]
    kernel: Array  # of the gates, float[H, 4 H]
    bias: Array  # float[4 H]


class Tapes(NamedTuple):
    """What steps write, float[B, H] of one step and float[B, T, H] of all: W_h h_i, h_i and c_i."""

    key: Array
    hidden: Array
    memory: Array


class Inputs(NamedTuple):
    """Contributions of x_t to the gates, float[..., 4 H], and to the query, W_x x_t float[..., H]."""

    gates: Array
    query: Array


def attend(
    dtype: str, weights: Weights, tapes: Tapes, read: Array, inputs: Inputs, seen: Array
) -> tuple[Tapes, Array, Array]:
    """Step t: r_{t-1} float[B, H], steps to read `seen` bool[B, T] -> what it writes, r_t, and s float32[B, T].

    Cheng et al. (2016), eq. 4 to 9; the paper writes r and m as h and c with a tilde:
    a_i = v^T tanh(W_h h_i + W_x x_t + W_r r_{t-1}), s = softmax(a),
    r_t = sum_i s_i h_i, m_t = sum_i s_i c_i (zero at the first step),
    h_t, c_t = lstm(x_t, r_t, m_t).
    """
    query = inputs.query + product(read, weights.query, dtype)
    scores = jnp.tanh(query[:, None] + tapes.key) @ weights.vector
    shares = jax.nn.softmax(jnp.where(seen, scores, MASKED)) * seen
    r, m = (jnp.einsum("bt,bth->bh", shares, tape) for tape in (tapes.hidden, tapes.memory))
    h, c = lstm(inputs.gates, product(r, weights.kernel, dtype) + weights.bias[None], (r, m))
    return Tapes(product(h, weights.key, dtype), h, c), r, shares


def _step(
    dtype: str, mask: Array, t: Array, weights: Weights, tapes: Tapes, state: State, inputs: Inputs
) -> tuple[Tapes, State, tuple[Array, Array]]:
    """`attend` of step t -> what it writes, the next state, and the output and s.

    state: r, h and c after the last real step. mask bool[T, B]: padding writes what no step reads, and leaves the state
    unchanged.
    """
    seen = mask.T & (jnp.arange(len(mask)) < t)[None]
    written, found, shares = attend(dtype, weights, tapes, state[0], inputs, seen)
    state = where_state(mask[t], (found, written.hidden, written.memory), state)
    return written, state, (state[1], shares)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def recur(dtype: str, inputs: Inputs, mask: Array, weights: Weights) -> tuple[Array, State, Array]:
    """All T steps: inputs float[T, B, ...], mask bool[T, B] -> outputs float[T, B, H], last h and c, s float[T, B, T].

    A step reads only what earlier steps have written. So the gradient reads the final tapes, which are O(B T H), where
    JAX's own rule would keep a copy of them for each step.
    """
    return _recur_forward(dtype, inputs, mask, weights)[0]


def _recur_forward(dtype: str, inputs: Inputs, mask: Array, weights: Weights) -> tuple[tuple[Array, State, Array], Any]:
    steps, batch, d_hidden = inputs.query.shape
    zero = jnp.zeros((batch, d_hidden))
    tapes = Tapes(*(jnp.zeros((batch, steps, d_hidden)),) * 3)

    def step(carry: Any, at: Any) -> Any:
        tapes, state = carry
        written, new, out = _step(dtype, mask, at[1], weights, tapes, state, at[0])
        write = functools.partial(jax.lax.dynamic_update_index_in_dim, index=at[1], axis=1)
        return (jax.tree.map(write, tapes, written), new), (out, state)

    start = tapes, (zero,) * 3
    (tapes, (_, *last)), ((outputs, shares), before) = jax.lax.scan(step, start, (inputs, jnp.arange(steps)))
    return (outputs, tuple(last), shares), (inputs, mask, weights, tapes, before)


def _recur_backward(dtype: str, residuals: Any, gradients: tuple[Array, State, Array]) -> tuple[Inputs, None, Weights]:
    inputs, mask, weights, tapes, before = residuals
    d_outputs, d_last, d_shares = gradients

    def step(carry: Any, at: Any) -> Any:
        d_tapes, d_state, d_weights = carry
        t, x, state, d_out = at
        d_written = jax.tree.map(lambda tape: jax.lax.dynamic_index_in_dim(tape, t, 1, keepdims=False), d_tapes)
        _, pull = jax.vjp(functools.partial(_step, dtype, mask, t), weights, tapes, state, x)
        more_weights, more_tapes, d_state, d_x = pull((d_written, d_state, d_out))
        d_tapes, d_weights = jax.tree.map(jnp.add, (d_tapes, d_weights), (more_tapes, more_weights))
        return (d_tapes, d_state, d_weights), d_x

    zeros = jax.tree.map(jnp.zeros_like, (tapes, weights))
    start = zeros[0], (jnp.zeros_like(d_last[0]), *d_last), zeros[1]
    steps = jnp.arange(len(mask)), inputs, before, (d_outputs, d_shares)
    (_, _, d_weights), d_inputs = jax.lax.scan(step, start, steps, reverse=True)
    return d_inputs, None, d_weights


recur.defvjp(_recur_forward, _recur_backward)


class LSTMN(nn.Module):
    """A long short-term memory-network: intra-attention to all earlier states, instead of the last one alone."""

    d_hidden: int
    dtype: str = "float32"

    def setup(self) -> None:
        self.cell = Cell("lstm", self.d_hidden, self.dtype)
        self.score = Additive(self.d_hidden, self.dtype)

    def zero_state(self, batch_size: int, max_length: int) -> State:
        """The state before the first step of `__call__`, of T steps at most.

        h_{t-1} and r_{t-1} float[B, H], t int[B], and the tapes of W_h h, h and c, float[B, T, H].
        """
        vector, tape = (jnp.zeros((batch_size, *rest, self.d_hidden)) for rest in ((), (max_length,)))
        return vector, vector, jnp.zeros(batch_size, jnp.int32), tape, tape, tape

    def __call__(self, x: Array, state: State) -> State:
        """One step: x float[B, D], state as of `zero_state` -> the next state; the first is h_t."""
        _, read, step, *tapes = state
        seen = jnp.arange(tapes[0].shape[1])[None] < step[:, None]
        inputs, weights = self._prepare(x)
        written, found, _ = attend(self.dtype, weights, Tapes(*tapes), read, inputs, seen)
        rows = jnp.arange(len(x))
        tapes = [tape.at[rows, step].set(slot) for tape, slot in zip(tapes, written, strict=True)]
        return written.hidden, found, step + 1, *tapes

    def _prepare(self, x: Array) -> tuple[Inputs, Weights]:
        """What depends on x float[..., D] alone, and the weights of the rest."""
        if self.is_initializing():
            self.score(
                jnp.zeros((1, 1, x.shape[-1] + self.d_hidden)), self.score.prepare(jnp.zeros((1, 1, self.d_hidden)))
            )
        score = self.variables["params"]["score"]
        of_x, of_read = jnp.split(score["query"]["kernel"], [x.shape[-1]])  # the query reads x_t and r_{t-1}
        query = product(x.reshape(-1, x.shape[-1]), of_x, self.dtype).reshape(*x.shape[:-1], self.d_hidden)
        weights = Weights(of_read, score["key"]["kernel"], score["vector"], self.cell.kernel, self.cell.bias)
        return Inputs(self.cell.input(x).astype(jnp.float32), query), weights

    def run(self, x: Array, mask: Array, reverse: bool = False) -> tuple[Array, State]:
        """All steps: x float[B, T, D], mask bool[B, T] -> outputs float[B, T, H] and h, c after the last real step."""
        return self.run_with_weights(x, mask, reverse)[:2]

    def run_with_weights(self, x: Array, mask: Array, reverse: bool = False) -> tuple[Array, State, Array]:
        """`run`, and the attention weights float32[B, T, T] of step t (row) over the steps i."""
        inputs, weights = self._prepare(x.swapaxes(0, 1))
        mask = jnp.asarray(mask).T
        if reverse:
            inputs, mask = Inputs(*(one[::-1] for one in inputs)), mask[::-1]
        outputs, last, shares = recur(self.dtype, inputs, mask, weights)
        if reverse:
            outputs, shares = outputs[::-1], shares[::-1, :, ::-1]
        return outputs.swapaxes(0, 1), last, shares.swapaxes(0, 1)
