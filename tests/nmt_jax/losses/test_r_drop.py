"""R-Drop: equation 2 of Liang et al. (2021) with scipy, equal passes, padding, and the loss of a training step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from nmt_jax import config as configs
from nmt_jax.distributed.sharding import make_mesh
from nmt_jax.losses.r_drop import symmetric_divergence
from nmt_jax.losses.step import Step
from nmt_jax.tasks.registry import make_task
from tests.conftest import ROOT
from tests.fixtures.parameters import draw_parameters

B, T, V = 2, 3, 5
RANDOM = np.random.default_rng(0)
FIRST, SECOND = RANDOM.normal(size=(2, B, T, V)).astype(np.float32)
WEIGHTS = np.array([[1, 1, 1], [1, 0, 0]], np.float32)


def test_it_is_equation_2():
    p, q = (np.exp(logits) / np.exp(logits).sum(-1, keepdims=True) for logits in (FIRST, SECOND))
    divergences = [
        (scipy.stats.entropy(p[row, step], q[row, step]) + scipy.stats.entropy(q[row, step], p[row, step])) / 2
        for row, step in np.argwhere(WEIGHTS)
    ]
    np.testing.assert_allclose(symmetric_divergence(FIRST, SECOND, WEIGHTS), sum(divergences), rtol=1e-5)


def test_equal_passes_agree_and_a_masked_word_is_no_nan():
    masked = FIRST.copy()
    masked[..., 2] = -1e9
    np.testing.assert_allclose(symmetric_divergence(masked, masked, WEIGHTS), 0, atol=1e-6)
    assert np.isfinite(jax.grad(symmetric_divergence)(masked, masked + 0.1, WEIGHTS)).all()


def test_padding_has_no_influence():
    changed = FIRST.copy()
    changed[1, 1:] = 7.0
    np.testing.assert_allclose(
        symmetric_divergence(changed, SECOND, WEIGHTS), symmetric_divergence(FIRST, SECOND, WEIGHTS), rtol=1e-6
    )


@pytest.fixture(scope="module")
def losses(tmp_path_factory):
    """The loss per token of a step without and with R-Drop, given a dropout rate, and the evaluation loss."""

    def compute(r_drop, dropout, step):
        changes = {"loss.r_drop": r_drop, "model.dropout": dropout, "loss.label_smoothing": 0.0}
        config = configs.load(
            f"{ROOT}/configs/quickstart.py:smoke=true", {key: str(value) for key, value in changes.items()}
        )
        task = make_task(config, folder, make_mesh())
        batch = task.dummy_batch((4, 6, 5)) | {"target": np.array([[5, 6, 7, 2, 0]] * 4, np.int32)}
        loss, weight = jax.jit(lambda params: task.loss_fn(params, batch, step))(draw_parameters(task.init))
        return float(loss / weight)

    folder = tmp_path_factory.mktemp("w") / "w"
    return compute


def test_it_regularizes_dropout_in_training_only(losses):
    step = Step(jnp.int32(0), jax.random.key(0))
    np.testing.assert_allclose(losses(5.0, 0.0, step), losses(0.0, 0.0, step), rtol=1e-5)
    assert losses(5.0, 0.5, step) > losses(1.0, 0.5, step) > losses(1e-6, 0.5, step)
    np.testing.assert_allclose(losses(5.0, 0.5, None), losses(0.0, 0.5, None), rtol=1e-6)
