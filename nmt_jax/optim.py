"""Learning-rate schedules and optimizers."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from ml_collections import ConfigDict

from nmt_jax.errors import UserError

Schedule = Callable[[jax.Array | int], jax.Array]
SCHEDULES = ("noam", "inverse_sqrt", "cosine", "linear", "constant")
OPTIMIZERS = ("adam", "adamw")


def make_schedule(config: ConfigDict, steps: int, d_model: int | None = None) -> Schedule:
    """The learning rate of update n = 1, 2, …, `steps`: a linear warm-up to the peak, then the decay `config` names.

    "noam" is Vaswani et al. (2017), eq. 3, times `learning_rate`: the peak is learning_rate * (d_model * warmup)^-0.5.
    Everywhere else `learning_rate` is the peak. "inverse_sqrt" decays as n^-0.5; "cosine" and "linear" would reach zero
    at update `steps` + 1; "constant" stays. Raises UserError on an unknown name, and on "noam" without d_model or
    warm-up.
    """
    name, peak, warmup = config.schedule, config.learning_rate, config.warmup_steps
    if name not in SCHEDULES:
        raise UserError(f"optimizer.schedule={name!r} is unknown: use one of {', '.join(SCHEDULES)}")
    if name == "noam":
        if not d_model or warmup < 1:
            raise UserError("optimizer.schedule='noam' needs model.d_model and optimizer.warmup_steps >= 1")
        peak *= (d_model * warmup) ** -0.5
    first = max(warmup, 1)  # the update that has the peak

    def schedule(update: jax.Array | int) -> jax.Array:
        n = jnp.asarray(update, jnp.float32)
        done = jnp.clip((n - first) / max(steps + 1 - first, 1), 0.0, 1.0)
        decay: Any = 1.0
        if name in ("noam", "inverse_sqrt"):
            decay = jnp.sqrt(first / jnp.maximum(n, first))
        elif name == "cosine":
            decay = 0.5 * (1.0 + jnp.cos(jnp.pi * done))
        elif name == "linear":
            decay = 1.0 - done
        return peak * jnp.minimum(n / first, 1.0) * decay

    return schedule


def make_optimizer(config: ConfigDict) -> optax.GradientTransformation:
    """The direction of an update, which the step multiplies by the learning rate and subtracts.

    Gradients are clipped to the global norm `clip_norm` (0 = off), then Adam (Kingma and Ba, 2015, algorithm 1);
    "adamw" adds decoupled weight decay (Loshchilov and Hutter, 2019, algorithm 2), on matrices only: biases and layer
    norms have one axis. Raises UserError on an unknown name, and on weight decay asked of plain Adam.
    """
    if config.name not in OPTIMIZERS:
        raise UserError(f"optimizer.name={config.name!r} is unknown: use one of {', '.join(OPTIMIZERS)}")
    if config.name == "adam" and config.weight_decay:
        raise UserError("optimizer.weight_decay has no effect on 'adam': set optimizer.name='adamw', or weight_decay=0")
    parts = [optax.clip_by_global_norm(config.clip_norm)] if config.clip_norm else []
    parts.append(optax.scale_by_adam(b1=config.beta1, b2=config.beta2, eps=config.epsilon))
    if config.weight_decay:
        parts.append(optax.add_decayed_weights(config.weight_decay, mask=matrices))
    return optax.chain(*parts)


def matrices(params: Any) -> Any:
    """True for the parameters of two and more axes, which weight decay applies to."""
    return jax.tree.map(lambda param: param.ndim > 1, params)
