"""The training state: all arrays that change from step to step."""

from collections.abc import Mapping
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import optax


@flax.struct.dataclass
class TrainState:
    """Everything on the devices that changes from step to step.

    step: int32, the index of the next batch; it advances even when a step is skipped.
    ema: exponential moving average of the parameters, or () if there is none.
    skipped: int32, the number of latest consecutive steps that had a non-finite loss or gradient and changed nothing.
    carry: what a batch leaves to the next, arrays [B, ...] by its rows, such as the last states of a recurrent
    network; () if there is nothing.
    """

    step: jax.Array
    params: Any
    opt_state: Any
    ema: Any
    skipped: jax.Array
    carry: Any = ()

    @property
    def averaged(self) -> Any:
        """The parameters to evaluate and translate with: the moving average if there is one."""
        return self.ema if jax.tree.leaves(self.ema) else self.params

    @property
    def parts(self) -> dict[str, Any]:
        """The state as trees that are stored separately, because translation reads the parameters only."""
        rest = {"step": self.step, "opt_state": self.opt_state, "skipped": self.skipped}
        if jax.tree.leaves(self.carry):
            rest["carry"] = self.carry
        parts = {"params": self.params, "rest": rest}
        return {**parts, "ema": self.ema} if jax.tree.leaves(self.ema) else parts

    @classmethod
    def from_parts(cls, parts: Mapping[str, Any]) -> "TrainState":
        """The inverse of `parts`."""
        return cls(params=parts["params"], ema=parts.get("ema", ()), **parts["rest"])


def new_state(params: Any, optimizer: optax.GradientTransformation, ema_decay: float, carry: Any = ()) -> TrainState:
    """The state before the first step."""
    ema = jax.tree.map(jnp.copy, params) if ema_decay else ()  # copied: the step may not be given the same buffer twice
    zero = jnp.zeros((), jnp.int32)
    opt_state = optimizer.init(params)
    return TrainState(step=zero, params=params, opt_state=opt_state, ema=ema, skipped=jnp.copy(zero), carry=carry)
