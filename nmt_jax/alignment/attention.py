"""Links from the attention of a translator: between the words of a translation and those of its source."""

import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nmt_jax.alignment.links import Alignment, Link
from nmt_jax.alignment.sentence_pairs import BLOCK, SentencePairs
from nmt_jax.errors import UserError
from nmt_jax.translation.requests import Line

if TYPE_CHECKING:
    from nmt_jax.data.vocabulary.vocab import Vocab
    from nmt_jax.translation.translator import Translator

SPACE = "▁"  # prefix of a piece that begins a word
SUBSTITUTE = "?"  # for a word that a vocabulary drops or divides


class AttentionAligner:
    """Aligns given sentence pairs by the attention of a translator that is forced to produce the target."""

    def __init__(
        self,
        translator: "Translator",
        params: Sequence[Any],
        pairs: SentencePairs,
        threshold: float | None = None,
        name: str = "",
    ):
        """params: of the models of the translator, for its calls. threshold: see `attention_links`. name: of the input.

        Raises UserError if the translator has no attention, or reads several sources.
        """
        translator.check_attention()
        encoder = translator.encoder
        if not encoder.reader.only_text:
            raise UserError("the source of the model is not text; `nmt-jax translate --alignment` aligns its rows")
        if encoder.num_sources > 1:
            raise UserError(f"the model reads {encoder.num_sources} sources; alignment needs one that reads one")
        self._translator, self._params, self._pairs = translator, params, pairs
        self._threshold, self._name = threshold, name

    def align_lines(self, first: int, number: int) -> Iterator[Alignment]:
        """Yields the alignment of each of the lines from `first` on; it is empty if a sentence is.

        A link has the attention weight between its words. Raises UserError for a sentence that is too long.
        """
        for start in range(first, first + number, BLOCK):
            numbers = range(start, min(start + BLOCK, first + number))
            filled = [line for line in numbers if all(side[line] for side in self._pairs)]
            found = dict(zip(filled, self._align(filled), strict=True))
            yield from (found.get(line, Alignment([], [])) for line in numbers)

    def _align(self, numbers: Sequence[int]) -> Iterator[Alignment]:
        lines = []
        for line in numbers:
            words = (side[line] for side in self._pairs)
            source, target = map(_text, self._translator.vocabularies, words)
            lines.append(Line(source, translation=target, location=f"{self._name}:{line + 1}: "))
        for (hypothesis,) in self._translator.score_given(self._params, lines, with_attention=True):
            assert hypothesis.scored is not None
            one = hypothesis.scored
            weights = between_words(one.attention, one.source_pieces, one.pieces)
            links = sorted(attention_links(weights, self._threshold))
            yield Alignment(links, [float(weights[j, i]) for i, j in links])


def _text(vocab: "Vocab", words: Sequence[str]) -> str:
    """Returns the words as a text whose pieces form as many words."""
    return " ".join(word if _is_word(vocab, word) else SUBSTITUTE for word in words)


@functools.lru_cache(1 << 16)
def _is_word(vocab: "Vocab", word: str) -> bool:
    return word_numbers(vocab.pieces(vocab.encode(word))).max(initial=-1) == 0


def word_numbers(pieces: Sequence[str]) -> np.ndarray:
    """Returns the number of the word that each piece belongs to.

    It is -1 for special pieces, such as </s>, and for a blank that begins no word.
    """
    numbers = np.full(len(pieces), -1)
    word, begins = -1, True
    for position, piece in enumerate(pieces):
        if piece in ("<s>", "</s>", "<pad>"):
            continue
        if piece.startswith(SPACE):
            begins = True
        if piece.strip(SPACE):
            word += begins
            begins = False
            numbers[position] = word
    return numbers


def between_words(weights: np.ndarray, source: Sequence[str], target: Sequence[str]) -> np.ndarray:
    """Returns attention weights between words, from those of target pieces on source pieces, float[T, S].

    Weights are averaged over the pieces of a target word and summed over the pieces of a source word.
    """
    rows, columns = word_numbers(target), word_numbers(source)
    num_rows, num_columns = rows.max(initial=-1) + 1, columns.max(initial=-1) + 1
    in_target = (rows[None] == np.arange(num_rows)[:, None]).astype(float)
    in_source = (columns[:, None] == np.arange(num_columns)[None]).astype(float)
    return in_target / np.maximum(in_target.sum(axis=1, keepdims=True), 1) @ weights @ in_source


def attention_links(weights: np.ndarray, threshold: float | None = None) -> list[Link]:
    """Returns links from word weights float[T, S]: each target word with its best source word.

    With a threshold, all links of at least that weight.
    """
    if not weights.size:
        return []
    if threshold is None:
        return [(int(source), target) for target, source in enumerate(weights.argmax(axis=1))]
    return [(int(source), int(target)) for target, source in np.argwhere(weights >= threshold)]
