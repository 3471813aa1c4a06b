"""ROUGE (Lin, 2004) as the rouge-score package 0.1.2 computes it; the Perl script ROUGE-1.5.5 is in `rouge155`."""

import dataclasses
import itertools
import unicodedata
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from metrics_jax.api import AdditiveMetric, References, best, check_sequences, flatten, pair
from metrics_jax.surface import lcs
from metrics_jax.surface.ngrams import Tokens, clipped_matches, encode_words, num_ngrams, pairwise_matches
from metrics_jax.surface.stemmers import porter

VARIANTS = (*"123456789", "L", "Lsum")
TOKENIZERS = ("rouge_score", "unicode", "none")
_ASCII = bytes(ord(chr(point).lower()) if chr(point).isalnum() else ord(" ") for point in range(128)).ljust(256)
_UNSPACED_SCRIPTS = ("CJK ", "IDEOGRAPHIC ", "HIRAGANA ", "KATAKANA", "HALFWIDTH KATAKANA ")  # prefixes of names

Sentences = list[list[str]]


class MeanF(AdditiveMetric):
    """Base class of metrics that score a corpus by the mean F-score; statistics are (precision, recall, F, 1)."""

    def score(self, statistics: np.ndarray) -> np.ndarray:
        return statistics[..., 2] / statistics[..., 3]

    def parts(self, statistics: np.ndarray) -> dict[str, float | np.ndarray]:
        """Precision, recall and f1 (the F-score, however it is weighted), 0 to 1: means over the segments."""
        precision, recall, f = statistics[:3] / statistics[3]
        return {"precision": float(precision), "recall": float(recall), "f1": float(f)}


@dataclasses.dataclass(frozen=True)
class Rouge(MeanF):
    """F1 of n-grams or subsequences shared with the reference, 0 to 1; a corpus scores the mean over segments.

    variant: "1" to "9" for n-grams; "L" for the longest common subsequence of words; "Lsum" for the union of those of
    sentences, one per line. tokenize: "rouge_score" lower-cases and keeps runs of a-z and 0-9; "unicode" lower-cases
    and keeps words of any script, with every Chinese or Japanese character a word; "none" splits at white space.
    use_stemmer: stem words of more than three characters (Porter, English). Of several references, the first one with
    the best F1 is used. A text without words scores 0.
    """

    variant: str = "L"
    use_stemmer: bool = False
    tokenize: str = "rouge_score"

    name: ClassVar[str] = "rouge"

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            raise ValueError(f"variant={self.variant!r}: choose one of {', '.join(map(repr, VARIANTS))}")
        if self.tokenize not in TOKENIZERS:
            raise ValueError(f"tokenize={self.tokenize!r}: choose one of {', '.join(map(repr, TOKENIZERS))}")

    def statistics(self, hypotheses: Sequence[str], references: References) -> np.ndarray:
        """Statistics float[N, 4]: precision, recall, F1, 1."""
        texts, owner = flatten(hypotheses, references)
        if self.variant == "Lsum":
            counts = count_subsequences(*pair(split_sentences(texts, self.words), owner), lcs.union_matches)
        elif self.variant == "L":
            counts = count_subsequences(*pair([[words] for words in self.words(texts)], owner), lcs.union_matches)
        else:
            counts = count_ngrams(encode_words(itertools.chain(*pair(self.words(texts), owner))), int(self.variant))
        precision, recall, f1 = _precision_recall_f1(*counts)
        return np.stack([precision, recall, f1, np.ones_like(f1)], axis=-1)[best(f1, owner)]

    def pairwise(self, hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
        check_sequences(hypotheses, references)
        if self.variant == "Lsum":
            return super().pairwise(hypotheses, references)
        words = self.words([*hypotheses, *references])
        tokens, order = encode_words(words), 1 if self.variant == "L" else int(self.variant)
        totals = num_ngrams(tokens.lengths, order)[-1]
        if self.variant == "L":
            matches = lcs.pairwise_lengths(words[: len(hypotheses)], words[len(hypotheses) :])
        else:
            matches = pairwise_matches(tokens, len(hypotheses), order)[-1]
        return _precision_recall_f1(matches, totals[: len(hypotheses), None], totals[None, len(hypotheses) :])[-1]

    def words(self, texts: Sequence[str]) -> list[list[str]]:
        """The words of each text as they are compared."""
        if self.tokenize == "rouge_score":
            words = ascii_words([text.lower() for text in texts])
        elif self.tokenize == "unicode":
            words = [unicodedata.normalize("NFC", text.lower()).translate(_UNICODE).split() for text in texts]
        else:
            words = [text.split() for text in texts]
        return stem_words(words, porter("NLTK_EXTENSIONS")) if self.use_stemmer else words


def _precision_recall_f1(
    matches: np.ndarray, in_hypothesis: np.ndarray, in_reference: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Precision, recall and F1, 0 to 1, from counts that broadcast; 0 if a text is empty."""
    precision, recall = matches / np.maximum(in_hypothesis, 1), matches / np.maximum(in_reference, 1)
    return precision, recall, 2 * precision * recall / np.where(matches > 0, precision + recall, 1)


def ascii_words(texts: Sequence[str]) -> list[list[str]]:
    """Runs of ASCII letters and digits, lower-cased; all other characters are separators."""
    return [text.encode("ascii", "replace").translate(_ASCII).decode("ascii").split() for text in texts]


def stem_words(texts: Sequence[list[str]], stem: Callable[[str], str]) -> list[list[str]]:
    """Stem words of more than three characters, as both ROUGE programs do."""
    return [[stem(word) if len(word) > 3 else word for word in words] for words in texts]


def split_sentences(texts: Sequence[str], tokenize: Callable[[Sequence[str]], list[list[str]]]) -> list[Sentences]:
    """The words of each line of each text."""
    lines = [text.split("\n") for text in texts]
    words = iter(tokenize(list(itertools.chain.from_iterable(lines))))
    return [list(itertools.islice(words, len(group))) for group in lines]


class _UnicodeWords(dict[int, str | None]):
    """Table for `str.translate` that replaces code points before text is split at white space."""

    def __missing__(self, point: int) -> str | None:
        character = chr(point)
        category = unicodedata.category(character)
        if category == "Cf" and character != "\u200b":  # invisible characters within words, such as joiners
            kept = None
        elif category[0] not in "LMN":  # letters, marks, numbers
            kept = " "
        elif unicodedata.name(character, "").startswith(_UNSPACED_SCRIPTS):
            kept = f" {character} "
        else:
            kept = character
        self[point] = kept
        return kept


_UNICODE = _UnicodeWords()


def count_ngrams(tokens: Tokens, order: int) -> np.ndarray:
    """Counts int64[3, P] of P hypotheses followed by their P references: clipped matches, n-grams of each side."""
    totals = num_ngrams(tokens.lengths, order)[-1].reshape(2, -1)
    return np.stack([clipped_matches(tokens, np.ones(totals.shape[1], np.int64), order)[-1], *totals])


def count_subsequences(
    hypotheses: Sequence[Sentences], references: Sequence[Sentences], matches: Callable[[Sentences, Sentences], float]
) -> np.ndarray:
    """Counts float64[3, P] of P pairs of texts: matches(reference, hypothesis), and the words of each."""
    counts = [
        [matches(reference, hypothesis), sum(map(len, hypothesis)), sum(map(len, reference))]
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]
    return np.array(counts, np.float64).T
