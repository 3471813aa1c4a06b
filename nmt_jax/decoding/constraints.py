"""Lexical constraints: phrases that a translation must contain, by vectorised dynamic beam allocation.

Post and Vilar (2018); Hu et al. (2019). A phrase is a row of pieces; a line's phrases stand one after the other in one
row, and each occurrence serves one phrase.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from nmt_jax.decoding.next_logits import IMPOSSIBLE

Array = jax.Array


class Phrases(NamedTuple):
    """What the translations of B sentences must contain, C pieces at most."""

    pieces: Array  # int32[B, C], 0 beyond a sentence's own
    first: Array  # bool[B, C]: begins a phrase

    @classmethod
    def of(cls, phrases: list[list[list[int]]]) -> "Phrases":
        """The phrases of each sentence as rows of pieces, of a power of two, so that few shapes are compiled."""
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

    Within a phrase its next piece, else the first of each phrase; `eos` when all are met. Nothing for a sentence
    without constraints.
    """
    given = (phrases.pieces > 0)[:, None]
    inside = _inside(phrases, met)
    may = given & ~met & jnp.where(inside.any(axis=-1, keepdims=True), inside, phrases.first[:, None])
    end = ~(given & ~met).any(axis=-1, keepdims=True) & given.any(axis=-1, keepdims=True)
    return jnp.concatenate([jnp.where(may, phrases.pieces[:, None], 0), jnp.where(end, eos, 0)], axis=-1)


def advance(phrases: Phrases, met: Array, pieces: Array) -> Array:
    """What is met once a piece more is said: met bool[B, N, C], pieces int32[B, N] -> bool[B, N, C].

    The piece goes on with the phrase that is begun, or else drops it and may begin another.
    """
    same = phrases.pieces[:, None] == pieces[:, :, None]
    goes_on = _inside(phrases, met) & same
    # The unmet first piece of a phrase that is not whole is met only by beginning.
    dropped = met & ~_begun(phrases, met)
    begins = phrases.first[:, None] & ~dropped & same
    begins &= jnp.cumsum(begins, axis=-1) == 1
    return jnp.where(goes_on.any(axis=-1, keepdims=True), met | goes_on, dropped | begins)


def allocate(scores: Array, num_met: Array, beam_size: int) -> Array:
    """Which K of N candidates live on: scores float[B, N], pieces met int[B, N] -> indices int[B, K].

    The best of each number of pieces met, then the second best of each, and so on, the most met first; where there is
    nothing to meet, the best.
    """
    # The place of each among those with as much met, by comparison with all: N is some tens.
    better = (scores[:, None, :] > scores[:, :, None]) | (
        (scores[:, None, :] == scores[:, :, None]) & jnp.tril(jnp.ones((scores.shape[1],) * 2, bool), -1)[None]
    )
    place = jnp.sum(better & (num_met[:, None, :] == num_met[:, :, None]), axis=-1)
    # Impossible ones last.
    place = jnp.where(scores > IMPOSSIBLE / 2, place, place + scores.shape[1])
    most = num_met.max(axis=-1, keepdims=True) + 1
    return jnp.argsort(place * most + (most - 1 - num_met), axis=-1)[:, :beam_size]


def num_unmet(phrases: Phrases, met: Array) -> Array:
    """met bool[B, N, C] -> how many pieces are still to come, int[B, N]."""
    return jnp.sum((phrases.pieces > 0)[:, None] & ~met, axis=-1)


def _phrase(phrases: Phrases) -> Array:
    """The number of the phrase that a piece belongs to, int[B, C]."""
    return jnp.cumsum(phrases.first, axis=-1)


def _begun(phrases: Phrases, met: Array) -> Array:
    """Pieces of the phrase that is begun and not whole, bool[B, N, C]."""
    number = _phrase(phrases)
    together = (number[:, :, None] == number[:, None, :]) & (phrases.pieces > 0)[:, None, :]  # [B, C, C]
    some = (together[:, None] & met[:, :, None, :]).any(axis=-1)
    all_ = (~together[:, None] | met[:, :, None, :]).all(axis=-1)
    return some & ~all_ & (phrases.pieces > 0)[:, None]


def _inside(phrases: Phrases, met: Array) -> Array:
    """The next piece of the phrase that is begun, bool[B, N, C]."""
    before = jnp.pad(met[..., :-1], ((0, 0), (0, 0), (1, 0)))
    return ~phrases.first[:, None] & ~met & before & (phrases.pieces > 0)[:, None]
