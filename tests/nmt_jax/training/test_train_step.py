"""One step: exact sums however the batch is cut, and a broken step changes nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax.checkpoints.train_state import TrainState, new_state
from nmt_jax.training.optimizers import make_optimizer, make_schedule
from nmt_jax.training.train_step import make_train_step, micro_batches
from tests.fixtures import toy


def setup(accumulate=1, ema_decay=0.0, **changes):
    config = toy.config(**{"toy.dropout": 0.0, **changes})
    task, optimizer = toy.Toy(config), make_optimizer(config.optimizer)
    step = make_train_step(
        task.loss_fn,
        optimizer,
        make_schedule(config.optimizer, 100),
        accumulate=accumulate,
        ema_decay=ema_decay,
        seed=config.seed,
    )
    return step, new_state(task.init(jax.random.key(0)), optimizer, ema_decay)


def follow(steps=8, poison=(), **options):
    step, state = setup(**options)
    batches = toy.ToyBatches(steps, poison=poison)
    history = []
    for n in range(steps):
        state, metrics = step(state, batches[n])
        history.append({name: float(value) for name, value in metrics.items()})
    return state, history


def test_the_loss_is_a_mean_over_all_tokens_and_falls():
    _, history = follow(40)
    for n, metrics in enumerate(history):
        assert metrics["weight"] == (toy.ToyBatches(40)[n]["target"] > 0).sum()
    _, state = setup()
    loss, weight = toy.Toy(toy.config()).loss_fn(state.params, toy.ToyBatches(1)[0], None)
    assert history[0]["loss"] == pytest.approx(float(loss / weight), rel=1e-6)
    assert history[38]["loss"] < history[0]["loss"] - 0.3


@pytest.mark.parametrize("accumulate", [2, 4, 8])
def test_accumulation_does_not_change_the_step(accumulate):
    whole, cut = follow(), follow(accumulate=accumulate)
    for a, b in zip(whole[1], cut[1], strict=True):
        assert a == pytest.approx(b, rel=1e-5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), whole[0].params, cut[0].params)


def carrying_step(accumulate):
    """A loss whose carry is the sum of the rows so far; the gradient depends on it."""

    def loss_fn(params, batch, step):
        seen = step.carry + batch["x"]
        return jnp.sum(params["a"] * seen), jnp.float32(len(seen)), seen

    optimizer = make_optimizer(toy.config().optimizer)
    step = make_train_step(loss_fn, optimizer, lambda n: 0.1, accumulate=accumulate, ema_decay=0.0, seed=0)
    return step, new_state({"a": jnp.ones(())}, optimizer, 0.0, carry=jnp.zeros(4))


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_step_reads_what_the_step_before_left(accumulate):
    step, state = carrying_step(accumulate)
    rows = jnp.arange(4.0)
    state, _ = step(state, {"x": rows})
    state, metrics = step(state, {"x": 10 * rows})
    np.testing.assert_array_equal(state.carry, 11 * rows)
    assert metrics["grad_norm"] == pytest.approx(11 * 6 / 4)
    assert "carry" in state.parts["rest"]
    assert TrainState.from_parts(state.parts).carry is state.carry
    state, metrics = step(state, {"x": rows * jnp.nan})
    assert metrics["skipped"] == 1
    np.testing.assert_array_equal(state.carry, 11 * rows)


def test_micro_batches_keep_all_rows():
    rows = jnp.arange(24).reshape(12, 2)
    cut = micro_batches({"x": rows}, 3)["x"]
    assert cut.shape == (3, 4, 2)
    for i in range(3):
        np.testing.assert_array_equal(cut[i], rows[i::3])


@pytest.mark.slow
def test_the_dropout_key_depends_on_seed_and_step_only():
    dropout = {"toy.dropout": 0.5}
    first, again, other = (follow(3, **dropout, seed=seed)[1] for seed in (1, 1, 2))
    assert first == again
    assert first[0]["loss"] != other[0]["loss"]
    step, state = setup(**dropout)
    batch = toy.ToyBatches(1)[0]
    losses = [
        float(step(jax.tree.map(jnp.copy, state).replace(step=jnp.int32(n)), batch)[1]["loss"]) for n in (0, 1, 0)
    ]
    assert losses[0] == losses[2] != losses[1]


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_non_finite_step_is_skipped_and_counted(accumulate):
    options = {"ema_decay": 0.9, "accumulate": accumulate, "optimizer.clip_norm": 1.0}
    step, state = setup(**options)
    batches = toy.ToyBatches(4, poison=[1, 2])
    state, _ = step(state, batches[0])
    before = jax.tree.map(np.array, state)
    for n in (1, 2):
        state, metrics = step(state, batches[n])
        assert (int(metrics["skipped"]), int(state.skipped), int(state.step)) == (n, n, n + 1)
        for name in ("params", "opt_state", "ema"):
            jax.tree.map(np.testing.assert_array_equal, getattr(state, name), getattr(before, name))
    state, metrics = step(state, batches[3])
    assert int(state.skipped) == 0
    assert not np.array_equal(state.params["embedding"]["table"], before.params["embedding"]["table"])


def test_an_infinite_gradient_is_skipped():
    config = toy.config()
    optimizer = make_optimizer(config.optimizer)

    def loss_fn(params, batch, step):
        return jnp.sqrt(params["x"]).sum(), jnp.float32(1)

    schedule = make_schedule(config.optimizer, 10)
    step = make_train_step(loss_fn, optimizer, schedule, accumulate=1, ema_decay=0.0, seed=0)
    state, metrics = step(new_state({"x": jnp.zeros(2)}, optimizer, 0.0), {})
    assert np.isfinite(metrics["loss"])
    assert int(metrics["skipped"]) == 1
    np.testing.assert_array_equal(state.params["x"], np.zeros(2))


def test_the_moving_average_follows_the_parameters():
    step, state = setup(ema_decay=0.5)
    expected = np.array(state.params["embedding"]["table"])
    for n in range(12):
        state, _ = step(state, toy.ToyBatches(12)[n])
        decay = min(0.5, (1 + n) / (10 + n))
        expected = decay * expected + (1 - decay) * np.array(state.params["embedding"]["table"])
    np.testing.assert_allclose(state.averaged["embedding"]["table"], expected, rtol=1e-5)
    assert setup()[1].ema == ()


def test_the_metrics_describe_the_step():
    step, state = setup(**{"optimizer.clip_norm": 1e-3, "optimizer.epsilon": 1.0})
    before = np.array(state.params["output"]["bias"])
    state, metrics = step(state, toy.ToyBatches(1)[0])
    assert float(metrics["learning_rate"]) == pytest.approx(0.02 / 5)
    assert float(metrics["grad_norm"]) > 0.1  # before clipping
    assert 0 < np.abs(state.params["output"]["bias"] - before).max() < 0.004 * 1e-3


def test_a_second_call_compiles_nothing():
    step, state = setup()
    batches = toy.ToyBatches(6)
    for n in range(6):
        state, _ = step(state, batches[n])
    assert step._cache_size() == len(toy.SHAPES)
