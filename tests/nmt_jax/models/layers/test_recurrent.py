"""Cells against their equations, the explicit gradient against JAX's, and the absence of influence of padding."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax.models.layers import lstmn, recurrent
from nmt_jax.models.layers.cells import CELLS, zero_state
from nmt_jax.models.layers.dropout import SequenceDropout
from nmt_jax.models.layers.lstmn import ALL_CELLS, LSTMN
from nmt_jax.models.layers.recurrent import Cell, Weights
from nmt_jax.models.layers.recurrent_encoder import Encoder
from tests.fixtures.parameters import draw_parameters

T, B, D, H = 5, 3, 2, 4
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 0, 0, 0]], bool)


def normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def reference_step(cell, x, params, state):
    """One step of one sequence in NumPy, gate by gate."""
    w, b, u, c = (
        params[a][n] if n else params[a]
        for a, n in (("input", "kernel"), ("input", "bias"), ("kernel", ""), ("bias", ""))
    )
    gate = [
        (x @ w[:, k : k + H] + b[k : k + H], state[0] @ u[:, k : k + H] + c[k : k + H]) for k in range(0, w.shape[1], H)
    ]
    if cell == "rnn":
        return (np.tanh(sum(gate[0])),)
    if cell == "gru":
        r, z = sigmoid(sum(gate[0])), sigmoid(sum(gate[1]))
        return ((1 - z) * np.tanh(gate[2][0] + r * gate[2][1]) + z * state[0],)
    i, f, o, g = sigmoid(sum(gate[0])), sigmoid(sum(gate[1]) + 1), sigmoid(sum(gate[2])), np.tanh(sum(gate[3]))
    memory = f * state[1] + i * g
    return o * np.tanh(memory), memory


@pytest.fixture(params=list(CELLS))
def cell(request):
    return request.param


@pytest.fixture(params=ALL_CELLS)
def encoder_cell(request):
    return request.param


def run(module, params, x, mask, state, reverse=False):
    apply = jax.jit(lambda params, *inputs: module.apply({"params": params}, *inputs, reverse, method="run"))
    return jax.device_get(apply(params, x, mask, state))


@pytest.mark.parametrize("reverse", [False, True])
def test_a_layer_equals_its_equations(cell, reverse):
    module, x = Cell(cell, H), normal(1, B, T, D)
    state = tuple(normal(2, CELLS[cell].num_vectors, B, H))
    params = draw_parameters(module.init, x[:, 0], state)["params"]
    outputs, last = run(module, params, x, MASK, state, reverse)
    plain = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), params)
    for row in range(B):
        now = tuple(np.asarray(vector[row], np.float64) for vector in state)
        for t in reversed(range(T)) if reverse else range(T):
            if MASK[row, t]:
                now = reference_step(cell, np.asarray(x[row, t], np.float64), plain, now)
                np.testing.assert_allclose(outputs[row, t], now[0], atol=1e-6)
        jax.tree.map(lambda a, b, row=row: np.testing.assert_allclose(a[row], b, atol=1e-6), last, now)
    if not reverse:
        one, *_ = jax.jit(module.apply)({"params": params}, x[:, 0], state)
        np.testing.assert_allclose(one, outputs[:, 0], atol=1e-6)


def test_the_explicit_gradient_is_that_of_jax(cell):
    gates, vectors = CELLS[cell].num_gates, CELLS[cell].num_vectors
    arguments = (
        normal(0, T, B, gates * H),
        normal(1, H, gates * H),
        normal(2, gates * H),
        tuple(normal(3, vectors, B, H)),
    )

    def loss(function, inputs, kernel, bias, state):
        outputs, last = function(cell, "float32", inputs, jnp.asarray(MASK.T), Weights(kernel, bias), state)
        return sum((number + 1) * jnp.sin(leaf).sum() for number, leaf in enumerate((outputs, *last)))

    gradient = jax.jit(jax.grad(loss, argnums=(1, 2, 3, 4)), static_argnums=0)
    ours = gradient(recurrent.recur, *arguments)
    plain = gradient(lambda *a: recurrent._scan(*a)[:2], *arguments)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), ours, plain)


@pytest.mark.parametrize("reverse", [False, True])
def test_intra_attention_equals_its_equations(reverse):
    module, x = LSTMN(H), normal(1, B, T, D)
    mask = MASK.copy()
    mask[0, 2] = False  # a hole
    arguments = x, jnp.asarray(mask), reverse
    variables = draw_parameters(lambda key: module.init(key, *arguments, method="run"))
    apply = jax.jit(lambda variables: module.apply(variables, *arguments, method="run_with_weights"))
    outputs, last, weights = jax.device_get(apply(variables))
    params, x = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), (variables["params"], x))
    score = params["score"]
    for row in range(B):
        steps, tape, read, expected = [], [], np.zeros(H), np.zeros((T, T))
        real = np.flatnonzero(mask[row])
        for t in reversed(real) if reverse else real:
            found = np.zeros((2, H))
            if tape:
                query = np.concatenate([x[row, t], read]) @ score["query"]["kernel"]
                a = np.array([np.tanh(h @ score["key"]["kernel"] + query) @ score["vector"] for h, _ in tape])
                expected[t, steps] = np.exp(a) / np.exp(a).sum()
                found = np.einsum("i,ikh->kh", expected[t, steps], np.array(tape))
            read = found[0]
            tape.append(reference_step("lstm", x[row, t], params["cell"], found))
            steps.append(t)
            np.testing.assert_allclose(outputs[row, t], tape[-1][0], atol=1e-6)
        np.testing.assert_allclose(weights[row, real], expected[real], atol=1e-6)
        assert (weights[row, real][expected[real] == 0] == 0).all(), "a step sees padding, itself or what comes"
        np.testing.assert_allclose(np.stack(last)[:, row], tape[-1], atol=1e-6)


def lstmn_arguments(steps):
    """Inputs, mask and weights of an LSTMN."""
    weights = lstmn.Weights(normal(1, H, H), normal(2, H, H), normal(3, H), normal(4, H, 4 * H), normal(5, 4 * H))
    inputs = lstmn.Inputs(normal(6, steps, B, 4 * H), normal(7, steps, B, H))
    mask = np.arange(steps)[:, None] < np.array([steps, steps - 2, 1])
    mask[2, 0] = False  # a hole
    return inputs, jnp.asarray(mask), weights


def test_the_explicit_gradient_of_intra_attention_is_that_of_jax():
    inputs, mask, weights = lstmn_arguments(T)

    def loss(function, inputs, weights):
        outputs, last, shares = function("float32", inputs, mask, weights)
        rows = jnp.arange(1, T + 1)[None, None]  # so that shares, which sum to 1, have a gradient
        return jnp.sin(outputs).sum() + 2 * jnp.sin(last[0]).sum() + 3 * jnp.cos(last[1]).sum() + (shares * rows).sum()

    gradient = jax.jit(jax.grad(loss, argnums=(1, 2)), static_argnums=0)
    ours = gradient(lstmn.recur, inputs, weights)
    plain = gradient(lambda *arguments: lstmn._recur_forward(*arguments)[0], inputs, weights)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), ours, plain)


def test_the_gradient_of_intra_attention_keeps_no_tape_for_each_step():
    def bytes_of(steps):
        inputs, mask, weights = lstmn_arguments(steps)
        gradient = jax.jit(jax.grad(lambda weights: lstmn.recur("float32", inputs, mask, weights)[0].sum()))
        return gradient.lower(weights).compile().memory_analysis().temp_size_in_bytes

    assert bytes_of(256) < 4.5 * bytes_of(64)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_padding_has_no_influence(encoder_cell, bidirectional):
    encoder = Encoder(encoder_cell, num_layers=2, d_hidden=H, bidirectional=bidirectional, residual=True)
    x, mask = normal(1, B, T, H), MASK
    variables = draw_parameters(lambda key: encoder.init(key, x, mask, train=False))
    apply = jax.jit(lambda x, mask: encoder.apply(variables, x, mask, train=False))
    outputs, last = jax.device_get(apply(x, mask))
    for row, length in enumerate(MASK.sum(axis=1)):
        alone, end = jax.device_get(apply(x[row : row + 1, :length], mask[row : row + 1, :length]))
        np.testing.assert_allclose(outputs[row, :length], alone[0], atol=1e-6)
        jax.tree.map(lambda a, b, row=row: np.testing.assert_allclose(a[row], b[0], atol=1e-6), last, end)
    assert len(last) == 2
    assert last[0][0].shape == (B, H)


def test_a_unidirectional_encoder_does_not_see_later_steps(encoder_cell):
    encoder = Encoder(encoder_cell, num_layers=2, d_hidden=H, bidirectional=False)
    x, mask = normal(1, 1, T, D), np.ones((1, T), bool)
    variables = draw_parameters(lambda key: encoder.init(key, x, mask, train=False))
    seen = jax.jit(jax.jacobian(lambda x: encoder.apply(variables, x, mask, train=False)[0][0].sum(-1)))(x)[:, 0]
    influence = np.abs(np.asarray(seen)).sum(-1)  # [output, input]
    assert (influence[np.triu_indices(T, 1)] == 0).all()
    assert (influence[np.tril_indices(T)] > 0).all()


def test_variational_dropout_is_the_same_at_every_step():
    x = np.ones((B, T, 64), np.float32)

    @functools.partial(jax.jit, static_argnums=0)
    def drop(variational):
        rngs = {"dropout": jax.random.key(0)}
        return SequenceDropout(0.5, variational=variational).apply({}, x, train=True, rngs=rngs)

    dropped, fresh = np.asarray(drop(True)), np.asarray(drop(False))
    assert (dropped == dropped[:, :1]).all()
    assert 0.3 < float((dropped == 0).mean()) < 0.7
    assert not (fresh == fresh[:, :1]).all()


def test_the_first_state_is_zero(cell):
    assert all(not np.any(vector) for vector in zero_state(cell, (2, 3)))
