"""Links from the contextual vectors of a pretrained encoder, without training (SimAlign, Jalili Sabet et al., 2020)."""

from collections.abc import Iterator, Sequence

import numpy as np

from metrics_jax.embedding.encoder import NOT_FINITE, encode
from nmt_jax.alignment.links import Alignment, Link
from nmt_jax.alignment.sentence_pairs import BLOCK, SentencePairs
from nmt_jax.alignment.similarity import BY_PAIR, TRANSPORT, transport_shares
from nmt_jax.errors import UserError
from nmt_jax.pretrained import Pretrained, make_encoder

THRESHOLD = 0.5  # of transport; a piece of the longer sentence gives a larger share to one piece only


class EmbeddingAligner:
    """Aligns sentence pairs by the similarity of the vectors of their pieces in an encoder's layer.

    The similarity is the cosine, mapped to 0 to 1. Words are linked if any of their pieces are, as in the paper. The
    links of a pair do not depend on other pairs.
    """

    def __init__(
        self,
        pretrained: Pretrained,
        pairs: SentencePairs,
        method: str = "argmax",
        layer: int | None = None,
        threshold: float = THRESHOLD,
    ):
        """method: one of `similarity.METHODS`. layer: 0 (embeddings) to the number of layers; None: see `middle`.

        threshold: for transport, the smallest share of a link. Raises UserError if there is no such layer.
        """
        last = pretrained.model.num_layers
        if layer is not None and not 0 <= layer <= last:
            raise UserError(f"--layer={layer}: the encoder has layers 0 (embeddings) to {last}")
        self._encoder, self._tokenizer = make_encoder(pretrained), pretrained.tokenizer
        self._pairs, self._method, self._threshold = pairs, method, threshold
        self._layer = middle(last) if layer is None else layer

    def align_lines(self, first: int, number: int) -> Iterator[Alignment]:
        """Yields the alignment of each of the lines from `first` on; it is empty if a sentence is.

        A link has the similarity of its most similar linked pieces, or their share with transport. Texts that are too
        long for the encoder are read in windows. Raises UserError if vectors are not finite.
        """
        for start in range(first, first + number, BLOCK):
            stop = min(start + BLOCK, first + number)
            yield from self._align(*(side[start:stop] for side in self._pairs))

    def _align(self, *pairs: Sequence[Sequence[str]]) -> Iterator[Alignment]:
        source, target = (self._pieces(side) for side in pairs)
        similarities = [(1 + one @ other.T) / 2 for (one, _), (other, _) in zip(source, target, strict=True)]
        filled = [number for number, one in enumerate(similarities) if one.size]
        if self._method == TRANSPORT:
            shares = transport_shares([similarities[number] for number in filled])
            found = [(one, one >= self._threshold) for one in shares]
        else:
            link = BY_PAIR[self._method]
            found = [(similarities[number], link(similarities[number])) for number in filled]
        linked = dict(zip(filled, found, strict=True))
        for number in range(len(similarities)):
            words = source[number][1], target[number][1]
            yield between_words(*linked[number], *words) if number in linked else Alignment([], [])

    def _pieces(self, sentences: Sequence[Sequence[str]]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Of each sentence the vectors float32[S, D] of its pieces, and the number int[S] of the word of each piece."""
        texts = [" ".join(words) for words in sentences]
        encoded = encode(self._encoder, texts, (self._layer,), long="window")
        if not np.isfinite(encoded.vectors).all():
            raise UserError(NOT_FINITE)
        numbers = self._tokenizer.word_numbers(texts)
        return [(encoded[text][0][words >= 0], words[words >= 0]) for text, words in enumerate(numbers)]


def middle(layers: int) -> int:
    """The layer at two thirds of all layers: layer 8 of 12, as in the paper."""
    return round(layers * 2 / 3)


def between_words(scores: np.ndarray, linked: np.ndarray, source: np.ndarray, target: np.ndarray) -> Alignment:
    """The links of words with a linked pair of pieces, and the largest score of such a pair.

    scores float[S, T], linked bool[S, T]: of the pieces. source int[S], target int[T]: the words of the pieces.
    """
    best: dict[Link, float] = {}
    for i, j in np.argwhere(linked):
        words = int(source[i]), int(target[j])
        best[words] = max(best.get(words, 0.0), min(float(scores[i, j]), 1.0))
    links = sorted(best)
    return Alignment(links, [best[link] for link in links])
