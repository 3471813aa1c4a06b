"""The k best of many, several times faster on a CPU than one `lax.top_k` over all."""

import jax
import jax.numpy as jnp

Array = jax.Array


def top_k(x: Array, k: int, block: int = 64) -> tuple[Array, Array]:
    """x float[B, N] -> the k largest float[B, k] and their indices int32[B, k], as `lax.top_k` gives them.

    In two stages: each of the k largest lies in one of the k blocks with the largest maxima. The blocks chosen are kept
    in their order, so that of equal values the first wins, as in `lax.top_k`.
    """
    batch_size, length = x.shape
    num_blocks = -(-length // block)
    if num_blocks <= k:
        return jax.lax.top_k(x, k)
    padded = jnp.pad(x, ((0, 0), (0, num_blocks * block - length)), constant_values=-jnp.inf)
    blocks = padded.reshape(batch_size, num_blocks, block)
    chosen = jnp.sort(jax.lax.top_k(jnp.max(blocks, axis=-1), k)[1], axis=-1)  # [B, k]
    inside = jnp.take_along_axis(blocks, chosen[:, :, None], axis=1).reshape(batch_size, k * block)
    values, positions = jax.lax.top_k(inside, k)
    indices = jnp.take_along_axis(chosen, positions // block, axis=1) * block + positions % block
    return values, indices
