"""Word Mover's Distance by Sinkhorn's algorithm in one program per shape: words in, distances out, on all devices."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from metrics_jax.embedding import devices
from metrics_jax.embedding.lengths import bucket
from metrics_jax.embedding.matching import distances
from metrics_jax.embedding.pair_batches import Places
from metrics_jax.embedding.sinkhorn import sinkhorn
from metrics_jax.embedding.token_batches import Side
from metrics_jax.embedding.transport import batch_rows
from metrics_jax.embedding.vectors import unit

Words = tuple[np.ndarray, np.ndarray]  # of a text: distinct rows of a table int[n], and their weights float[n]


class Moved(NamedTuple):
    """Of each pair: the cost of the plan, the bound on its error, and three lower bounds of the optimal cost.

    left, right: each word moves to the nearest one, of the first text or of the second. centroids: the distance of the
    weighted means. All are 0 if a text has no words.
    """

    value: Any  # np.ndarray or jax.Array
    gap: Any
    left: Any
    right: Any
    centroids: Any


@jax.jit
def move(table: Array, left: Places, right: Places) -> Moved:
    """The transport between P pairs of texts, whose words are rows of the table float32[V, D]."""
    x, y = (Side(table[jnp.maximum(side.at, 0)], side.weights, side.at >= 0) for side in (left, right))
    costs = distances(x, y, pairwise=False)
    found = sinkhorn(x.weights, y.weights, costs)
    costs = jnp.where(x.real[:, :, None] & y.real[:, None], costs, jnp.inf)
    nearest = (jnp.where(jnp.isfinite(least), least, 0) for least in (costs.min(axis=2), costs.min(axis=1)))
    bounds = [(side.weights * least).sum(axis=1) for side, least in zip((x, y), nearest, strict=True)]
    means = [jnp.einsum("ps,psd->pd", side.weights, side.vectors, precision="highest") for side in (x, y)]
    known = x.real.any(axis=1) & y.real.any(axis=1)
    centroids = jnp.where(known, jnp.linalg.norm(means[0] - means[1], axis=1), 0)
    return Moved(found.value, found.gap, bounds[0], bounds[1], centroids)


def move_words(matrix: np.ndarray, texts: Sequence[Words], others: Sequence[Words], norm: bool) -> Moved:
    """The transport between P pairs of texts, whose words are rows of the matrix float[V, D]: float64[P] each.

    norm: scale vectors to length 1. Rows that are words of these texts are sent to every device once, as float32.
    """
    mesh = devices.local_mesh()
    used = np.unique(np.concatenate([np.zeros(1, int), *(rows for rows, _ in (*texts, *others))]))
    points = matrix[used].astype(np.float64)
    table = np.zeros((1 << (len(used) - 1).bit_length(), matrix.shape[1]), np.float32)  # few shapes
    table[: len(used)] = unit(points) if norm else points
    placed = devices.put(table, devices.everywhere(mesh))

    def start(batch: tuple[np.ndarray, Places, Places]) -> Moved:
        return move(placed, *devices.put(batch[1:], devices.by_rows(mesh)))

    found = Moved(*np.zeros((len(Moved._fields), len(texts))))
    for (chosen, *_), moved in devices.overlapped(start, _batches(used, texts, others, mesh.size)):
        for values, some in zip(found, moved, strict=True):
            values[chosen] = some[: len(chosen)]
    return found


def _batches(
    used: np.ndarray, texts: Sequence[Words], others: Sequence[Words], num_devices: int
) -> Iterator[tuple[np.ndarray, Places, Places]]:
    """The numbers of some pairs and the words of both texts, for all devices; shapes depend on the pairs' lengths."""
    sizes = np.array([bucket(max(len(one[0]), len(other[0]))) for one, other in zip(texts, others, strict=True)], int)
    for size in np.unique(sizes)[::-1].tolist():
        numbers, rows = np.flatnonzero(sizes == size), num_devices * batch_rows(size)
        for first in range(0, len(numbers), rows):
            chosen = numbers[first : first + rows]
            left, right = (_padded(used, [side[k] for k in chosen], rows, size) for side in (texts, others))
            yield chosen, left, right


def _padded(used: np.ndarray, texts: Sequence[Words], rows: int, size: int) -> Places:
    at, weights = np.full((rows, size), -1, np.int32), np.zeros((rows, size), np.float32)
    for number, (words, shares) in enumerate(texts):
        at[number, : len(words)], weights[number, : len(words)] = np.searchsorted(used, words), shares
    return Places(at, weights)
