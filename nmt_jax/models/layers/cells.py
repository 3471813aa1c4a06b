"""Recurrent cells as functions of one step: LSTM, GRU and the vanilla cell."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

State = tuple[Array, ...]  # float[..., H] each; the first is the output of the cell


def lstm(inputs: Array, hidden: Array, state: State) -> State:
    """Long short-term memory (Hochreiter and Schmidhuber, 1997; with a forget gate, Gers et al., 2000).

    inputs, hidden float[..., 4 H]: contributions of x_t and of h_{t-1} to the gates i, f, o and the candidate g.
    c_t = f c_{t-1} + i g, h_t = o tanh(c_t), with f = sigmoid(. + 1), so that a new cell remembers (Jozefowicz et al.,
    2015).
    """
    i, f, o, g = jnp.split(inputs + hidden, 4, axis=-1)
    c = jax.nn.sigmoid(f + 1.0) * state[1] + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def gru(inputs: Array, hidden: Array, state: State) -> State:
    """Gated recurrent unit (Cho et al., 2014), with the reset gate applied after the product, as in cuDNN and PyTorch.

    inputs, hidden float[..., 3 H]: contributions to the gates r and z and to the candidate n.
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


class CellType(NamedTuple):
    """A cell: its function, its number of gates and of state vectors, and whether it reads only inputs + hidden."""

    function: Callable[[Array, Array, State], State]
    num_gates: int
    num_vectors: int
    additive: bool


CELLS = {
    "lstm": CellType(lstm, 4, 2, additive=True),
    "gru": CellType(gru, 3, 1, additive=False),
    "rnn": CellType(vanilla, 1, 1, additive=True),
}


def zero_state(cell: str, shape: tuple[int, ...]) -> State:
    """The state before the first step, float[*shape] each."""
    return (jnp.zeros(shape),) * CELLS[cell].num_vectors


def where_state(keep: Array, new: State, old: State) -> State:
    """`new` where keep bool[...] is True, else `old`: padding changes no state."""
    return jax.tree.map(lambda a, b: jnp.where(keep[..., None], a, b), new, old)
