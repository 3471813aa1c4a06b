"""A scan over equal layers computes what the loop does, from the same parameters; remat changes only memory."""

import functools
import itertools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax import platforms
from nmt_jax.models import bert, gpt, transformer
from nmt_jax.models.layers.dense import Dense
from nmt_jax.models.layers.dropout import Dropout
from nmt_jax.models.layers.layer_stack import REMAT, run_layers
from nmt_jax.schema.models import MODELS
from tests.fixtures.parameters import draw_parameters

B, T, D, V = 2, 5, 8, 11
WAYS = [(scan, remat) for scan in (False, True) for remat in REMAT]
DROPOUT = {"dropout": jax.random.key(0)}


class Layer(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        mask = Dropout(0.5, name="drop")(jnp.ones(x.shape), train)
        return x + Dense(D, name="output")(jnp.tanh(Dense(D, name="hidden")(x)) * mask), mask


class Stack(nn.Module):
    number: int = 3
    scan: bool = False
    remat: str = "none"

    def setup(self):
        self.layers = [Layer() for _ in range(self.number)]

    def __call__(self, x, train=False):
        return run_layers(self.layers, lambda layer, x: layer(x, train), x, scan=self.scan, remat=self.remat)


X = np.random.default_rng(0).normal(size=(B, T, D)).astype(np.float32)


def lowered(**fields):
    """The gradient of a stack by its parameters and input, not compiled, and its parameters."""
    stack = Stack(**fields)
    variables = draw_parameters(stack.init, X)
    gradient = jax.jit(jax.grad(lambda variables, x: (stack.apply(variables, x)[0] ** 2).mean(), argnums=(0, 1)))
    return gradient.lower(variables, X), variables


def test_all_ways_have_the_same_parameters_and_gradients():
    expected = None
    for scan, remat in WAYS:
        program, variables = lowered(scan=scan, remat=remat)
        assert sorted(variables["params"]) == ["layers_0", "layers_1", "layers_2"]
        gradient = program.compile()(variables, X)
        expected = expected or gradient
        jax.tree.map(functools.partial(np.testing.assert_allclose, atol=1e-6), gradient, expected)


def products(**fields):
    return lowered(**fields)[0].as_text().count("dot_general")


@pytest.mark.parametrize("remat", REMAT)
def test_the_program_of_a_scan_has_one_layer(remat):
    assert products(number=2, scan=True, remat=remat) == products(number=6, scan=True, remat=remat)
    assert products(number=6, remat=remat) == 3 * products(number=2, remat=remat)


def test_remat_repeats_the_products_that_it_does_not_keep():
    # A layer has two products, and each has two gradients, none of which needs the result of the second product.
    assert [products(number=1, remat=remat) for remat in REMAT] == [6, 7, 6]


@pytest.mark.parametrize(("scan", "remat"), WAYS)
def test_each_layer_draws_its_own_mask_and_a_repeated_run_the_same(scan, remat):
    stack = Stack(scan=scan, remat=remat)
    variables = draw_parameters(stack.init, X)
    run = jax.jit(lambda key: stack.apply(variables, X, train=True, rngs={"dropout": key}))
    x, masks = run(DROPOUT["dropout"])
    assert len(masks) == 3
    for one, other in itertools.combinations(masks, 2):
        assert 0.2 < np.mean(np.asarray(one) != np.asarray(other)) < 0.8
    np.testing.assert_array_equal(run(DROPOUT["dropout"])[0], x)
    assert not np.array_equal(run(jax.random.key(1))[0], x)


def test_outputs_that_are_not_used_take_no_memory():
    stack = Stack(number=8, scan=True)
    variables = draw_parameters(stack.init, X)
    large = np.zeros((512, T, D), np.float32)

    def memory(outputs):
        run = jax.jit(lambda variables: stack.apply(variables, large, train=True, rngs=DROPOUT)[:outputs])
        return run.lower(variables).compile().memory_analysis().temp_size_in_bytes

    assert memory(2) - memory(1) > 4 * large.nbytes


ROWS = np.random.default_rng(1).integers(4, V, (B, T))
LAYERS = {"d_model": D, "d_ff": 12, "num_heads": 2, "dropout": 0.0, "attention_dropout": 0.0}
CASES = {
    "gpt": (gpt.Model(V, num_layers=2, **LAYERS), (ROWS,)),
    "transformer": (transformer.Model(V, V, num_encoder_layers=2, num_decoder_layers=3, **LAYERS), (ROWS, ROWS)),
    "bert": (bert.Model(V, num_layers=2, **LAYERS), (ROWS, ROWS < 9, ROWS // 8, ROWS[:, :3] % T)),
}


def results(model, variables, inputs):
    """The loss of a training step and its gradients, and all that the model returns outside training."""

    def loss(variables):
        out = model.apply(variables, *inputs, train=True, rngs=DROPOUT)[1]
        return ((out["hidden"] @ out["output_kernel"]) ** 2).mean()

    return jax.jit(lambda variables: (jax.value_and_grad(loss)(variables), model.apply(variables, *inputs)))(variables)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "remat"), [*itertools.product(CASES, REMAT)])
def test_a_model_with_a_scan_returns_what_it_returns_without(name, remat):
    model, inputs = CASES[name]
    other = model.clone(scan_layers=True, remat=remat)
    variables = draw_parameters(model.init, *inputs)
    shapes = jax.eval_shape(other.init, jax.random.key(0), *inputs)
    assert jax.tree.map(jnp.shape, variables) == jax.tree.map(jnp.shape, shapes)
    found, expected = (results(one, variables, inputs) for one in (other, model))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(expected))
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6), found, expected)


@pytest.mark.parametrize("name", CASES)
def test_layers_keep_the_type_of_their_input_on_accelerators(name):
    model, inputs = CASES[name]
    model = model.clone(dtype="bfloat16", scan_layers=True)
    with platforms.use(platforms.ACCELERATOR):
        variables = jax.eval_shape(model.init, jax.random.key(0), *inputs)
        jax.eval_shape(model.apply, variables, *inputs)  # a scan refuses a type that changes


def test_the_schema_names_the_policies():
    for name in CASES:
        assert MODELS[name]["remat"].choices == tuple(REMAT)
