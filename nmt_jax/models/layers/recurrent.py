"""Recurrent networks: the cells (LSTM, GRU, vanilla), layers of them over a sequence, and encoders of such layers."""

import functools
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from nmt_jax.models.layers.attention import MASKED
from nmt_jax.models.layers.dense import Dense, product, transposed
from nmt_jax.models.layers.dropout import SequenceDropout
from nmt_jax.models.layers.scores import Additive

Array = jax.Array
State = tuple[Array, ...]  # float[..., H] each; the first is what the cell puts out


def lstm(inputs: Array, hidden: Array, state: State) -> State:
    """Long short-term memory (Hochreiter and Schmidhuber, 1997; with a forget gate, Gers et al., 2000).

    inputs, hidden float[..., 4 H]: what the gates i, f, o and the candidate g get from x_t and from h_{t-1}.
    c_t = f c_{t-1} + i g, h_t = o tanh(c_t), with f = sigmoid(. + 1) so that a new cell remembers (Jozefowicz et al.,
    2015).
    """
    i, f, o, g = jnp.split(inputs + hidden, 4, axis=-1)
    c = jax.nn.sigmoid(f + 1.0) * state[1] + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def gru(inputs: Array, hidden: Array, state: State) -> State:
    """Gated recurrent unit (Cho et al., 2014), the reset gate applied after the product, as cuDNN and PyTorch do.

    inputs, hidden float[..., 3 H]: of the gates r and z and of the candidate n.
    h_t = (1 - z) tanh(n_x + r n_h) + z h_{t-1}.
    """
    r_x, z_x, n_x = jnp.split(inputs, 3, axis=-1)
    r_h, z_h, n_h = jnp.split(hidden, 3, axis=-1)
    z = jax.nn.sigmoid(z_x + z_h)
    n = jnp.tanh(n_x + jax.nn.sigmoid(r_x + r_h) * n_h)
    return ((1.0 - z) * n + z * state[0],)


def vanilla(inputs: Array, hidden: Array, state: State) -> State:
    """h_t = tanh(W x_t + U h_{t-1} + b) (Elman, 1990); inputs, hidden float[..., H]."""
    return (jnp.tanh(inputs + hidden),)


# A cell's function, how many times H its gates take, and how many vectors its state has.
CELLS: dict[str, tuple[Callable[[Array, Array, State], State], int, int]] = {
    "lstm": (lstm, 4, 2),
    "gru": (gru, 3, 1),
    "rnn": (vanilla, 1, 1),
}
ENCODER_CELLS = (*CELLS, "lstmn")  # what an encoder, which has all its input at hand, may be made of


def zero_state(cell: str, shape: tuple[int, ...]) -> State:
    """The state before the first step, float[*shape] each."""
    return (jnp.zeros(shape),) * CELLS[cell][2]


def where_state(keep: Array, new: State, old: State) -> State:
    """`new` where `keep` bool[...] holds, else `old`: padding changes no state."""
    return jax.tree.map(lambda a, b: jnp.where(keep[..., None], a, b), new, old)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def recur(cell: str, dtype: str, inputs: Array, mask: Array, kernel: Array, bias: Array, state: State) -> State:
    """Run a cell over time: inputs float[T, B, gates H], mask bool[T, B], kernel float[H, gates H], bias -> all states.

    Returns each vector of the state, float[T, B, H]. The gradient of the kernel is one product over all steps, instead
    of a sum that is read and written at every step.
    """
    return _recur(cell, dtype, inputs, mask, kernel, bias, state)[0]


def _recur(
    cell: str, dtype: str, inputs: Array, mask: Array, kernel: Array, bias: Array, state: State
) -> tuple[State, State, Array]:
    """All states, the states before each step, and what the gates got from them, float[T, B, gates H]."""
    function = CELLS[cell][0]

    def step(old: State, at: tuple[Array, Array]) -> tuple[State, tuple[State, State, Array]]:
        hidden = product(old[0], kernel, dtype) + bias[None]
        new = where_state(at[1], function(at[0], hidden, old), old)
        return new, (new, old, hidden)

    return jax.lax.scan(step, state, (inputs, mask))[1]


def _recur_forward(
    cell: str, dtype: str, inputs: Array, mask: Array, kernel: Array, bias: Array, state: State
) -> tuple[State, Any]:
    kernel = kernel.astype(dtype)
    states, before, hidden = _recur(cell, dtype, inputs, mask, kernel, bias, state)
    return states, (inputs, mask, kernel, before, hidden)


def _recur_backward(cell: str, dtype: str, saved: Any, gradient: State) -> tuple[Array, None, Array, Array, State]:
    inputs, mask, kernel, before, hidden = saved
    function, kernel_t = CELLS[cell][0], transposed(kernel, dtype)

    def step(d_state: State, at: Any) -> tuple[State, tuple[Array, Array]]:
        x, keep, h, old, d_out = at
        d_state = jax.tree.map(jnp.add, d_state, d_out)
        _, pull = jax.vjp(lambda x, h, old: where_state(keep, function(x, h, old), old), x, h, old)
        d_x, d_h, d_old = pull(d_state)
        return (d_old[0] + product(d_h, kernel_t, dtype), *d_old[1:]), (d_x, d_h)

    last = jax.tree.map(lambda leaf: jnp.zeros_like(leaf[0]), before)
    d_state, (d_inputs, d_hidden) = jax.lax.scan(step, last, (inputs, mask, hidden, before, gradient), reverse=True)
    rows, d_rows = (x.reshape(-1, x.shape[-1]) for x in (before[0], d_hidden))
    return d_inputs, None, product(transposed(rows, dtype), d_rows, dtype), d_rows.sum(axis=0), d_state


recur.defvjp(_recur_forward, _recur_backward)


class Cell(nn.Module):
    """A cell with its weights: one step for many sequences, or all steps of a batch."""

    cell: str
    d_hidden: int
    dtype: str = "float32"

    def setup(self) -> None:
        """Weights of the input and of the state; the latter orthogonal (Saxe et al., 2014), gate by gate."""
        gates = CELLS[self.cell][1]
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
        return CELLS[self.cell][0](self.input(x), hidden + jnp.broadcast_to(self.bias, hidden.shape), state)

    def run(self, x: Array, mask: Array, state: State | None = None, reverse: bool = False) -> tuple[Array, State]:
        """All steps: x float[B, T, D], mask bool[B, T] -> outputs float[B, T, H], the state after the last real step.

        state: before the first step, zero if None. With `reverse` from the last step to the first; output t then tells
        of the steps from t on.
        """
        state = state or zero_state(self.cell, (x.shape[0], self.d_hidden))
        inputs, mask = self.input(x).swapaxes(0, 1), mask.T
        if reverse:
            inputs, mask = inputs[::-1], mask[::-1]
        states = recur(self.cell, self.dtype, inputs, mask, self.kernel, self.bias, state)
        outputs = states[0][::-1] if reverse else states[0]
        return outputs.swapaxes(0, 1), jax.tree.map(lambda leaf: leaf[-1], states)


class LSTMN(nn.Module):
    """A long short-term memory-network: intra-attention to all earlier states, instead of the last one alone.

    Cheng et al. (2016), eq. 4 to 9, with h_i and c_i what the steps i < t have written on two tapes:
    a_i = v^T tanh(W_h h_i + W_x x_t + W_r r_{t-1}), s = softmax(a) over i < t,
    r_t = sum_i s_i h_i, m_t = sum_i s_i c_i (zero at the first step, which has nothing to look at),
    h_t, c_t = lstm(x_t, r_t, m_t).
    The paper writes r and m as h and c with a tilde. Training keeps the tapes of every step: O(B T^2 H) memory.
    """

    d_hidden: int
    dtype: str = "float32"

    def setup(self) -> None:
        """The weights of an LSTM, and W_h, [W_x; W_r] and v."""
        self.cell = Cell("lstm", self.d_hidden, self.dtype)
        self.score = Additive(self.d_hidden, self.dtype)

    def run(self, x: Array, mask: Array, reverse: bool = False) -> tuple[Array, State]:
        """All steps: x float[B, T, D], mask bool[B, T] -> outputs float[B, T, H], the state after the last real step.

        The weights float32[B, T, T] of step t (row) on step i are sown as the intermediate `weights`.
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
    """Layers of a cell over a sequence, one after the other or in both directions (Schuster and Paliwal, 1997).

    cell: one of ENCODER_CELLS. d_hidden: width of a layer's output, half of it from each direction if `bidirectional`.
    residual: a layer adds to what it reads (Wu et al., 2016) where both are equally wide. variational_dropout: one mask
    for all steps of a sequence (Gal and Ghahramani, 2016).
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
        """The cells of each layer: forwards, and backwards if both."""
        width = self.d_hidden // 2 if self.bidirectional else self.d_hidden
        directions = range(1 + self.bidirectional)
        make = LSTMN if self.cell == "lstmn" else functools.partial(Cell, self.cell)
        self.layers = [[make(width, self.dtype) for _ in directions] for _ in range(self.num_layers)]
        self.drop = SequenceDropout(self.dropout, self.variational_dropout)

    def __call__(self, x: Array, mask: Array, train: bool) -> tuple[Array, tuple[State, ...]]:
        """x float[B, S, D], mask bool[B, S] -> float[B, S, H], and of each layer the last state, float[B, H]."""
        last = []
        for cells in self.layers:
            dropped = self.drop(x, train)
            runs = [cell.run(dropped, mask, reverse=bool(backwards)) for backwards, cell in enumerate(cells)]
            y = jnp.concatenate([outputs for outputs, _ in runs], axis=-1)
            x = x + y if self.residual and x.shape == y.shape else y
            last.append(jax.tree.map(lambda *ends: jnp.concatenate(ends, axis=-1), *(state for _, state in runs)))
        return x, tuple(last)
