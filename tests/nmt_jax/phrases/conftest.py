"""Small random parallel text, and a phrase table and a language model of it."""

import numpy as np
import pytest

from nmt_jax.ngram.counts import count
from nmt_jax.ngram.kneser_ney import estimate
from nmt_jax.phrases.building import build_table

SOURCE = ["a b c d", "b c a", "c d", "a d b", "d c b a", "b a", "c a d", "a b"]
TARGET = ["A B C D", "C B A", "D C", "A D B", "D B C A", "B A A", "C D A", "A B"]
FALLBACK = (0.5, 1.0, 1.5)
LINKS = [
    [(0, 0), (1, 1), (2, 2), (3, 3)],
    [(0, 1), (1, 0), (2, 2)],
    [(0, 1), (1, 0)],
    [(0, 0), (1, 1), (2, 2)],
    [(0, 0), (1, 2), (2, 1), (3, 3)],
    [(0, 0), (1, 1)],
    [(0, 0), (1, 2), (2, 1)],
    [(0, 0), (1, 1)],
]


@pytest.fixture(scope="session")
def language_model():
    return estimate(count(TARGET, 3), FALLBACK)[0]


@pytest.fixture(scope="session")
def sides(language_model):
    """Numbers of the words of both sides; source words are numbered in alphabetical order."""
    source = [np.array(["abcd".index(word) for word in line.split()]) for line in SOURCE]
    target = [np.array([language_model.vocabulary.numbers[word] for word in line.split()]) for line in TARGET]
    return source, target


@pytest.fixture(scope="session")
def table(sides):
    return build_table(*sides, LINKS, num_words=4, longest=3, most=5)
