"""Words too common to say much."""

import functools
import importlib.resources
from collections.abc import Sequence


@functools.cache
def smart() -> frozenset[str]:
    """The list of the SMART retrieval system (Salton, 1971) as ROUGE-1.5.5 extends it, by names of months and the like.

    Its words with apostrophes or periods are left out.
    """
    text = importlib.resources.files("metrics_jax").joinpath("surface/smart_stop_words.txt").read_text("ascii")
    return frozenset(line for line in text.splitlines() if not line.startswith("#"))


def named(words: Sequence[str]) -> tuple[str, ...]:
    """A metric's option: words, or "smart" -> the words as they are signed; ValueError for a string that is no name."""
    if isinstance(words, str) and words != "smart":
        raise ValueError(f'stop_words={words!r}: a tuple of words, or "smart"')
    return ("smart",) if words == "smart" else tuple(words)


def members(words: Sequence[str]) -> frozenset[str]:
    """The words that `named` stands for."""
    return smart() if tuple(words) == ("smart",) else frozenset(words)
