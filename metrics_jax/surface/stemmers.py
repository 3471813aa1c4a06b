"""Porter and Snowball stemmers from nltk and snowballstemmer, with a cache of stems."""

import functools
from collections.abc import Callable


@functools.cache
def porter(mode: str) -> Callable[[str], str]:
    """Porter's stemmer (1980) in one of nltk's modes, as a function from word to stem.

    mode: "NLTK_EXTENSIONS" (used by rouge-score and nltk's METEOR), "MARTIN_EXTENSIONS" or "ORIGINAL_ALGORITHM".
    """
    from nltk.stem.porter import PorterStemmer

    return functools.lru_cache(2**18)(PorterStemmer(mode).stem)


@functools.cache
def snowball(language: str) -> Callable[[str], str]:
    """The Snowball stemmer of a language, such as "english", as a function from word to stem.

    Raises ValueError for a language without a stemmer.
    """
    import snowballstemmer

    if language not in snowballstemmer.algorithms():
        raise ValueError(
            f"no Snowball stemmer for {language!r}; choose one of {', '.join(snowballstemmer.algorithms())}"
        )
    return functools.lru_cache(2**18)(snowballstemmer.stemmer(language).stemWord)
