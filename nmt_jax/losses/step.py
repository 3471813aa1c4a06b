"""The step number and random key that a loss may depend on."""

from typing import NamedTuple

import jax


class Step(NamedTuple):
    """A training step: its number int32[], from 0, and a random key of its own."""

    number: jax.Array
    rng: jax.Array
