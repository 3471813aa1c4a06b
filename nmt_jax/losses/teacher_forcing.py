"""The schedule of scheduled sampling (Bengio et al., 2015): the probability of reading the true previous piece."""

import jax
import jax.numpy as jnp
from ml_collections import ConfigDict

from nmt_jax.errors import UserError

SCHEDULES = ("constant", "linear", "exponential", "inverse_sigmoid")


def ratio(config: ConfigDict, step: jax.Array) -> jax.Array | None:
    """Return the probability of the true piece at step i, float32[] in [0, 1], or None if it is always 1.

    config: schedule, start, end, decay_steps (k). It falls from `start` to `end` (Bengio et al., 2015, section 2.4):
    "linear" in k steps; "exponential" as exp(-i / k); "inverse_sigmoid" as k / (k + exp(i / k)). Raises UserError if a
    setting is invalid.
    """
    if config.schedule not in SCHEDULES:
        raise UserError(f"config.loss.teacher_forcing.schedule={config.schedule!r}: use one of {', '.join(SCHEDULES)}")
    if not 0.0 <= config.end <= config.start <= 1.0:
        raise UserError("config.loss.teacher_forcing: start and end must satisfy 0 <= end <= start <= 1")
    if config.end == 1.0 or (config.schedule == "constant" and config.start == 1.0):
        return None
    if config.schedule == "constant":
        return jnp.float32(config.start)
    if config.decay_steps < 1:
        raise UserError(f"config.loss.teacher_forcing.decay_steps={config.decay_steps} must be at least 1")
    i, k = step.astype(jnp.float32), float(config.decay_steps)
    if config.schedule == "linear":
        left = jnp.maximum(1.0 - i / k, 0.0)
    elif config.schedule == "exponential":
        left = jnp.exp(-i / k)
    else:
        left = 1.0 / (1.0 + jnp.exp(i / k - jnp.log(k)))
    return config.end + (config.start - config.end) * left
