"""One training step: a pure function of state and batch, the same on one device and on many."""

import contextlib
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import optax

from nmt_jax.checkpoints.train_state import TrainState
from nmt_jax.distributed.sharding import gather_for_step
from nmt_jax.losses.step import Step
from nmt_jax.training.optimizers import Schedule

Batch = dict[str, jax.Array]
Metrics = dict[str, jax.Array]


class LossFn(Protocol):
    """The training objective of a task."""

    def __call__(self, params: Any, batch: Any, step: Step | None) -> tuple[Any, ...]:
        """Return the summed loss, the weight that it is divided by, such as the number of tokens, and the new carry.

        A loss without a carry returns only the first two.
        """


def make_train_step(
    loss_fn: LossFn,
    optimizer: optax.GradientTransformation,
    schedule: Schedule,
    *,
    accumulate: int,
    ema_decay: float,
    seed: int,
    shardings: TrainState | None = None,
) -> jax.stages.Wrapped:
    """Return the compiled function (state, batch) -> (state, metrics); its argument `state` is donated.

    A batch [B, ...] is cut into `accumulate` micro-batches [B / accumulate, ...]; their sums are added and divided
    once, by the weight of the whole global batch. A step with a non-finite loss or gradient does not change parameters,
    optimizer state, moving average and carry. The dropout key is folded from (seed, step), so a resumed run needs no
    stored key. shardings: of the new state.
    metrics: loss (per unit of weight), weight, grad_norm (before clipping), learning_rate, skipped (consecutive steps).
    """

    def sums(params: Any, batch: Batch, step: Step) -> tuple[Any, Any]:
        """The loss, weight and gradient, which are added over micro-batches, and the carry."""

        def loss_of(params: Any) -> tuple[jax.Array, tuple[Any, ...]]:
            loss, *rest = loss_fn(gather_for_step(params, shardings.params) if shardings else params, batch, step)
            return loss, tuple(rest)

        with _known_mesh(shardings):
            (loss, (weight, *carry)), grads = jax.value_and_grad(loss_of, has_aux=True)(params)
        return (loss, jnp.asarray(weight, loss.dtype), grads), carry[0] if carry else ()

    def accumulated_sums(params: Any, batch: Batch, step: Step) -> tuple[Any, Any]:
        if accumulate == 1:
            return sums(params, batch, step)

        def add(totals: Any, numbered: tuple[jax.Array, Batch, Any]) -> tuple[Any, Any]:
            number, micro_batch, carry = numbered
            micro_step = step._replace(rng=jax.random.fold_in(step.rng, number), carry=carry)
            more, carry = sums(params, micro_batch, micro_step)
            return jax.tree.map(jnp.add, totals, more), carry

        zeros = (jnp.zeros(()), jnp.zeros(()), jax.tree.map(jnp.zeros_like, params))
        numbered = (jnp.arange(accumulate), micro_batches(batch, accumulate), micro_batches(step.carry, accumulate))
        totals, carry = jax.lax.scan(add, zeros, numbered)
        return totals, jax.tree.map(lambda array: array.swapaxes(0, 1).reshape(-1, *array.shape[2:]), carry)

    def train_step(state: TrainState, batch: Batch) -> tuple[TrainState, Metrics]:
        step = Step(state.step, jax.random.fold_in(jax.random.key(seed), state.step), state.carry)
        (loss_sum, weight, grads), carry = accumulated_sums(state.params, batch, step)
        grads = jax.tree.map(lambda grad: grad / weight, grads)
        grad_norm = optax.tree.norm(grads)
        finite = jnp.isfinite(loss_sum / weight) & jnp.isfinite(grad_norm)
        learning_rate = schedule(state.step + 1)

        direction, opt_state = optimizer.update(grads, state.opt_state, state.params)
        params = jax.tree.map(lambda param, change: param - learning_rate * change, state.params, direction)
        ema = state.ema
        if ema_decay:
            # The decay is smaller at first, or the random initial values would count for 1 / (1 - ema_decay) steps.
            decay = jnp.minimum(ema_decay, (1.0 + state.step) / (10.0 + state.step))
            ema = jax.tree.map(lambda old, new: decay * old + (1.0 - decay) * new, ema, params)

        new, old = (params, opt_state, ema, carry), (state.params, state.opt_state, state.ema, state.carry)
        params, opt_state, ema, carry = jax.tree.map(lambda new, old: jnp.where(finite, new, old), new, old)
        skipped = jnp.where(finite, 0, state.skipped + 1)
        metrics = {"loss": loss_sum / weight, "weight": weight, "grad_norm": grad_norm}
        metrics |= {"learning_rate": learning_rate, "skipped": skipped}
        state = TrainState(
            step=state.step + 1, params=params, opt_state=opt_state, ema=ema, skipped=skipped, carry=carry
        )
        return state, metrics

    return jax.jit(train_step, donate_argnums=0, out_shardings=(shardings, None) if shardings else None)


def _known_mesh(shardings: Any) -> contextlib.AbstractContextManager[Any]:
    """Tells operations that sum over the devices apart how many there are (`models.layers.lookup`)."""
    if shardings is None:
        return contextlib.nullcontext()
    return jax.sharding.use_abstract_mesh(shardings.step.mesh.abstract_mesh)


def micro_batches(batch: Any, count: int) -> Any:
    """Cut [B, ...] into [count, B / count, ...]; micro-batch i has the rows i mod count, so no row moves."""

    def cut(array: jax.Array) -> jax.Array:
        return array.reshape(array.shape[0] // count, count, *array.shape[1:]).swapaxes(0, 1)

    return jax.tree.map(cut, batch)
