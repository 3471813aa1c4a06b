"""What a loss may depend on besides parameters and batch: the step's number, its random key, and the carry."""

from typing import Any, NamedTuple

import jax


class Step(NamedTuple):
    """A training step: its number int32[], from 0, a random key of its own, and what the step before it left.

    carry: arrays [B, ...] for the rows of the batch; () for tasks that carry nothing from batch to batch.
    """

    number: jax.Array
    rng: jax.Array
    carry: Any = ()
