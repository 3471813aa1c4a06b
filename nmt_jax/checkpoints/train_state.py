"""The training state: all arrays that change from step to step."""

from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import optax


@flax.struct.dataclass
class TrainState:
    """All that changes from step to step on the devices.

    step: int32, the index of the next batch; it advances even when a step is skipped.
    ema: exponential moving average of the parameters, or () when off.
    skipped: int32, how many of the latest steps in a row had no finite loss or gradient and changed nothing.
    """

    step: jax.Array
    params: Any
    opt_state: Any
    ema: Any
    skipped: jax.Array

    @property
    def averaged(self) -> Any:
        """The parameters to evaluate and translate with: the moving average where there is one."""
        return self.ema if jax.tree.leaves(self.ema) else self.params


def new_state(params: Any, optimizer: optax.GradientTransformation, ema_decay: float) -> TrainState:
    """The state before the first step."""
    ema = jax.tree.map(jnp.copy, params) if ema_decay else ()  # a copy: the step may not be given one buffer twice
    zero = jnp.zeros((), jnp.int32)
    return TrainState(step=zero, params=params, opt_state=optimizer.init(params), ema=ema, skipped=jnp.copy(zero))
