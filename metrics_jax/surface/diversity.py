"""Diversity of generated texts: the share of different n-grams (Li et al., 2016, section 5.2)."""

import itertools
from collections.abc import Sequence

from metrics_jax.api import MOST_ORDER, check_range


def distinct(texts: Sequence[str], order: int) -> float:
    """Number of different n-grams of `order` words over the number of all, 0 to 1, of all texts together.

    Words are separated by blanks; n-grams do not reach beyond a text. 0 if there are none. The value falls as texts are
    added, so compare systems on the same inputs. Raises TypeError for a single string, and ValueError if `order` is
    below 1 or too large.
    """
    if isinstance(texts, str):
        raise TypeError("texts must be a sequence of strings")
    check_range("order", order, 1, MOST_ORDER)
    words = [text.split() for text in texts]
    ngrams = list(itertools.chain.from_iterable(zip(*(text[n:] for n in range(order)), strict=False) for text in words))
    return len(set(ngrams)) / max(len(ngrams), 1)
