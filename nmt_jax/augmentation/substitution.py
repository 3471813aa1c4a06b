"""Substitution: some words of a line are replaced by one of their candidates."""

from collections.abc import Callable, Sequence

import numpy as np

from nmt_jax.augmentation.inflection import fits_article
from nmt_jax.augmentation.noise import Changed, pick
from nmt_jax.augmentation.words import capitalized_as, lowered, split

Candidates = Callable[[str], Sequence[str]]  # a lower-case word -> what may replace it, the best first


def substitute(
    words: Sequence[str], random: np.random.Generator, rate: float, candidates: Candidates, choices: int
) -> Changed:
    """Replaces about `rate` of the words, each by one of its `choices` best candidates.

    Attached punctuation and a capital at the beginning of the line are kept. A word after "a" or "an" is replaced by
    one that takes the same article. Words that may be names are kept.
    """
    tokens = [split(word) for word in words]
    plain = [lowered(token.word, first=n == 0) for n, token in enumerate(tokens)]
    found: dict[int, list[str]] = {}
    for n, word in enumerate(plain):
        before = tokens[n - 1].word.lower() if n else ""
        if word and (fitting := [new for new in candidates(word) if fits_article(before, word, new)][:choices]):
            found[n] = fitting
    changed, replaced = list(words), {}
    for n in pick(random, list(found), len(words), rate):
        replaced[n] = found[n][int(random.integers(len(found[n])))]
        changed[n] = f"{tokens[n].before}{capitalized_as(replaced[n], tokens[n].word)}{tokens[n].after}"
    return Changed(changed, len(replaced), replaced)
