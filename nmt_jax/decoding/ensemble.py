"""Ensembles: several models, of any kind, as one step closure."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from nmt_jax.decoding.beam import Step

Array = jax.Array


def ensemble(steps: Sequence[Step]) -> Step:
    """The step closure of models with one vocabulary, its cache the tuple of theirs.

    Log of the mean of their probabilities, (1/n) sum_i p_i(y | ·) (Sutskever et al., 2014, average so); of one model
    its own, to the bit.
    """

    def step(tokens: Array, caches: tuple[Any, ...]) -> tuple[Array, tuple[Any, ...]]:
        found = [step(tokens, cache) for step, cache in zip(steps, caches, strict=True)]
        log_probs, caches = zip(*found, strict=True)
        if len(steps) == 1:
            return log_probs[0], caches
        return jax.nn.logsumexp(jnp.stack(log_probs), axis=0) - jnp.log(len(steps)), caches

    return step
