"""SpecAugment (Park et al., 2019, section 2): masked bands of frequencies and of frames, without time warping."""

import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax.models.layers.features import Features


def spec_augment(
    rng: Array,
    source: Features,
    *,
    frequency_masks: int,
    frequency_width: int,
    time_masks: int,
    time_width: int,
    time_share: float,
) -> Features:
    """Set random bands of normalized filterbanks, rows float32[B, S, F], to 0, which is their mean.

    For each source, `frequency_masks` times: f ~ U{0, ..., min(frequency_width, F)} and f0 ~ U{0, ..., F - f}; the
    columns f0 to f0 + f - 1 are masked. `time_masks` times: t ~ U{0, ..., min(time_width, time_share * s)} and
    t0 ~ U{0, ..., s - t}, where s is the length of the source; the rows t0 to t0 + t - 1 are masked.
    """
    (_, length, columns), lengths = source.rows.shape, source.lengths
    for_frequency, for_time = jax.random.split(rng)
    all_columns = jnp.full_like(lengths, columns)
    by_column = _masked(for_frequency, frequency_masks, jnp.minimum(frequency_width, all_columns), all_columns, columns)
    longest = jnp.minimum(time_width, jnp.floor(time_share * lengths).astype(jnp.int32))
    by_row = _masked(for_time, time_masks, longest, lengths, length)
    masked = by_row[:, :, None] | by_column[:, None, :]
    return Features(jnp.where(masked, 0.0, source.rows), lengths)


def _masked(rng: Array, count: int, widest: Array, sizes: Array, places: int) -> Array:
    """`count` random bands of at most `widest` int32[B] of the first `sizes` int32[B] places -> bool[B, places]."""
    draws = jax.random.uniform(rng, (2, len(sizes), count))
    width = jnp.floor(draws[0] * (widest[:, None] + 1)).astype(jnp.int32)
    first = jnp.floor(draws[1] * (sizes[:, None] - width + 1)).astype(jnp.int32)
    place = jnp.arange(places)[None, None]
    return jnp.any((place >= first[..., None]) & (place < (first + width)[..., None]), axis=1)
