"""Stop words."""

import functools
import importlib.resources
from collections.abc import Sequence


@functools.cache
def smart() -> frozenset[str]:
    """The stop words of the SMART retrieval system (Salton, 1971), with the additions of ROUGE-1.5.5.

    Words with apostrophes or periods are left out.
    """
    text = importlib.resources.files("metrics_jax").joinpath("surface/smart_stop_words.txt").read_text("ascii")
    return frozenset(line for line in text.splitlines() if not line.startswith("#"))


def named(words: Sequence[str]) -> tuple[str, ...]:
    """Normalise a metric's option, words or "smart", for the signature. Raises ValueError for any other string."""
    if isinstance(words, str) and words != "smart":
        raise ValueError(f'stop_words={words!r}: must be a tuple of words, or "smart"')
    return ("smart",) if words == "smart" else tuple(words)


def members(words: Sequence[str]) -> frozenset[str]:
    """The words of an option normalised by `named`."""
    return smart() if tuple(words) == ("smart",) else frozenset(words)
