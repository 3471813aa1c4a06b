"""Recurrent layers: the loop of a cell over a sequence, and cells with weights."""

import functools
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax.models.layers.cells import CELLS, State, where_state, zero_state
from nmt_jax.models.layers.dense import Dense, product, transposed
from nmt_jax.models.layers.dropout import Dropout


class Weights(NamedTuple):
    """Recurrent weights of a cell.

    With a projection the output of each step is r_t = W_r h_t (Sak et al., 2014, eq. 6), and P replaces H as its width.
    """

    kernel: Array  # float[H, gates H]
    bias: Array | None = None  # float[gates H]
    projection: Array | None = None  # float[H, P]


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def recur(cell: str, dtype: str, inputs: Array, mask: Array, weights: Weights, state: State) -> tuple[Array, State]:
    """Run a cell over T steps -> its outputs float[T, B, H], and the last state.

    inputs float[T, B, gates H]: contributions of x_t to the gates. mask bool[T, B]: False leaves the state unchanged.
    The gradient of the weights is one product over all steps, where JAX's own rule would add to it at every step.
    """
    return _scan(cell, dtype, inputs, mask, weights, state)[:2]


def _scan(
    cell: str, dtype: str, inputs: Array, mask: Array, weights: Weights, state: State
) -> tuple[Array, State, tuple[State, Array, Array | None]]:
    """Outputs and last state; and for each step the state before it, its `hidden`, and its output to be projected."""
    function = CELLS[cell].function
    kernel, bias, projection = weights

    def step(old: State, at: tuple[Array, Array]) -> Any:
        hidden = product(old[0], kernel, dtype)
        if bias is not None:
            hidden = hidden + bias[None]
        output, *rest = function(at[0], hidden, old)
        projected = output if projection is None else product(output, projection, dtype)
        new = where_state(at[1], (projected, *rest), old)
        return new, (new[0], old, hidden, None if projection is None else output)

    last, (outputs, *saved) = jax.lax.scan(step, state, (inputs, mask))
    return outputs, last, tuple(saved)


def _recur_forward(
    cell: str, dtype: str, inputs: Array, mask: Array, weights: Weights, state: State
) -> tuple[tuple[Array, State], Any]:
    projection = None if weights.projection is None else weights.projection.astype(dtype)
    weights = weights._replace(kernel=weights.kernel.astype(dtype), projection=projection)
    outputs, last, saved = _scan(cell, dtype, inputs, mask, weights, state)
    return (outputs, last), (inputs, mask, weights, saved)


def _recur_backward(
    cell: str, dtype: str, residuals: Any, gradients: tuple[Array, State]
) -> tuple[Array, None, Weights, State]:
    inputs, mask, weights, (before, hidden, unprojected) = residuals
    d_outputs, d_last = gradients
    function, additive = CELLS[cell].function, CELLS[cell].additive
    kernel_t = transposed(weights.kernel, dtype)
    projection_t = None if weights.projection is None else transposed(weights.projection, dtype)

    def step(d_state: State, at: Any) -> Any:
        x, keep, h, old, d_output = at
        d_state = (d_state[0] + d_output, *d_state[1:])
        zeros = jax.tree.map(jnp.zeros_like, d_state)
        d_new, d_kept = where_state(keep, d_state, zeros), where_state(keep, zeros, d_state)
        d_cell = d_new[0] if projection_t is None else product(d_new[0], projection_t, dtype)
        _, pull = jax.vjp(function, x, h, old)
        d_x, d_h, d_old = pull((d_cell, *d_new[1:]))
        d_old = jax.tree.map(jnp.add, d_old, d_kept)
        d_gates = (d_h,) if additive else (d_x, d_h)
        return (d_old[0] + product(d_h, kernel_t, dtype), *d_old[1:]), (d_gates, d_new[0])

    steps = (inputs, mask, hidden, before, d_outputs)
    d_state, (d_gates, d_projected) = jax.lax.scan(step, d_last, steps, reverse=True)

    def over_all_steps(x: Array, d_y: Array) -> Array:
        return product(transposed(x.reshape(-1, x.shape[-1]), dtype), d_y.reshape(-1, d_y.shape[-1]), dtype)

    d_inputs, d_hidden = d_gates[0], d_gates[-1]
    d_weights = Weights(
        over_all_steps(before[0], d_hidden),
        None if weights.bias is None else d_hidden.reshape(-1, d_hidden.shape[-1]).sum(axis=0),
        None if weights.projection is None else over_all_steps(unprojected, d_projected),
    )
    return d_inputs, None, d_weights, d_state


recur.defvjp(_recur_forward, _recur_backward)


def run(
    cell: str, dtype: str, inputs: Array, mask: Array, weights: Weights, state: State, reverse: bool
) -> tuple[Array, State]:
    """`recur` on inputs float[B, T, gates H] and mask bool[B, T], optionally from the last step to the first.

    Returns outputs float[B, T, H] and the state after the last step that is not padding.
    """
    inputs, mask = inputs.swapaxes(0, 1), mask.T
    if reverse:
        inputs, mask = inputs[::-1], mask[::-1]
    outputs, last = recur(cell, dtype, inputs, mask, weights, state)
    return (outputs[::-1] if reverse else outputs).swapaxes(0, 1), last


class Cell(nn.Module):
    """A cell with its weights: one step for many sequences, or all steps of a batch.

    weight_dropout: rate at which recurrent weights are dropped in training, the same ones in all steps and rows of a
    batch (DropConnect; Merity et al., 2018, section 2).
    """

    cell: str
    d_hidden: int
    dtype: str = "float32"
    weight_dropout: float = 0.0

    def setup(self) -> None:
        gates = CELLS[self.cell].num_gates
        self.input = Dense(gates * self.d_hidden, dtype=self.dtype)
        orthogonal = nn.initializers.orthogonal()  # gate by gate (Saxe et al., 2014)
        self.kernel = self.param(
            "kernel",
            lambda rng, h: jnp.concatenate([orthogonal(key, (h, h)) for key in jax.random.split(rng, gates)], axis=1),
            self.d_hidden,
        )
        self.bias = self.param("bias", nn.initializers.zeros, (gates * self.d_hidden,))
        self.drop_weights = Dropout(self.weight_dropout)

    def __call__(self, x: Array, state: State) -> State:
        """One step: x float[..., D], state float[..., H] each -> the next state."""
        rows = state[0].reshape(-1, self.d_hidden)
        hidden = product(rows, self.kernel, self.dtype).reshape(*state[0].shape[:-1], -1)
        return CELLS[self.cell].function(self.input(x), hidden + jnp.broadcast_to(self.bias, hidden.shape), state)

    def run(
        self, x: Array, mask: Array, state: State | None = None, reverse: bool = False, train: bool = False
    ) -> tuple[Array, State]:
        """All steps: x float[B, T, D], mask bool[B, T] -> outputs float[B, T, H], the state after the last real step.

        state: before the first step, zero by default. With `reverse` the steps run from the last to the first, so that
        output t depends on the steps t .. T-1.
        """
        state = state or zero_state(self.cell, (x.shape[0], self.d_hidden))
        weights = Weights(self.drop_weights(self.kernel, train), self.bias)
        return run(self.cell, self.dtype, self.input(x), mask, weights, state, reverse)


class ProjectedLSTM(nn.Module):
    """An LSTM with H memory cells whose output is projected to P units (Sak et al., 2014, eq. 1 to 6).

    r_t = W_r (o tanh c_t); the next step reads r_t. Without peephole connections.
    """

    d_hidden: int
    d_projection: int
    dtype: str = "float32"

    def setup(self) -> None:
        init = nn.initializers.xavier_uniform()
        self.input = Dense(4 * self.d_hidden, dtype=self.dtype)
        self.kernel = self.param("kernel", init, (self.d_projection, 4 * self.d_hidden))
        self.projection = self.param("projection", init, (self.d_hidden, self.d_projection))

    def __call__(self, x: Array, mask: Array, reverse: bool = False) -> Array:
        """x float[B, T, D], mask bool[B, T] -> float[B, T, P]; with `reverse` from the last step to the first."""
        state = (jnp.zeros((x.shape[0], self.d_projection)), jnp.zeros((x.shape[0], self.d_hidden)))
        weights = Weights(self.kernel, projection=self.projection)
        return run("lstm", self.dtype, self.input(x), mask, weights, state, reverse)[0]
