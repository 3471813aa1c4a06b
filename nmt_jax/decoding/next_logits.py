"""What decoding knows of a model: a step closure, which takes the pieces chosen last to what may come next."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from nmt_jax.decoding.topk import block_maxima

Array = jax.Array

IMPOSSIBLE = -1e9  # a log-probability below any real hypothesis's, finite so that differences stay numbers


class NextLogits(NamedTuple):
    """What may come next; kept in two parts, since a search never needs the difference of all V pieces."""

    logits: Array  # float32[N, V], IMPOSSIBLE for what is never said
    log_normalizer: Array  # float32[N]: log sum exp of all logits

    @property
    def log_probs(self) -> Array:
        """The difference, float32[N, V]."""
        return self.logits - self.log_normalizer[:, None]


# The pieces chosen last, int[N], and a cache -> what may come next, and the cache one step longer.
Step = Callable[[Array, Any], tuple[NextLogits, Any]]


def predict(logits: Array, never: tuple[int, ...]) -> NextLogits:
    """Logits float[N, V] of a model; the pieces of `never` have their share of probability but are not said."""
    logits = logits.astype(jnp.float32)
    # The maxima of blocks, which choosing the best pieces needs too, give the maximum at no cost.
    most = block_maxima(logits).max(axis=-1)
    log_normalizer = most + jnp.log(jnp.sum(jnp.exp(logits - most[:, None]), axis=-1))
    # Special pieces come first in a vocabulary: only these columns are written.
    first = logits[:, : max(never, default=-1) + 1]
    first = jnp.where(jnp.isin(jnp.arange(first.shape[1]), jnp.array(never, jnp.int32))[None], IMPOSSIBLE, first)
    return NextLogits(jax.lax.dynamic_update_slice(logits, first, (0, 0)), log_normalizer)
