"""How often a decoder that is trained reads the true previous piece instead of its own (Bengio et al., 2015)."""

import jax
import jax.numpy as jnp
from ml_collections import ConfigDict

from nmt_jax.errors import UserError

SCHEDULES = ("constant", "linear", "exponential", "inverse_sigmoid")


def ratio(config: ConfigDict, step: jax.Array) -> jax.Array | None:
    """The share of true pieces at a step, float32[] in [0, 1]; None where it is always 1.

    config: schedule, start, end, decay_steps (k). From `start` towards `end`, by Bengio et al. (2015), section 2.4:
    "linear" in k steps; "exponential" exp(-i / k); "inverse_sigmoid" k / (k + exp(i / k)). UserError for what cannot be
    meant.
    """
    if config.schedule not in SCHEDULES:
        raise UserError(f"config.loss.teacher_forcing.schedule={config.schedule!r} is none of {', '.join(SCHEDULES)}")
    if not 0.0 <= config.end <= config.start <= 1.0:
        raise UserError("config.loss.teacher_forcing: 0 <= end <= start <= 1, please")
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
