"""The attention weights of a text: what each of its pieces looks at, in all layers and heads."""

from typing import NamedTuple

import numpy as np


class TextAttention(NamedTuple):
    """T pieces and weights float32[L, H, T, T]; row t, the weights of piece t over all pieces, sums to 1."""

    pieces: list[str]
    weights: np.ndarray


def padded(ids: np.ndarray, longest: int, padding: int) -> np.ndarray:
    """Return ids int[T] as a batch int32[1, S], S the next power of two but at most `longest`.

    So texts of similar length share a compiled program.
    """
    width = min(1 << max(len(ids) - 1, 0).bit_length(), max(longest, len(ids)))
    batch = np.full((1, width), padding, np.int32)
    batch[0, : len(ids)] = ids
    return batch
