"""Lexical weights of phrase pairs (Koehn et al., 2003, section 3.2)."""

import numpy as np

from nmt_jax.ngram.trie import pack

NULL = 0  # stands for no word; words are numbered from 1


def log_weights(given: np.ndarray, words: np.ndarray, link_given: np.ndarray, link_words: np.ndarray) -> np.ndarray:
    """Returns for each word of a text the logarithm of the mean of w(word | linked word), float64[P].

    w(word | given) is the share of the links of `given` that lead to `word`; a word without a link is linked to NULL.
    Since all links of a word of a phrase lie in the phrase pair, the lexical weight of the pair is the sum over its
    words.

    given, words: int[Q], int[P], words of the two sides of the text. link_given, link_words: int[A] each, places that
    are linked.
    """
    alone = np.ones(len(words), bool)
    alone[link_words] = False
    places = np.concatenate([link_words, np.flatnonzero(alone)])
    contexts = np.concatenate([given[link_given], np.full(int(alone.sum()), NULL)])
    _, inverse, counts = np.unique(pack(contexts, words[places]), return_inverse=True, return_counts=True)
    totals = np.bincount(contexts)
    share = counts[inverse] / totals[contexts]
    size = len(words)
    return np.log(np.bincount(places, share, minlength=size) / np.bincount(places, minlength=size))
