"""Buckets of relative positions, and a learned bias of attention scores for each (Raffel et al., 2020, section 2.1)."""

import math

import flax.linen as nn
import numpy as np
from jax import Array


def relative_buckets(queries: int, keys: int, buckets: int, largest: int, both_sides: bool) -> np.ndarray:
    """The bucket of each key's position relative to a query's, int[queries, keys], below `buckets`.

    Half of the buckets count exactly, the others are log-spaced up to the distance `largest`. both_sides: later keys
    have buckets of their own, the second half; otherwise they share that of distance 0.
    """
    relative = np.arange(keys)[None, :] - np.arange(queries)[:, None]
    each = buckets // 2 if both_sides else buckets
    distances = np.abs(relative) if both_sides else np.maximum(-relative, 0)
    exact = each // 2
    # In float32, like the reference: a distance at the border of two buckets must fall to the same side.
    far = np.log(np.maximum(distances, exact).astype(np.float32) / np.float32(exact))
    steps = (far / np.float32(math.log(largest / exact)) * np.float32(each - exact)).astype(int)
    found = np.where(distances < exact, distances, np.minimum(exact + steps, each - 1))
    return np.where(relative > 0, found + each, found) if both_sides else found


class RelativeBias(nn.Module):
    """A learned bias for each head and bucket of relative positions."""

    num_heads: int
    buckets: int
    largest: int
    both_sides: bool = True

    @nn.compact
    def __call__(self, queries: int, keys: int) -> Array:
        """Return float[1, H, queries, keys], to be added to attention scores."""
        table = self.param("table", nn.initializers.zeros, (self.buckets, self.num_heads))
        places = relative_buckets(queries, keys, self.buckets, self.largest, self.both_sides)
        return table[places].transpose(2, 0, 1)[None]
