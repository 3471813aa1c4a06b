"""Outputs of a model for rows of tokens: each distinct row is read once, in batches of a few shapes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from metrics_jax.embedding.embedding_cache import EmbeddingCache
from metrics_jax.embedding.encoder import distinct_rows, progress

if TYPE_CHECKING:
    from jax import Array


def row_outputs(
    model: Callable[[Array, Array], Array],
    rows: Sequence[np.ndarray],
    max_length: int,
    what: str = "scoring",
    cache: EmbeddingCache | None = None,
) -> list[np.ndarray]:
    """The outputs of N rows int32[S] of 1 to max_length ids: float32[S, E] each, or [1, E] for one output per row.

    model: ids int[B, S] and mask bool[B, S] -> float[B, S, E] or [B, 1, E], in JAX; a `jax.tree_util.Partial` whose
    arguments are the weights. A generator that yields this compiles its own parts, as for `Encoder.embed`. The outputs
    of a row are bit-identical whatever the other rows. what: shown beside the progress. cache: of outputs by row.
    Raises ValueError if an output is not finite.
    """
    import jax

    from metrics_jax.embedding import devices, platforms
    from metrics_jax.embedding.forward import Forward

    distinct, firsts = distinct_rows(rows)
    different = [rows[first] for first in firsts]
    found: list[Any] = [cache.find(row) if cache else None for row in different]
    missing = [number for number, output in enumerate(found) if output is None]
    partial = model if isinstance(model, jax.tree_util.Partial) else jax.tree_util.Partial(model)
    embed = partial if inspect.isgeneratorfunction(partial.func) else jax.tree_util.Partial(_one_state, partial)
    # One size: another number of rows in a batch could change the last bits of a row.
    size = platforms.batch_tokens(devices.platform())[-1]
    forward = Forward(embed, (0,), "concatenate", normalize=False, max_length=max_length)
    try:
        with progress(what, sum(len(different[number]) for number in missing)) as advance:
            for index, output in forward([different[number] for number in missing], size):
                number = missing[index]
                found[number] = output
                if cache:
                    cache.add(different[number], output)
                advance(len(different[number]))
    finally:  # keeps the work of an interrupted run
        if cache:
            cache.flush()
    if not all(np.isfinite(output).all() for output in found):
        raise ValueError("an output is NaN or infinity: the weights of the model are damaged")
    return [found[number] for number in distinct]


def _one_state(model: Callable[[Array, Array], Array], ids: Array, mask: Array) -> Array:
    """The outputs of a model in the shape of an encoder's hidden states, of which there is one."""
    return model(ids, mask)[None]
