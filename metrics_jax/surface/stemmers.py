"""Stemmers, from the libraries that keep them; a word is stemmed once a process."""

import functools
from collections.abc import Callable


@functools.cache
def porter(mode: str) -> Callable[[str], str]:
    """Porter's stemmer (1980) in one of nltk's modes -> word to stem.

    mode: "NLTK_EXTENSIONS" (rouge-score, nltk's METEOR), "MARTIN_EXTENSIONS" or "ORIGINAL_ALGORITHM".
    """
    from nltk.stem.porter import PorterStemmer

    return functools.lru_cache(2**18)(PorterStemmer(mode).stem)


@functools.cache
def snowball(language: str) -> Callable[[str], str]:
    """The Snowball stemmer of a language ("english", "german", ...) -> word to stem; ValueError if there is none."""
    import snowballstemmer

    if language not in snowballstemmer.algorithms():
        raise ValueError(f"no Snowball stemmer for {language!r}; there are {', '.join(snowballstemmer.algorithms())}")
    return functools.lru_cache(2**18)(snowballstemmer.stemmer(language).stemWord)
