"""Schedules by the formulas of the papers; the optimizer beside Optax's own."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from nmt_jax.errors import UserError
from nmt_jax.training.optimizers import SCHEDULES, make_optimizer, make_schedule
from tests.fixtures import toy


def schedule(name, steps=100, d_model=None, **changes):
    changes = {"schedule": name, "learning_rate": 0.5, "warmup_steps": 10, **changes}
    return make_schedule(
        toy.config(**{f"optimizer.{key}": value for key, value in changes.items()}).optimizer, steps, d_model
    )


@pytest.mark.parametrize("n", [1, 7, 4000, 4001, 30_000])
def test_noam_equals_the_formula_of_the_paper(n):
    expected = 2.0 * 512**-0.5 * min(n**-0.5, n * 4000**-1.5)
    ours = schedule("noam", 100_000, 512, learning_rate=2.0, warmup_steps=4000)(n)
    assert float(ours) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", [name for name in SCHEDULES if name != "noam"])
@pytest.mark.parametrize("warmup", [0, 1, 10])
def test_warm_up_is_linear_and_ends_at_the_peak(name, warmup):
    rate = schedule(name, warmup_steps=warmup)
    for n in range(1, max(warmup, 1) + 1):
        assert float(rate(n)) == pytest.approx(0.5 * n / max(warmup, 1), rel=1e-6)
    after = [float(rate(n)) for n in range(max(warmup, 1), 101)]
    assert after == sorted(after, reverse=True)


def test_decays_at_their_ends():
    assert float(schedule("inverse_sqrt")(40)) == pytest.approx(0.25)
    assert float(schedule("linear")(55)) == pytest.approx(0.5 * (1 - 45 / 91))
    assert float(schedule("cosine")(55)) == pytest.approx(0.25 * (1 + math.cos(math.pi * 45 / 91)), rel=1e-5)
    assert float(schedule("constant")(10**6)) == 0.5
    for name in ("linear", "cosine"):
        assert 0 < float(schedule(name)(100)) < 0.01
        assert float(schedule(name)(101)) == pytest.approx(0, abs=1e-8)
        assert float(schedule(name)(5000)) == pytest.approx(0, abs=1e-8)


def test_invalid_settings_are_errors():
    with pytest.raises(UserError, match=r"optimizer\.schedule='nom' is unknown; use one of noam, "):
        schedule("nom")
    with pytest.raises(UserError, match="d_model"):
        schedule("noam")
    with pytest.raises(UserError, match="warmup_steps"):
        schedule("noam", d_model=8, warmup_steps=0)
    with pytest.raises(UserError, match=r"optimizer\.name='sgd' is unknown"):
        make_optimizer(toy.config(**{"optimizer.name": "sgd"}).optimizer)
    with pytest.raises(UserError, match="adamw"):
        make_optimizer(toy.config(**{"optimizer.weight_decay": 0.1}).optimizer)


def follow(optimizer, scale, steps=5):
    params = {"kernel": jnp.linspace(-1, 1, 12).reshape(4, 3), "bias": jnp.linspace(-2, 1, 3)}
    state = optimizer.init(params)
    for step in range(steps):
        grads = jax.tree.map(lambda param, step=step: jnp.sin(param * (3 + step)), params)
        updates, state = optimizer.update(grads, state, params)
        params = jax.tree.map(lambda param, update: param + scale * update, params, updates)
    return params


def test_adam_adamw_and_clipping_equal_optax():
    def ours(**changes):
        config = toy.config(**{f"optimizer.{key}": value for key, value in changes.items()}).optimizer
        return follow(make_optimizer(config), -0.1)

    options = {"b1": 0.9, "b2": 0.98, "eps": 1e-9}
    matrices = {"kernel": True, "bias": False}
    pairs = [
        (ours(), optax.adam(0.1, **options)),
        (ours(name="adamw", weight_decay=0.3), optax.adamw(0.1, weight_decay=0.3, mask=matrices, **options)),
        (ours(clip_norm=0.5), optax.chain(optax.clip_by_global_norm(0.5), optax.adam(0.1, **options))),
        (ours(name="adagrad"), optax.adagrad(0.1, initial_accumulator_value=0.0, eps=1e-9)),
    ]
    for params, reference in pairs:
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), params, follow(reference, 1.0))
    assert not np.allclose(pairs[0][0]["kernel"], pairs[1][0]["kernel"])
    np.testing.assert_array_equal(pairs[0][0]["bias"], pairs[1][0]["bias"])  # no decay of biases


def test_lower_layers_have_a_lower_learning_rate():
    leaf = {"kernel": jnp.ones((2, 2))}
    params = {"head": leaf, "encoder": {"embeddings": leaf, "layers_0": leaf, "layers_1": leaf, "layers_10": leaf}}
    config = toy.config(**{"optimizer.layer_decay": 0.5}).optimizer

    def updates(config):
        optimizer = make_optimizer(config)
        return optimizer.update(params, optimizer.init(params), params)[0]

    plain, scaled = updates(toy.config().optimizer), updates(config)
    shares = jax.tree.map(lambda a, b: float((a / b).mean()), scaled, plain)
    layers = {name: shares["encoder"][name]["kernel"] for name in params["encoder"]}
    assert shares["head"]["kernel"] == 1
    assert layers == {"embeddings": 0.5**12, "layers_0": 0.5**11, "layers_1": 0.5**10, "layers_10": 0.5}


def test_invalid_layer_decay_is_an_error():
    for decay in (0.0, -1.0, 1.5):
        with pytest.raises(UserError, match=r"optimizer\.layer_decay=.*: must be above 0 and at most 1"):
            make_optimizer(toy.config(**{"optimizer.layer_decay": decay}).optimizer)
    optimizer = make_optimizer(toy.config(**{"optimizer.layer_decay": 0.9}).optimizer)
    with pytest.raises(UserError, match="has no layers_0"):
        follow(optimizer, -0.1)
