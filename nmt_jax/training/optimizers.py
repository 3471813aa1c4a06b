"""Learning-rate schedules and optimizers."""

import functools
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from ml_collections import ConfigDict

from nmt_jax.errors import UserError

Schedule = Callable[[jax.Array | int], jax.Array]
SCHEDULES = ("noam", "inverse_sqrt", "cosine", "linear", "constant")
OPTIMIZERS = ("adam", "adamw", "adagrad")


def make_schedule(config: ConfigDict, steps: int, d_model: int | None = None) -> Schedule:
    """Return the learning rate as a function of the update n = 1, 2, …, `steps`.

    It rises linearly to a peak, then decays as `config.schedule` says. "noam" is Vaswani et al. (2017), eq. 3, times
    `learning_rate`: the peak is learning_rate * (d_model * warmup)^-0.5. For all others, `learning_rate` is the peak.
    "inverse_sqrt" decays as n^-0.5; "cosine" and "linear" would reach zero at update `steps` + 1; "constant" does not
    decay. Raises UserError if the name is unknown, and for "noam" without d_model or warm-up.
    """
    name, peak, warmup = config.schedule, config.learning_rate, config.warmup_steps
    if name not in SCHEDULES:
        raise UserError(f"optimizer.schedule={name!r} is unknown; use one of {', '.join(SCHEDULES)}")
    if name == "noam":
        if not d_model or warmup < 1:
            raise UserError("optimizer.schedule='noam' needs model.d_model and optimizer.warmup_steps >= 1")
        peak *= (d_model * warmup) ** -0.5
    first = max(warmup, 1)  # the update at the peak

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
    """Return the optimizer: the direction of an update, which the step multiplies by the learning rate and subtracts.

    Gradients are clipped to the global norm `clip_norm` (0 disables it). "adam" is Kingma and Ba (2015), algorithm 1.
    "adamw" adds decoupled weight decay (Loshchilov and Hutter, 2019, algorithm 2) of matrices, not of biases and layer
    norms. "adagrad" is Duchi et al. (2011), eq. 1, on the diagonal: g / sqrt(sum of g^2 + epsilon), which is gradient
    descent with rate learning_rate / sqrt(epsilon) while gradients are small. `layer_decay` lowers the learning rate of
    lower layers, see `scale_by_depth`.

    Raises UserError if the name is unknown, for weight decay without "adamw", and for `layer_decay` outside (0, 1].
    """
    if config.name not in OPTIMIZERS:
        raise UserError(f"optimizer.name={config.name!r} is unknown; use one of {', '.join(OPTIMIZERS)}")
    if config.name != "adamw" and config.weight_decay:
        raise UserError(
            f"optimizer.weight_decay has no effect on {config.name!r}: set optimizer.name='adamw', or weight_decay=0"
        )
    parts = [optax.clip_by_global_norm(config.clip_norm)] if config.clip_norm else []
    if config.name == "adagrad":
        parts.append(optax.scale_by_rss(initial_accumulator_value=0.0, eps=config.epsilon))
    else:
        parts.append(optax.scale_by_adam(b1=config.beta1, b2=config.beta2, eps=config.epsilon))
    if config.weight_decay:
        mask = functools.partial(jax.tree.map, lambda param: param.ndim > 1)  # matrices
        parts.append(optax.add_decayed_weights(config.weight_decay, mask=mask))
    if not 0 < config.layer_decay <= 1:
        raise UserError(f"optimizer.layer_decay={config.layer_decay}: must be above 0 and at most 1, which disables it")
    if config.layer_decay != 1:
        parts.append(scale_by_depth(config.layer_decay))
    return optax.chain(*parts)


def scale_by_depth(decay: float) -> optax.GradientTransformation:
    """Multiply updates by decay^(number of layers above): Howard and Ruder (2018), 3.1; Clark et al. (2020), A.2.

    Embeddings are below all layers. Other parameters, such as the head, are above and count as one layer: the updates
    of the top layer are multiplied by decay. Raises UserError for a model without modules `layers_N`.
    """

    def scale(updates: Any, _: Any) -> Any:
        paths = [path for path, _ in jax.tree.leaves_with_path(updates)]
        top = 1 + max(filter(None, map(_layer, paths)), default=0)
        if top == 1:
            raise UserError(f"optimizer.layer_decay={decay}: this model has no layers_0, layers_1 …; set it to 1.0")

        def scaled(path: Any, update: jax.Array) -> jax.Array:
            layer = _layer(path)
            return update * decay ** (top - (top if layer is None else layer))

        return jax.tree.map_with_path(scaled, updates)

    return optax.stateless(scale)


def _layer(path: Any) -> int | None:
    """The layer of a parameter, counted from 1; 0 for an embedding, None for other parameters."""
    name = jax.tree_util.keystr(path, simple=True, separator="/")
    if found := re.search(r"(?:^|/)layers_(\d+)/", name):
        return 1 + int(found[1])
    return 0 if re.search(r"embeddings/|(?:^|/)encoder/(?:embedding|position)/", name) else None
