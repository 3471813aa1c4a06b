"""Where a small BERT may begin to learn: with attention that already looks at what is near."""

from typing import Any

import jax.numpy as jnp

from nmt_jax.models.layers.embedding import sinusoids

NEARNESS = 4.6  # what a query and a key of the same vector score
POSITIONS = 1.5  # how large positions are beside words


def mimetic(params: Any, num_heads: int) -> Any:
    """Parameters of `Bert` as they were drawn -> with sinusoids as positions, and keys equal to queries in each layer.

    After Trockman and Kolter (2023), section 3: W_Q W_K^T near a multiple of the identity, beside sinusoidal positions,
    as trained attention has them. What is near scores most, so [MASK] sees its neighbours from the first step on; from
    random positions a small model first learns for a long time how often each word comes, and no more.
    All of it is learned on.
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
            wanted = (NEARNESS / ((d_model // num_heads) ** 0.5 * d_model)) ** 0.5
            kernel = kernel * (wanted / jnp.sqrt(jnp.mean(jnp.square(kernel))))
            layer = params[name]
            query, key = {**layer["query"], "kernel": kernel}, {**layer["key"], "kernel": kernel}
            changed[name] = {**layer, "query": query, "key": key}
    return changed
