"""Mimetic initialization of BERT (Trockman and Kolter, 2023)."""

from typing import Any

import jax.numpy as jnp

from nmt_jax.models.layers.embedding import sinusoids

NEARNESS = 4.6  # the score of a query and a key of the same vector
POSITIONS = 1.5  # norm of position embeddings, relative to word embeddings


def mimetic(params: Any, num_heads: int) -> Any:
    """Return the initial parameters of `Bert` with sinusoidal positions, and with keys equal to queries in each layer.

    After Trockman and Kolter (2023), section 3: W_Q W_K^T is near a multiple of the identity, as in trained models.
    Nearby tokens score highest, so [MASK] attends to its neighbours from the first step. With random positions, a small
    model learns nothing but word frequencies for a long time. All parameters remain trainable.
    """
    tables = params["embeddings"]
    deviation = jnp.sqrt(jnp.mean(jnp.square(tables["word"])))
    waves = POSITIONS * deviation * 2**0.5 * sinusoids(*tables["position"].shape)
    changed = {**params, "embeddings": {**tables, "position": waves}}
    for name in params:
        if name.startswith("layers_"):
            kernel = params[name]["query"]["kernel"]
            d_model = kernel.shape[0]
            # From D numbers near 1, q = k has d_k numbers of variance s^2 D, which score d_k s^2 D / sqrt(d_k).
            target = (NEARNESS / ((d_model // num_heads) ** 0.5 * d_model)) ** 0.5
            kernel = kernel * (target / jnp.sqrt(jnp.mean(jnp.square(kernel))))
            layer = params[name]
            query, key = {**layer["query"], "kernel": kernel}, {**layer["key"], "kernel": kernel}
            changed[name] = {**layer, "query": query, "key": key}
    return changed
