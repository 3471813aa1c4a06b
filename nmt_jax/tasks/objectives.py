"""Losses that several tasks share: of labels, and of tokens with or without all logits."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from nmt_jax.losses.cross_entropy import cross_entropy, sequence_log_probs, smoothed_cross_entropy
from nmt_jax.losses.step import Step


def dropout_options(step: Step | None) -> dict[str, Any]:
    """Return the arguments of `model.apply` that switch dropout on in a training step; none in evaluation."""
    return {"train": True, "rngs": {"dropout": step.rng}} if step else {}


def label_loss(logits: jax.Array, labels: jax.Array, smoothing: float) -> tuple[jax.Array, jax.Array]:
    """Return the (sum, weight) of the cross-entropy in nats of one label per row.

    logits float[B, C], labels int[B]: -1 in rows of padding, which have weight 0.
    """
    weights = (labels >= 0).astype(jnp.float32)
    loss = smoothed_cross_entropy(logits, jnp.maximum(labels, 0), smoothing)
    return jnp.sum(loss * weights), jnp.sum(weights)


def token_loss(
    logits: jax.Array,
    out: Mapping[str, Any],
    labels: jax.Array,
    weights: jax.Array,
    smoothing: float,
    dtype: str,
    shards: int = 1,
) -> tuple[jax.Array, jax.Array]:
    """Return the (sum, weight) of the cross-entropy in nats of a sequence of tokens.

    logits float[B, T, V] and the intermediates `out` of a model, labels int[B, T], weights float[B, T]. shards: number
    of devices over which B is divided. If the logits are the product of `hidden` and `output_kernel`, the same loss is
    computed without holding all logits at once, and jit drops the logits.
    """
    if "output_kernel" in out:
        return cross_entropy(out["hidden"], out["output_kernel"], labels, weights, smoothing, dtype, shards)
    loss = smoothed_cross_entropy(logits, labels, smoothing)
    return jnp.sum(loss * weights), jnp.sum(weights)


def row_log_probs(
    logits: jax.Array, out: Mapping[str, Any], labels: jax.Array, weights: jax.Array, dtype: str
) -> jax.Array:
    """Return the log-probability float32[B] in nats of the tokens of each row; arguments as for `token_loss`."""
    if "output_kernel" in out:
        return sequence_log_probs(out["hidden"], out["output_kernel"], labels, weights, dtype)
    return -jnp.sum(smoothed_cross_entropy(logits, labels, 0.0) * weights, axis=1)
