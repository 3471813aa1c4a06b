"""Extractive summaries: sentences of a text, ranked by position, SumBasic, LexRank or TextRank."""

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import regex

from metrics_jax.surface.stop_words import smart
from metrics_jax.surface.tokenizers import tokenize
from nmt_jax.errors import UserError
from nmt_jax.pretrained.sentence_vectors import Embed

METHODS = ("lead", "sumbasic", "lexrank", "textrank")
DAMPING = 0.85  # damping factor of the random walk (Brin and Page, 1998)
THRESHOLD = 0.1  # minimum similarity of neighbours (Erkan and Radev, 2004, section 5.3)
EMBEDDING_THRESHOLD = 0.5  # cosine of neighbours for lexrank with an encoder
TOLERANCE, ITERATIONS = 1e-9, 1000
MOST_SENTENCES = 5000  # of a text whose sentences are compared with each other
# A sentence ends after . ! ? … and closing marks if white space, opening marks and a letter or digit follow, and after
# 。！？ and closing marks; but not before a lower-case letter.
SENTENCE_END = regex.compile(
    r"""(?<=[.!?…]["'”’»)\]]*)\s+(?=["'“‘«(\[]*(?!\p{Ll})[\p{L}\p{N}])"""
    r"|(?<=[。！？][」』”’）》]*)(?![。！？」』”’）》]|\s*\p{Ll})"
)

Words = Sequence[Sequence[str]]  # the words of each sentence


def summarize(
    lines: Iterable[str],
    *,
    method: str = "lexrank",
    num_sentences: int = 3,
    num_words: int = 0,
    embed: Embed | None = None,
    threshold: float | None = None,
) -> Iterator[tuple[list[str], list[int]]]:
    """Yield the sentences of each line and the indices of those chosen, in text order.

    num_sentences: maximum number of sentences; num_words: maximum number of words, 0 for any number. embed: vectors of
    sentences, as `sentence_embedder` makes them, by which they are compared instead of by their words. threshold:
    cosine above which lexrank treats sentences as neighbours. Raises UserError if a line has too many sentences.
    """
    for line in lines:
        sentences = split_sentences(line)
        if len(sentences) > MOST_SENTENCES and method != "lead":
            raise UserError(
                f"{len(sentences):,} sentences are too many for {method}; at most {MOST_SENTENCES:,} are possible: "
                "divide the text, or use lead"
            )
        order = rank_sentences(sentences, method, embed, threshold)
        lengths = [len(sentence.split()) for sentence in sentences]
        yield sentences, choose(order, lengths, num_sentences, num_words)


def split_sentences(line: str) -> list[str]:
    """Split a text at tabs if it has any, else where a sentence appears to end."""
    parts = line.split("\t") if "\t" in line else SENTENCE_END.split(line)
    return [part.strip() for part in parts if part.strip()]


def rank_sentences(
    sentences: Sequence[str], method: str, embed: Embed | None = None, threshold: float | None = None
) -> list[int]:
    """Return the indices of the sentences, best first."""
    words = tokenize(sentences, "13a", True)
    if method == "lead":
        return lead(words)
    if method == "sumbasic":
        return sum_basic(words)
    similarity = cosines(embed(sentences)) if embed else None
    if method == "lexrank":
        default = THRESHOLD if similarity is None else EMBEDDING_THRESHOLD
        neighbours = tf_idf(words) if similarity is None else similarity
        return lex_rank(neighbours, default if threshold is None else threshold)
    return text_rank(shared_words(words) if similarity is None else similarity)


def lead(sentences: Words) -> list[int]:
    """The sentences in their order, a strong baseline for news."""
    return list(range(len(sentences)))


def sum_basic(sentences: Words) -> list[int]:
    """SumBasic: rank sentences by the mean frequency of their words, squaring frequencies of words already covered.

    The next sentence is the best that contains the most frequent word (Nenkova and Vanderwende, 2005, section 3).
    """
    content = [[word for word in words if word not in smart()] for words in sentences]
    counts = Counter(word for words in content for word in words)
    total = sum(counts.values())
    weights = {word: count / total for word, count in counts.items()}
    containing: dict[str, list[int]] = defaultdict(list)  # the remaining sentences with a word, in text order
    for number, words in enumerate(content):
        for word in dict.fromkeys(words):
            containing[word].append(number)

    def entry(word: str) -> tuple[float, int, int, str]:
        """The most frequent word has the smallest entry; of several, the one that comes first in the text."""
        first = containing[word][0]
        return -weights[word], first, content[first].index(word), word

    # Entries only grow, so that one that is out of date is corrected when it comes first.
    queue = [entry(word) for word in weights]
    heapq.heapify(queue)
    remaining = dict.fromkeys(range(len(sentences)))
    order: list[int] = []
    while queue:
        top_word = queue[0][-1]
        containing[top_word] = [number for number in containing[top_word] if number in remaining]
        if not containing[top_word]:
            heapq.heappop(queue)
        elif (current := entry(top_word)) != queue[0]:
            heapq.heapreplace(queue, current)
        else:
            best = max(
                containing[top_word],
                key=lambda number: sum(weights[word] for word in content[number]) / len(content[number]),
            )
            order.append(best)
            del remaining[best]
            for word in set(content[best]):
                weights[word] **= 2
    return [*order, *remaining]


def tf_idf(sentences: Words) -> np.ndarray:
    """Cosine similarity float[N, N] of N sentences as bags of words, weighted by log(N / sentences with the word).

    Source: Erkan and Radev (2004), equation 1, with the text itself as the collection.
    """
    present = Counter(word for words in sentences for word in set(words))
    idf = {word: math.log(len(sentences) / count) for word, count in present.items()}
    columns = {word: number for number, word in enumerate(present)}
    table = np.zeros((len(sentences), max(len(columns), 1)))
    for row, words in enumerate(sentences):
        for word, count in Counter(words).items():
            table[row, columns[word]] = count * idf[word]
    return cosines(table)


def cosines(vectors: np.ndarray) -> np.ndarray:
    """Cosine similarity float[N, N] of vectors float[N, D]; 0 for zero vectors."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)
    return np.asarray(unit @ unit.T)


def shared_words(sentences: Words) -> np.ndarray:
    """Number of distinct common words, over the sum of logarithms of the lengths (Mihalcea and Tarau, 2004)."""
    sets = [set(words) for words in sentences]
    similarity = np.zeros((len(sets), len(sets)))
    for i in range(len(sets)):
        for j in range(i):
            lengths = math.log(max(len(sentences[i]), 1)) + math.log(max(len(sentences[j]), 1))
            similarity[i, j] = similarity[j, i] = len(sets[i] & sets[j]) / lengths if lengths else 0.0
    return similarity


def lex_rank(similarity: np.ndarray, threshold: float = THRESHOLD) -> list[int]:
    """LexRank (Erkan and Radev, 2004): rank sentences by a random walk among those more similar than `threshold`."""
    return rank_nodes((similarity > threshold).astype(np.float64))


def text_rank(similarity: np.ndarray) -> list[int]:
    """TextRank: rank sentences by a random walk along weighted edges (Mihalcea and Tarau, 2004, equation 2)."""
    return rank_nodes(np.maximum(similarity, 0.0) * (1 - np.eye(len(similarity))))


def rank_nodes(weights: np.ndarray) -> list[int]:
    """Rank the nodes of a graph with edge weights float[N, N] by a random walk; ties keep their order."""
    if not len(weights):
        return []
    share = stationary_distribution(weights)
    return sorted(range(len(share)), key=lambda number: (-round(float(share[number]), 9), number))


def stationary_distribution(weights: np.ndarray) -> np.ndarray:
    """Stationary distribution float[N] of a random walk along weighted edges, with random jumps (PageRank)."""
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
    """The first `num_sentences` of `order`, in text order, with at most `num_words` words in total if that is not 0.

    Sentences that would exceed the limit are skipped, except for the first one.
    """
    chosen: list[int] = []
    remaining: Any = num_words or math.inf
    for number in order:
        if len(chosen) == num_sentences:
            break
        if lengths[number] <= remaining or not chosen:
            chosen.append(number)
            remaining -= lengths[number]
    return sorted(chosen)
