"""BM25: the relevance of texts to a query by the words that they share."""

import collections
import math
from collections.abc import Sequence

import numpy as np
import regex

WORD = regex.compile(r"[\p{L}\p{N}_][\p{L}\p{N}\p{M}_]*")  # \w+ of `re`, with combining marks


def words(text: str) -> list[str]:
    """Returns the words of a text in lower case, without punctuation."""
    return WORD.findall(text.lower())


class BM25:
    """Scores N texts by a query (Robertson and Zaragoza, 2009, section 3).

    The score of a text of length l is the sum over the words of the query, as often as they occur in it, of

        idf · f (k1 + 1) / (f + k1 (1 − b + b l / mean l)),    idf = max(0, log((N − n + 0.5) / (n + 0.5))),

    where f counts the word in the text, and n the texts that have it. A word of more than half of the texts weighs
    nothing.
    """

    def __init__(self, texts: Sequence[str], k1: float = 1.5, b: float = 0.75):
        """k1: above 0, how late repeated words stop counting more. b: 0 to 1, the normalization by length."""
        counts = [collections.Counter(words(text)) for text in texts]
        lengths = np.array([count.total() for count in counts], float)
        norms = k1 * (1 - b + b * lengths / max(lengths.mean() if len(texts) else 0.0, 1e-30))
        found: dict[str, tuple[list[int], list[int]]] = collections.defaultdict(lambda: ([], []))
        for number, count in enumerate(counts):
            for word, times in count.items():
                found[word][0].append(number)
                found[word][1].append(times)
        self.size = len(texts)
        self._weights: dict[str, tuple[np.ndarray, np.ndarray]] = {}  # by word: numbers of texts, what each gains
        for word, (numbers, occurrences) in found.items():
            idf = math.log((self.size - len(numbers) + 0.5) / (len(numbers) + 0.5))
            if idf > 0:
                where, f = np.array(numbers), np.array(occurrences, float)
                self._weights[word] = (where, idf * f * (k1 + 1) / (f + norms[where]))

    def scores(self, query: str) -> np.ndarray:
        """Returns the score of each text, float64[N]; 0 if it shares no word that weighs anything."""
        scores = np.zeros(self.size)
        for word in words(query):
            if word in self._weights:
                numbers, gains = self._weights[word]
                scores[numbers] += gains
        return scores
