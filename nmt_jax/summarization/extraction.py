"""Summaries made of a text's own sentences: the first ones, those of frequent words, those that others resemble."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from metrics_jax.surface.stop_words import smart

DAMPING = 0.85  # of the random walk (Brin and Page, 1998)
THRESHOLD = 0.1  # from which on sentences are neighbours (Erkan and Radev, 2004, section 5.3)
TOLERANCE, ITERATIONS = 1e-9, 1000

Words = Sequence[Sequence[str]]  # of each sentence
Similarity = Callable[[Words], np.ndarray]  # N sentences -> float[N, N]


def lead(sentences: Words) -> list[int]:
    """The sentences in their order: what news begins with is hard to beat."""
    return list(range(len(sentences)))


def sum_basic(sentences: Words) -> list[int]:
    """Sentences by the mean frequency of their words, which counts squared once it is said.

    Nenkova and Vanderwende (2005), section 3; each next one is the best that has the most frequent word.
    """
    content = [[word for word in words if word not in smart()] for words in sentences]
    counts = Counter(word for words in content for word in words)
    total = sum(counts.values())
    weights = {word: count / total for word, count in counts.items()}
    order: list[int] = []
    while len(order) < len(sentences):
        left = [number for number in range(len(sentences)) if number not in order]
        having = [number for number in left if content[number]]
        if not having:
            return order + left
        most = max((word for number in having for word in content[number]), key=lambda word: weights[word])
        best = max(
            (number for number in having if most in content[number]),
            key=lambda number: sum(weights[word] for word in content[number]) / len(content[number]),
        )
        order.append(best)
        for word in set(content[best]):
            weights[word] **= 2
    return order


def tf_idf(sentences: Words) -> np.ndarray:
    """Cosines of the sentences' words, weighted by log(N / the number of the N sentences with the word).

    Erkan and Radev (2004), eq. 1, the text itself being the collection.
    """
    present = Counter(word for words in sentences for word in set(words))
    idf = {word: math.log(len(sentences) / count) for word, count in present.items()}
    places = {word: number for number, word in enumerate(present)}
    table = np.zeros((len(sentences), max(len(places), 1)))
    for row, words in enumerate(sentences):
        for word, count in Counter(words).items():
            table[row, places[word]] = count * idf[word]
    return cosines(table)


def cosines(vectors: np.ndarray) -> np.ndarray:
    """Vectors float[N, D] -> float[N, N]; 0 with a vector of nothing."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)
    return np.asarray(unit @ unit.T)


def shared_words(sentences: Words) -> np.ndarray:
    """How many different words two sentences share, over the logarithms of their lengths (Mihalcea and Tarau, 2004)."""
    sets = [set(words) for words in sentences]
    found = np.zeros((len(sets), len(sets)))
    for one in range(len(sets)):
        for other in range(one):
            lengths = math.log(max(len(sentences[one]), 1)) + math.log(max(len(sentences[other]), 1))
            found[one, other] = found[other, one] = len(sets[one] & sets[other]) / lengths if lengths else 0.0
    return found


def lex_rank(similarity: np.ndarray, threshold: float = THRESHOLD) -> list[int]:
    """Sentences by their share of a random walk among those at least `threshold` alike (Erkan and Radev, 2004)."""
    return ranked((similarity > threshold).astype(np.float64))


def text_rank(similarity: np.ndarray) -> list[int]:
    """Sentences by their share of a walk along weighted edges, none to itself (Mihalcea and Tarau, 2004, eq. 2)."""
    return ranked(np.maximum(similarity, 0.0) * (1 - np.eye(len(similarity))))


def ranked(weights: np.ndarray) -> list[int]:
    """Edges float[N, N] -> the nodes from the one most often visited down; of equals the first comes first."""
    if not len(weights):
        return []
    share = walk(weights)
    return sorted(range(len(share)), key=lambda number: (-round(float(share[number]), 9), number))


def walk(weights: np.ndarray) -> np.ndarray:
    """The stationary distribution float[N] of a walk that leaves a node along its edges, or at times anywhere."""
    count = len(weights)
    out = weights.sum(axis=1, keepdims=True)
    step = np.divide(weights, out, out=np.full_like(weights, 1 / count), where=out > 0)
    share = np.full(count, 1 / count)
    for _ in range(ITERATIONS):
        before, share = share, (1 - DAMPING) / count + DAMPING * share @ step
        if np.abs(share - before).sum() < TOLERANCE:
            break
    return share


def choose(order: Sequence[int], lengths: Sequence[int], num_sentences: int, num_words: int = 0) -> list[int]:
    """The first `num_sentences` of `order`, in text order, of together at most `num_words` words if that is not 0.

    One that is too long is passed over; the first stands even if it is.
    """
    chosen: list[int] = []
    room: Any = num_words or math.inf
    for number in order:
        if len(chosen) == num_sentences:
            break
        if lengths[number] <= room or not chosen:
            chosen.append(number)
            room -= lengths[number]
    return sorted(chosen)
