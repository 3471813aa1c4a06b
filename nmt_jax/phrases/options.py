"""The translation options of a batch of sentences, in arrays."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from nmt_jax.ngram.model import NgramModel
from nmt_jax.ngram.trie import NONE
from nmt_jax.ngram.vocabulary import UNK
from nmt_jax.phrases.phrase_table import PhraseTable

COPIED = -1  # row of an option that copies a source word
COPY_SCORE = -7.0  # each of the four log-probabilities of such an option
LN_10 = float(np.log(10.0))


@dataclasses.dataclass(frozen=True, eq=False)
class Options:
    """O translation options, by sentence and within it by length of the source phrase.

    sentence, start, end, row: int64[O]; row: of the phrase table, or COPIED. words: int64[O, T], target words, padded.
    lengths: int64[O]. features: float64[O, 6], those of `features.OPTION`. orientations: float64[O, 2, 3].
    language_model: float64[O], log-probability of the target words without context, which estimates that in context.
    bounds: int64[B + 1], the first option of each sentence.
    """

    sentence: np.ndarray
    start: np.ndarray
    end: np.ndarray
    row: np.ndarray
    words: np.ndarray
    lengths: np.ndarray
    features: np.ndarray
    orientations: np.ndarray
    language_model: np.ndarray
    bounds: np.ndarray


def collect(table: PhraseTable, model: NgramModel, sentences: Sequence[np.ndarray]) -> Options:
    """Returns the options of sentences, each int64[S], numbers of words or NONE.

    A word that has no translation on its own is copied.
    """
    columns = []
    for number, sentence in enumerate(sentences):
        start, end, row = table.find(sentence)
        alone = np.ones(len(sentence), bool)
        alone[start[end - start == 1]] = False
        copied = np.flatnonzero(alone)
        start, end = np.concatenate([start, copied]), np.concatenate([end, copied + 1])
        row = np.concatenate([row, np.full(len(copied), COPIED)])
        order = np.argsort(end - start, kind="stable")
        columns.append([np.full(len(order), number), start[order], end[order], row[order]])
    sentence, start, end, row = (np.concatenate(one) for one in zip(*columns, strict=True))
    lengths = np.where(row == COPIED, 1, table.word_start[row + 1] - table.word_start[row])
    words = np.full((len(row), int(lengths.max(initial=1))), UNK, np.int64)
    places = np.minimum(table.word_start[row][:, None] + np.arange(words.shape[1]), len(table.words) - 1)
    known = (np.arange(words.shape[1]) < lengths[:, None]) & (row != COPIED)[:, None]
    words[known] = table.words[places[known]]
    scores = np.where((row == COPIED)[:, None], COPY_SCORE, table.scores[row])
    orientation = np.where((row == COPIED)[:, None], np.log(1 / 3), table.orientations[row]).reshape(-1, 2, 3)
    none = np.full((len(row), model.order - 1), NONE)
    return Options(
        sentence,
        start,
        end,
        row,
        words,
        lengths,
        np.column_stack([scores, np.ones(len(row)), lengths]),
        orientation,
        follow(model, none, words, lengths)[0],
        np.searchsorted(sentence, np.arange(len(sentences) + 1)),
    )


def follow(
    model: NgramModel, state: np.ndarray, words: np.ndarray, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the natural log-probabilities float64[C] of phrases after states, and the states after them.

    state: int64[C, N - 1]. words: int64[C, T]. lengths: int64[C], of the phrases.
    """
    total, state = np.zeros(len(words)), state.copy()
    for place in range(words.shape[1]):
        active = np.flatnonzero(lengths > place)
        log_p, state[active] = model.advance(state[active], words[active, place])
        total[active] += log_p
    return total * LN_10, state
