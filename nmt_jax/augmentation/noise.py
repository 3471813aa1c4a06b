"""Noise: words are left out, change places, or are masked, alone (`mask`) or in spans (`infill`).

Iyyer et al. (2015), section 3.2: word dropout. Artetxe et al. (2018), section 3.2, and Edunov et al. (2018), section 3:
dropout, masks, and permutations that move no word by more than k places; `corrupt` does all three. Lewis et al. (2020),
section 2.2: text infilling.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

SPAN = 3.0  # mean length of a masked span


class Changed(NamedTuple):
    """A changed line, the number of its words that were changed, and the new words by position if some were replaced.

    The new words are in lower case, without attached punctuation.
    """

    words: list[str]
    num_changed: int
    replaced: dict[int, str]


def pick(random: np.random.Generator, places: Sequence[int], length: int, rate: float) -> list[int]:
    """Picks places for a line of `length` words, in ascending order: rate * length of them on average, if there are.

    Their number has a binomial distribution, so that each word is picked with probability `rate` if all are places.
    """
    count = min(int(random.binomial(length, rate)), len(places))
    return sorted(places[n] for n in random.choice(len(places), count, replace=False)) if count else []


def drop(words: Sequence[str], random: np.random.Generator, rate: float) -> Changed:
    """Leaves out words with probability `rate`; one remains."""
    dropped = set(pick(random, range(len(words)), len(words), rate))
    if dropped and len(dropped) == len(words):
        dropped.remove(int(random.integers(len(words))))
    return Changed([word for n, word in enumerate(words) if n not in dropped], len(dropped), {})


def mask(words: Sequence[str], random: np.random.Generator, rate: float, token: str) -> Changed:
    """Replaces words by `token` with probability `rate`."""
    masked = pick(random, [n for n, word in enumerate(words) if word != token], len(words), rate)
    changed = list(words)
    for n in masked:
        changed[n] = token
    return Changed(changed, len(masked), {})


def infill(words: Sequence[str], random: np.random.Generator, rate: float, token: str) -> Changed:
    """Replaces spans of words by one `token` each (text infilling; Lewis et al., 2020, section 2.2).

    The lengths of spans have a Poisson distribution of mean 3; a span of length 0 inserts a token. `rate` is the share
    of words in spans. Changes are counted in words, and inserted tokens.
    """
    left = int(random.binomial(len(words), rate))
    spans: list[int] = []
    while left:
        spans.append(min(int(random.poisson(SPAN)), left))
        left -= spans[-1]
    kept = len(words) - sum(spans)
    places = {int(place) for place in random.choice(kept + len(spans), len(spans), replace=False)}
    rest, lengths, changed = iter(words), iter(spans), list[str]()
    for place in range(kept + len(spans)):
        if place in places:
            changed.append(token)
            for _ in range(next(lengths)):
                next(rest)
        else:
            changed.append(next(rest))
    return Changed(changed, sum(max(length, 1) for length in spans), {})


def swap(words: Sequence[str], random: np.random.Generator, rate: float, window: int) -> Changed:
    """Swaps pairs of different words, at most `window` places apart, until about `rate` of the words have moved.

    No word is in two pairs, so that none moves by more than `window` places.
    """
    changed, moved = list(words), set[int]()
    pairs = int(random.binomial(len(words), rate / 2))
    for n in map(int, random.permutation(len(words)) if pairs else ()):
        if len(moved) >= 2 * pairs:
            break
        near = range(max(n - window, 0), min(n + window + 1, len(words)))
        partners = [k for k in near if k not in moved and words[k] != words[n]]
        if n not in moved and partners:
            k = partners[int(random.integers(len(partners)))]
            changed[n], changed[k] = words[k], words[n]
            moved |= {n, k}
    return Changed(changed, len(moved), {})


def permute(words: Sequence[str], random: np.random.Generator, window: int) -> Changed:
    """Permutes all words so that none moves by more than `window` places (Lample et al., 2018, section 2.3).

    Words are sorted by their place plus a random number below window + 1.
    """
    order = np.argsort(np.arange(len(words)) + random.uniform(0, window + 1, len(words)))
    return Changed([words[n] for n in order], int((order != np.arange(len(words))).sum()), {})


def corrupt(words: Sequence[str], random: np.random.Generator, rate: float, token: str, window: int) -> Changed:
    """The noise of Edunov et al. (2018), section 3: dropout, then masks, both at `rate`, then a permutation.

    At least one word remains. The number of changes counts a word that is masked and moved twice.
    """
    dropped = drop(words, random, rate)
    masked = mask(dropped.words, random, rate, token)
    moved = permute(masked.words, random, window)
    return Changed(moved.words, dropped.num_changed + masked.num_changed + moved.num_changed, {})
