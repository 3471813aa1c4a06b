"""Arithmetic equals a count by hand, for three models with different widths everywhere."""

import jax
import jax.numpy as jnp
import pytest

from nmt_jax import config as configs
from nmt_jax.distributed import sharding
from nmt_jax.planning import programs
from nmt_jax.planning.arithmetic import matrix_flops
from nmt_jax.planning.estimate import arithmetic
from tests.conftest import ROOT

B, S, T, D, F, V = 16, 24, 40, 32, 80, 500


def counted(page, shape, **changes):
    """Operations of a training step of a page, and those of the model alone."""
    config = configs.load(str(ROOT / "configs" / page), {key.replace("__", "."): str(v) for key, v in changes.items()})
    task = programs.prepare_task(config, sharding.make_mesh(1, jax.devices()[:1]), None)
    program = programs.training_step(task, config, shape)
    return arithmetic(program, program.trace().jaxpr.jaxpr)


@pytest.mark.slow
def test_transformer():
    sizes = {"model__num_encoder_layers": 2, "model__num_decoder_layers": 3, "model__d_model": D, "model__d_ff": F}
    step, model = counted("quickstart.py", (B, S, T), **sizes, model__num_heads=4, vocab__size=V)
    encoder = 8 * S * D**2 + 4 * S**2 * D + 4 * S * D * F
    decoder = 8 * T * D**2 + 4 * T**2 * D + 4 * (S + T) * D**2 + 4 * S * T * D + 4 * T * D * F
    forward = B * (2 * encoder + 3 * decoder + 2 * T * D * V)
    assert model == pytest.approx(3 * forward, rel=0.01)
    assert step == pytest.approx(3 * forward, rel=0.01)


@pytest.mark.slow
def test_bert():
    sizes = {"model__num_layers": 3, "model__d_model": D, "model__d_ff": F, "model__num_heads": 4}
    step, model = counted("bert_tiny.py", (B, 64), **sizes, vocab__size=V, data__max_length=64, corrupt__share=0.25)
    length, predicted = 64, 16
    layer = 8 * length * D**2 + 4 * length**2 * D + 4 * length * D * F
    tokens, pairs = 2 * predicted * (D**2 + (D + 1) * V), 2 * D**2 + 2 * D * 2
    forward = B * (3 * layer + tokens + pairs)
    assert model == pytest.approx(3 * forward, rel=0.01)
    assert step == pytest.approx(3 * forward, rel=0.01)


def test_recurrent_language_model():
    sizes = {"model__num_layers": 2, "model__d_hidden": D, "model__d_embedding": D, "data__block_length": T}
    step, model = counted("rnn_lm.py", (B, T), **sizes, vocab__size=V)
    forward = B * T * (2 * 2 * (D + D) * 4 * D + 2 * (D + 1) * V)  # two layers of four gates
    assert model == pytest.approx(3 * forward, rel=0.01)
    assert step == pytest.approx(3 * forward, rel=0.01)


@pytest.mark.slow
def test_recomputed_layers_belong_to_the_step_alone():
    small = {"model__num_encoder_layers": 1, "model__num_decoder_layers": 1, "vocab__size": V}
    plain = counted("quickstart.py", (B, S, T), **small)
    again = counted("quickstart.py", (B, S, T), **small, model__remat="full")
    assert again[1] == plain[1]
    assert again[0] > 1.15 * plain[0]


def test_loops_count_as_often_as_they_run():
    x, w = jnp.ones((3, 5)), jnp.ones((5, 5))

    def scanned(x, w):
        return jax.lax.scan(lambda x, _: (x @ w, None), x, length=7)[0]

    def searched(x, w):
        return jax.lax.while_loop(lambda x: x.sum() < 9, lambda x: x @ w, x)

    assert matrix_flops(jax.make_jaxpr(scanned)(x, w).jaxpr) == 7 * 2 * 3 * 5 * 5
    assert matrix_flops(jax.make_jaxpr(searched)(x, w).jaxpr, trips=4) == 4 * 2 * 3 * 5 * 5


def test_convolutions():
    x, w = jnp.ones((2, 9, 5)), jnp.ones((3, 5, 8))  # [B, S, in], [window, in, out]

    def convolved(x, w):
        return jax.lax.conv_general_dilated(x, w, (1,), "VALID", dimension_numbers=("NWC", "WIO", "NWC"))

    assert matrix_flops(jax.make_jaxpr(convolved)(x, w).jaxpr) == 2 * 2 * 7 * 3 * 5 * 8


def test_what_nobody_reads_is_not_counted():
    x, w = jnp.ones((3, 5)), jnp.ones((5, 5))

    def unused(x, w):
        _ = x @ w
        return x

    assert matrix_flops(jax.make_jaxpr(lambda x, w: jax.jit(unused)(x, w))(x, w).jaxpr) == 0
