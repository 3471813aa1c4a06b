import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ml_collections import ConfigDict

from nmt_jax import config as configs
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.losses.step import Step
from nmt_jax.losses.teacher_forcing import ratio
from nmt_jax.tasks.translate import Translate
from tests.conftest import ROOT
from tests.fixtures.parameters import draw_parameters


def at(steps, **changes):
    """The ratio at a step, or at each of several."""
    config = ConfigDict({"schedule": "constant", "start": 1.0, "end": 0.0, "decay_steps": 10} | changes)
    return jax.jit(lambda steps: ratio(config, steps))(steps)


def test_schedules_follow_their_equations():
    assert at(7) is None
    assert float(at(7, start=0.5)) == 0.5
    i = np.array([0, 3, 10, 50])
    np.testing.assert_allclose(at(i, schedule="linear", end=0.2), np.maximum(0.2, 1 - 0.8 * i / 10), rtol=1e-6)
    np.testing.assert_allclose(at(i, schedule="exponential"), np.exp(-i / 10), rtol=1e-6)
    np.testing.assert_allclose(at(i, schedule="inverse_sigmoid"), 10 / (10 + np.exp(i / 10)), rtol=1e-6)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"schedule": "cosine"}, "'cosine': use one of constant, linear"),
        ({"start": 1.5}, "0 <= end <= start <= 1"),
        ({"start": 0.1, "end": 0.2}, "0 <= end <= start <= 1"),
        ({"schedule": "linear", "decay_steps": 0}, "decay_steps=0 must be at least 1"),
    ],
)
def test_what_cannot_be_meant_is_named(changes, line):
    with pytest.raises(UserError, match=line):
        at(0, **changes)


def task(page, folder, **overrides):
    settings = {"data.cache": str(folder / "cache"), **overrides}
    return Translate(configs.load(f"{ROOT}/configs/{page}.py:smoke=true", settings), folder, sharding.make_mesh())


@pytest.mark.slow
def test_a_ratio_of_one_is_plain_training_bit_for_bit_and_less_is_not(tmp_path):
    step = Step(jnp.int32(0), jax.random.key(1))
    params = draw_parameters(task("rnn_luong", tmp_path).init, stddev=0.1)

    def loss_and_gradient(**changes):
        overrides = {f"loss.teacher_forcing.{name}": value for name, value in changes.items()}
        one = task("rnn_luong", tmp_path, **overrides)
        batch = one.batches(1)[0]
        return jax.jit(jax.value_and_grad(lambda params: one.loss_fn(params, batch, step)[0]))(params)

    plain = loss_and_gradient()
    jax.tree.map(np.testing.assert_array_equal, plain, loss_and_gradient(schedule="linear", start="1.0", end="1.0"))
    assert plain[0] != loss_and_gradient(start="0.3", end="0.0")[0]


def test_a_model_that_cannot_sample_says_so(tmp_path):
    one = task("quickstart", tmp_path, **{"loss.teacher_forcing.start": "0.5", "loss.teacher_forcing.end": "0.5"})
    params = jax.eval_shape(one.init, jax.random.key(0))
    with pytest.raises(UserError, match="model_name='transformer' cannot read its own predictions"):
        jax.eval_shape(one.loss_fn, params, one.batches(1)[0], Step(jnp.int32(0), jax.random.key(1)))
