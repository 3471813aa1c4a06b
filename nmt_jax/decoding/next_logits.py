"""The interface between decoding and a model: a step function from the pieces chosen last to the next logits."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from nmt_jax.decoding.topk import block_maxima

Array = jax.Array

IMPOSSIBLE = -1e9  # below the log-probability of every real hypothesis; finite, so that differences are defined


class NextLogits(NamedTuple):
    """The distribution of the next piece, in two parts: a search does not need the difference for all V pieces."""

    logits: Array  # float32[N, V], IMPOSSIBLE for suppressed pieces
    log_normalizer: Array  # float32[N]: log sum exp of all logits

    @property
    def log_probs(self) -> Array:
        """logits - log_normalizer, float32[N, V]."""
        return self.logits - self.log_normalizer[:, None]


# The pieces chosen last, int[N], and the cache -> the next logits, and the new cache.
Step = Callable[[Array, Any], tuple[NextLogits, Any]]


def predict(logits: Array, suppressed: tuple[int, ...]) -> NextLogits:
    """Logits float[N, V] of a model -> NextLogits; suppressed pieces keep their probability mass but are IMPOSSIBLE."""
    logits = logits.astype(jnp.float32)
    # `top_k` needs the maxima of blocks, too, so this maximum is free.
    maximum = block_maxima(logits).max(axis=-1)
    log_normalizer = maximum + jnp.log(jnp.sum(jnp.exp(logits - maximum[:, None]), axis=-1))
    # Special pieces have the first ids: only these columns are written.
    first = logits[:, : max(suppressed, default=-1) + 1]
    first = jnp.where(jnp.isin(jnp.arange(first.shape[1]), jnp.array(suppressed, jnp.int32))[None], IMPOSSIBLE, first)
    return NextLogits(jax.lax.dynamic_update_slice(logits, first, (0, 0)), log_normalizer)
