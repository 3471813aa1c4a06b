"""Lexical constraints: phrases that a translation must contain, by vectorized dynamic beam allocation.

Post and Vilar (2018); Hu et al. (2019). The phrases of a sentence are concatenated in one row of pieces. Each
occurrence of a phrase in the translation meets one constraint.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from nmt_jax.decoding.next_logits import IMPOSSIBLE


class Phrases(NamedTuple):
    """The constraints of B sentences, at most C pieces each."""

    pieces: Array  # int32[B, C], padded with 0
    first: Array  # bool[B, C]: the first piece of a phrase

    @classmethod
    def of(cls, phrases: list[list[list[int]]]) -> "Phrases":
        """Concatenate the phrases of each sentence; C is a power of two, so that few shapes are compiled."""
        most = max((sum(map(len, own)) for own in phrases), default=0)
        shape = (len(phrases), 1 << (most - 1).bit_length() if most else 0)
        pieces, first = np.zeros(shape, np.int32), np.zeros(shape, bool)
        for row, own in enumerate(phrases):
            place = 0
            for phrase in own:
                pieces[row, place : place + len(phrase)] = phrase
                first[row, place] = True
                place += len(phrase)
        return cls(jnp.asarray(pieces), jnp.asarray(first))


def next_pieces(phrases: Phrases, met: Array, eos: int) -> Array:
    """The pieces that would meet a constraint: met bool[B, K, C] -> int32[B, K, C + 1], 0 for none.

    Within a phrase: its next piece; else the first piece of each unmet phrase, or `eos` if all are met. None for
    sentences without constraints.
    """
    real = (phrases.pieces > 0)[:, None]
    inside = _inside(phrases, met)
    allowed = real & ~met & jnp.where(inside.any(axis=-1, keepdims=True), inside, phrases.first[:, None])
    end = ~(real & ~met).any(axis=-1, keepdims=True) & real.any(axis=-1, keepdims=True)
    return jnp.concatenate([jnp.where(allowed, phrases.pieces[:, None], 0), jnp.where(end, eos, 0)], axis=-1)


def advance(phrases: Phrases, met: Array, pieces: Array) -> Array:
    """Update met bool[B, N, C] by one more piece, int32[B, N] -> bool[B, N, C].

    The piece continues the started phrase; otherwise that phrase is unmet again, and the piece may start another.
    """
    same = phrases.pieces[:, None] == pieces[:, :, None]
    continues = _inside(phrases, met) & same
    # The pieces of an incomplete phrase are unmet again.
    dropped = met & ~_begun(phrases, met)
    begins = phrases.first[:, None] & ~dropped & same
    begins &= jnp.cumsum(begins, axis=-1) == 1
    return jnp.where(continues.any(axis=-1, keepdims=True), met | continues, dropped | begins)


def allocate(scores: Array, num_met: Array, beam_size: int) -> Array:
    """Choose K of N candidates: scores float[B, N], number of pieces met int[B, N] -> indices int[B, K].

    First the best candidate for each number of pieces met, the largest number first; then the second best for each, and
    so on. Without constraints these are the K best.
    """
    # The rank of each among those with the same number of pieces met, by comparison with all N, which are few.
    better = (scores[:, None, :] > scores[:, :, None]) | (
        (scores[:, None, :] == scores[:, :, None]) & jnp.tril(jnp.ones((scores.shape[1],) * 2, bool), -1)[None]
    )
    rank = jnp.sum(better & (num_met[:, None, :] == num_met[:, :, None]), axis=-1)
    # Impossible candidates come last.
    rank = jnp.where(scores > IMPOSSIBLE / 2, rank, rank + scores.shape[1])
    most = num_met.max(axis=-1, keepdims=True) + 1
    return jnp.argsort(rank * most + (most - 1 - num_met), axis=-1)[:, :beam_size]


def num_unmet(phrases: Phrases, met: Array) -> Array:
    """The number of pieces not met yet: met bool[B, N, C] -> int[B, N]."""
    return jnp.sum((phrases.pieces > 0)[:, None] & ~met, axis=-1)


def _phrase(phrases: Phrases) -> Array:
    """The number of the phrase that a piece belongs to, int[B, C]."""
    return jnp.cumsum(phrases.first, axis=-1)


def _begun(phrases: Phrases, met: Array) -> Array:
    """The pieces of the phrase that is started but incomplete, bool[B, N, C]."""
    number = _phrase(phrases)
    together = (number[:, :, None] == number[:, None, :]) & (phrases.pieces > 0)[:, None, :]  # [B, C, C]
    some = (together[:, None] & met[:, :, None, :]).any(axis=-1)
    all_ = (~together[:, None] | met[:, :, None, :]).all(axis=-1)
    return some & ~all_ & (phrases.pieces > 0)[:, None]


def _inside(phrases: Phrases, met: Array) -> Array:
    """The next piece of the started phrase, bool[B, N, C]."""
    before = jnp.pad(met[..., :-1], ((0, 0), (0, 0), (1, 0)))
    return ~phrases.first[:, None] & ~met & before & (phrases.pieces > 0)[:, None]
