"""The training step that a loss is computed at: its number and its random key."""

from typing import NamedTuple

import jax


class Step(NamedTuple):
    """A training step: its number int32[], from 0, and a random key that belongs to it alone."""

    number: jax.Array
    rng: jax.Array
