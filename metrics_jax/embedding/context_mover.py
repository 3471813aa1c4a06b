"""Sentence Mover's Similarity and Word Mover's Distance over the vectors of words in context."""

from __future__ import annotations

import dataclasses
import itertools
import sys
from collections.abc import Callable, Sequence
from typing import ClassVar, Literal

import numpy as np

from metrics_jax.embedding.sms import SentenceMoverMetric, split_sentences
from metrics_jax.embedding.vectors import unit
from metrics_jax.embedding.wmd import Bag
from metrics_jax.surface import stop_words
from metrics_jax.surface.tokenizers import tokenize

COMBINE = ("concatenate", "mean", "power_means")


@dataclasses.dataclass(frozen=True, eq=False)
class ContextVectors:
    """The interface between these metrics and a model; any function with this signature will do.

    read: N texts as words, layers, combine -> vectors of the words, float32[n, E] for each text, with the states of the
    layers combined as by `encode`; those of a text do not depend on other texts. fingerprint: SHA-256 of everything
    that changes the numbers. dtype: of the matrix products.
    """

    read: Callable[[Sequence[Sequence[str]], tuple[int, ...], str], list[np.ndarray]]
    fingerprint: str
    dtype: str = ""


@dataclasses.dataclass(frozen=True)
class ContextSMS(SentenceMoverMetric):
    """`SMS` with the vectors of words in context, 0 to 1: exp(-d), where d is the optimal cost of moving the text.

    context: reads all words of a text at once, those included that are not moved: stop words and, if `alphabetic`,
    words that are not made of letters. layers: the hidden states to use; 0 is the embedding layer, -1 the last.
    combine: they are averaged ("mean"), concatenated ("concatenate"), or replaced by the concatenation of their
    element-wise minimum, mean and maximum ("power_means", the p-means of Zhao et al., 2019). variant: "wms" moves
    words, which is Word Mover's Distance as a similarity. norm: scale the vectors of words to length 1, as for `WMD`.
    The other options are those of `SMS`.
    """

    context: ContextVectors
    variant: Literal["wms", "sms", "s+wms"] = "sms"
    layers: tuple[int, ...] = (-1,)
    combine: Literal["concatenate", "mean", "power_means"] = "mean"
    norm: bool = True
    transport: Literal["exact", "sinkhorn"] = "exact"
    sentences: Literal["punctuation", "lines"] = "punctuation"
    tokenize: str = "intl"
    lowercase: bool = False
    alphabetic: bool = True
    stop_words: tuple[str, ...] = ("smart",)

    name: ClassVar[str] = "sms_context"
    segments_per_call: ClassVar[int] = sys.maxsize

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.combine not in COMBINE:
            raise ValueError(f"combine={self.combine!r} is none of {', '.join(COMBINE)}")
        object.__setattr__(self, "layers", tuple(self.layers))

    def bags(self, texts: Sequence[str]) -> list[Bag]:
        different = list(dict.fromkeys(texts))
        split = [split_sentences(text, self.sentences) for text in different]
        words = iter(tokenize(list(itertools.chain.from_iterable(split)), self.tokenize, self.lowercase))
        grouped = [list(itertools.islice(words, len(sentences))) for sentences in split]
        read = self.context.read([[*itertools.chain(*group)] for group in grouped], self.layers, self.combine)
        found = {text: self._bag(group, vectors) for text, group, vectors in zip(different, grouped, read, strict=True)}
        return [found[text] for text in texts]

    def _bag(self, sentences: Sequence[Sequence[str]], vectors: np.ndarray) -> Bag:
        """The points of a text from the words of each sentence and the vectors float[n, E] of all of them."""
        if not np.isfinite(vectors).all():
            raise ValueError("a vector of a word contains NaN or infinity: the weights of the model are damaged")
        vectors = unit(vectors) if self.norm else vectors
        excluded = stop_words.members(self.stop_words)
        ends = np.cumsum([len(words) for words in sentences])[:-1]
        parts = np.split(vectors, ends) if len(sentences) else []
        kept = [
            [word.lower() not in excluded and (not self.alphabetic or word.isalpha()) for word in words]
            for words in sentences
        ]
        return self.bag([part[np.array(keep, bool)] for part, keep in zip(parts, kept, strict=True)], vectors.shape[1])
