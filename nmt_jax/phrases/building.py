"""From aligned parallel text to a phrase table."""

from collections.abc import Sequence

import numpy as np

from nmt_jax.alignment.links import Link
from nmt_jax.phrases import lexical
from nmt_jax.phrases.extraction import extract
from nmt_jax.phrases.phrase_table import Occurrences, PhraseTable, build
from nmt_jax.phrases.reordering import orientations
from nmt_jax.progress import track

BATCH = 256  # sentences of similar lengths that are searched for phrases together


def build_table(
    source: Sequence[np.ndarray],
    target: Sequence[np.ndarray],
    links: Sequence[Sequence[Link]],
    *,
    num_words: int,
    longest: int,
    most: int,
) -> PhraseTable:
    """Returns the phrase table of sentence pairs.

    source, target: numbers of words of each sentence, int[S] and int[T]. num_words: of the source language. longest:
    length of the longest phrases in words. most: translations of each source phrase to keep. Raises ValueError if there
    is no link.
    """
    starts = [np.concatenate([[0], np.cumsum([len(one) for one in side])]) for side in (source, target)]
    words = [np.concatenate([np.zeros(0, np.int64), *side]) for side in (source, target)]
    firsts = np.stack([one[:-1] for one in starts], axis=1)
    shifted = [np.array(pairs) + firsts[line] for line, pairs in enumerate(links) if len(pairs)]
    linked_source, linked_target = np.concatenate(shifted).T
    # Words are numbered from 1 here: 0 is NULL.
    source_weights = lexical.log_weights(words[1] + 1, words[0] + 1, linked_target, linked_source)
    target_weights = lexical.log_weights(words[0] + 1, words[1] + 1, linked_source, linked_target)
    groups = _groups(links, source)
    parts = [_occurrences(lines, links, starts, longest) for lines in track(groups, "extracting phrases", len(groups))]
    found = Occurrences(*map(np.concatenate, zip(*parts, strict=True)))
    return build(found, words[0], words[1], source_weights, target_weights, num_words=num_words, most=most)


def _groups(links: Sequence[Sequence[Link]], source: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Returns the numbers of sentences with links, those of similar lengths together."""
    order = np.argsort([len(one) for one in source], kind="stable")
    order = np.array([line for line in order.tolist() if len(links[line])], np.int64)
    return [order[first : first + BATCH] for first in range(0, len(order), BATCH)]


def _occurrences(
    lines: np.ndarray, links: Sequence[Sequence[Link]], starts: Sequence[np.ndarray], longest: int
) -> Occurrences:
    """Returns the phrase pairs of some sentences."""
    source_lengths, target_lengths = (one[lines + 1] - one[lines] for one in starts)
    linked = np.zeros((len(lines), source_lengths.max(), target_lengths.max()), bool)
    for row, line in enumerate(lines.tolist()):
        linked[row, *np.transpose(links[line])] = True
    spans = extract(linked, source_lengths, target_lengths, longest)
    source, target = (one[lines][spans.sentence] for one in starts)
    return Occurrences(
        source + spans.source_start,
        spans.source_end - spans.source_start,
        target + spans.target_start,
        spans.target_end - spans.target_start,
        orientations(spans, linked, source_lengths, target_lengths),
    )
