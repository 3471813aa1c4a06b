"""The step function between decoding and a model, for one model, an ensemble, and given texts (forced decoding)."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax.decoding.topk import block_maxima

IMPOSSIBLE = -1e9  # below the log-probability of every real hypothesis; finite, so that differences are defined


class NextLogits(NamedTuple):
    """The distribution of the next piece, in two parts: a search does not need the difference for all V pieces."""

    logits: Array  # float32[N, V], IMPOSSIBLE for suppressed pieces
    log_normalizer: Array  # float32[N]: log sum exp of all logits; NaN if it is not finite

    @property
    def log_probs(self) -> Array:
        """logits - log_normalizer, float32[N, V]."""
        return self.logits - self.log_normalizer[:, None]


# The pieces chosen last, int[N], and the cache -> the next logits, and the new cache.
Step = Callable[[Array, Any], tuple[NextLogits, Any]]


def predict(logits: Array, suppressed: tuple[int, ...]) -> NextLogits:
    """Logits float[N, V] of a model -> NextLogits; suppressed pieces keep their probability mass but are IMPOSSIBLE."""
    logits = logits.astype(jnp.float32)
    # Where `Platform.top_k` is "blocks", `top_k` needs the maxima of blocks, too, so this maximum is free.
    maximum = block_maxima(logits).max(axis=-1)
    log_normalizer = maximum + jnp.log(jnp.sum(jnp.exp(logits - maximum[:, None]), axis=-1))
    log_normalizer = jnp.where(jnp.isfinite(log_normalizer), log_normalizer, jnp.nan)
    # Special pieces have the first ids: only these columns are written.
    first = logits[:, : max(suppressed, default=-1) + 1]
    first = jnp.where(jnp.isin(jnp.arange(first.shape[1]), jnp.array(suppressed, jnp.int32))[None], IMPOSSIBLE, first)
    return NextLogits(jax.lax.dynamic_update_slice(logits, first, (0, 0)), log_normalizer)


def ensemble(steps: Sequence[Step]) -> Step:
    """The step function of several models with the same vocabulary; its cache is the tuple of theirs.

    The probability of a piece is the mean of the models' probabilities, (1/n) sum_i p_i(y | ·) (Sutskever et al.,
    2014). The logits of a single model are passed on unchanged.
    """

    def step(tokens: Array, caches: tuple[Any, ...]) -> tuple[NextLogits, tuple[Any, ...]]:
        found = [step(tokens, cache) for step, cache in zip(steps, caches, strict=True)]
        following, caches = zip(*found, strict=True)
        if len(steps) == 1:
            return following[0], caches
        total = jax.nn.logsumexp(jnp.stack([one.log_probs for one in following]), axis=0)
        return NextLogits(total, jnp.full(len(tokens), jnp.log(len(steps)))), caches

    return step


def token_log_probs(
    step: Step, cache: Any, given: Array, *, start: int, attention: Callable[[Any], Array] | None = None
) -> tuple[Array, Array]:
    """Return log p(y_t | y_1 .. y_{t-1}) of given int[B, T], float[B, T], and the attention weights float[B, T, S].

    The log-probabilities are 0 where given is 0; the weights there have no meaning. step: maps the previous tokens,
    int[B] (`start` at first), and the cache to the next logits and a new cache. attention: extracts the weights
    float[B, S] of the step from the cache; S = 0 without it.
    """

    def advance(carry: tuple[Array, Any], tokens: Array) -> tuple[tuple[Array, Any], tuple[Array, Array]]:
        following, cache = step(*carry)
        own = jnp.take_along_axis(following.logits, tokens[:, None], axis=1)[:, 0] - following.log_normalizer
        weights = attention(cache) if attention else jnp.zeros((len(tokens), 0))
        return (tokens, cache), (jnp.where(tokens > 0, own, 0.0), weights)

    first = jnp.full(given.shape[0], start, given.dtype)
    log_probs, weights = jax.lax.scan(advance, (first, cache), given.T)[1]
    return log_probs.T, weights.swapaxes(0, 1)
