"""Word alignments from attention between pieces, in the Pharaoh format: `0-0 1-2`, source first."""

from collections.abc import Sequence

import numpy as np

SPACE = "▁"  # prefix of a piece that begins a word


def word_numbers(pieces: Sequence[str]) -> np.ndarray:
    """Return the number of the word that each piece belongs to.

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
    """Return attention weights between words, from those of target pieces on source pieces, float[T, S].

    Weights are averaged over the pieces of a target word and summed over the pieces of a source word.
    """
    rows, columns = word_numbers(target), word_numbers(source)
    num_rows, num_columns = rows.max(initial=-1) + 1, columns.max(initial=-1) + 1
    in_target = (rows[None] == np.arange(num_rows)[:, None]).astype(float)
    in_source = (columns[:, None] == np.arange(num_columns)[None]).astype(float)
    return in_target / np.maximum(in_target.sum(axis=1, keepdims=True), 1) @ weights @ in_source


def links(weights: np.ndarray, threshold: float | None = None) -> list[tuple[int, int]]:
    """Return (source, target) links from word weights float[T, S]: each target word with its best source word.

    With a threshold, all links of at least that weight.
    """
    if not weights.size:
        return []
    if threshold is None:
        return [(int(source), target) for target, source in enumerate(weights.argmax(axis=1))]
    return [(int(source), int(target)) for target, source in np.argwhere(weights >= threshold)]


def pharaoh(pairs: Sequence[tuple[int, int]]) -> str:
    """Return (source, target) links as "0-0 1-2", in the order of the source."""
    return " ".join(f"{source}-{target}" for source, target in sorted(pairs))
