"""Ensembles: several models as one step function."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from nmt_jax.decoding.next_logits import NextLogits, Step

Array = jax.Array


def ensemble(steps: Sequence[Step]) -> Step:
    """The step function of several models with the same vocabulary; its cache is the tuple of theirs.

    Log of the mean of their probabilities, (1/n) sum_i p_i(y | ·) (Sutskever et al., 2014, average so); of one model
    its own, to the bit.
    """

    def step(tokens: Array, caches: tuple[Any, ...]) -> tuple[NextLogits, tuple[Any, ...]]:
        found = [step(tokens, cache) for step, cache in zip(steps, caches, strict=True)]
        following, caches = zip(*found, strict=True)
        if len(steps) == 1:
            return following[0], caches
        total = jax.nn.logsumexp(jnp.stack([one.log_probs for one in following]), axis=0)
        return NextLogits(total, jnp.full(len(tokens), jnp.log(len(steps)))), caches

    return step
