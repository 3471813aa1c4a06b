"""From attention between pieces to links between words, in the format of Pharaoh: `0-0 1-2`, source first."""

from collections.abc import Sequence

import numpy as np

SPACE = "▁"  # how a piece says that a word begins with it


def word_numbers(pieces: Sequence[str]) -> np.ndarray:
    """The number of the word that each piece belongs to, -1 for special ones (</s>) and a blank that begins nothing."""
    numbers = np.full(len(pieces), -1)
    word, begins = -1, True
    for place, piece in enumerate(pieces):
        if piece in ("<s>", "</s>", "<pad>"):
            continue
        if piece.startswith(SPACE):
            begins = True
        if piece.strip(SPACE):
            word += begins
            begins = False
            numbers[place] = word
    return numbers


def between_words(weights: np.ndarray, source: Sequence[str], target: Sequence[str]) -> np.ndarray:
    """weights float[T, S] of target pieces on source pieces -> the same of words.

    What a word gives is the mean of what its pieces give, what it gets the sum of what they get.
    """
    rows, columns = word_numbers(target), word_numbers(source)
    num_rows, num_columns = rows.max(initial=-1) + 1, columns.max(initial=-1) + 1
    gives = (rows[None] == np.arange(num_rows)[:, None]).astype(float)
    gets = (columns[:, None] == np.arange(num_columns)[None]).astype(float)
    return gives / np.maximum(gives.sum(axis=1, keepdims=True), 1) @ weights @ gets


def links(weights: np.ndarray, threshold: float | None = None) -> list[tuple[int, int]]:
    """Word weights float[T, S] -> (source, target) links: each target word's best source word.

    With a threshold instead every source word that gets at least so much of it, or none.
    """
    if not weights.size:
        return []
    if threshold is None:
        return [(int(source), target) for target, source in enumerate(weights.argmax(axis=1))]
    return [(int(source), int(target)) for target, source in np.argwhere(weights >= threshold)]


def pharaoh(pairs: Sequence[tuple[int, int]]) -> str:
    """(source, target) links -> "0-0 1-2", in the order of the source."""
    return " ".join(f"{source}-{target}" for source, target in sorted(pairs))
