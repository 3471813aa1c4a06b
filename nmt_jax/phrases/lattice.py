"""The search graph of stack decoding, and the best paths through it."""

import functools
import heapq
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from nmt_jax.phrases.options import Options


class Arcs(NamedTuple):
    """A extensions of hypotheses. Arrays of A elements.

    node, parent: numbers of the hypotheses. option: that extends the parent. orientation: of its source phrase to that
    of the parent. score: of the best path to `node` through this arc. log_p: by the language model.
    """

    node: np.ndarray
    parent: np.ndarray
    option: np.ndarray
    orientation: np.ndarray
    score: np.ndarray
    log_p: np.ndarray


class Path(NamedTuple):
    """A translation: its score, and its arcs in the order of the target."""

    score: float
    arcs: list[int]


class Lattice:
    """The search graphs of a batch of sentences."""

    def __init__(self, options: Options, arcs: Arcs, num_roots: int, goals: Sequence[np.ndarray]) -> None:
        """num_roots: nodes 0 to num_roots - 1 are empty. goals: nodes of complete translations, by sentence."""
        self.options, self.arcs, self._num_roots, self._goals = options, arcs, num_roots, goals
        self._incoming = np.argsort(arcs.node, kind="stable")
        size = int(arcs.node.max()) + 2
        self._bounds = np.searchsorted(arcs.node[self._incoming], np.arange(size))
        self.scores = np.zeros(size - 1)
        self.scores[num_roots:] = -np.inf
        np.maximum.at(self.scores, arcs.node, arcs.score)

    def paths(self, sentence: int) -> Iterator[Path]:
        """Yields the paths of a sentence, best first.

        The best score of a node is known, so a best-first search backwards from the goals meets the paths in order.
        """
        count = itertools.count()  # decides between equal scores
        scores, parents, through, incoming, bounds = self._lists
        heap: list[Any] = [(-scores[goal], next(count), goal, 0.0, None) for goal in self._goals[sentence].tolist()]
        heapq.heapify(heap)
        while heap:
            negative, _, node, rest, after = heapq.heappop(heap)
            if node < self._num_roots:
                yield Path(-negative, _listed(after))
                continue
            for arc in incoming[bounds[node] : bounds[node + 1]]:
                parent = parents[arc]
                more = rest + through[arc] - scores[parent]
                heapq.heappush(heap, (-(scores[parent] + more), next(count), parent, more, (arc, after)))

    @functools.cached_property
    def _lists(self) -> tuple[list[Any], ...]:
        """Scores of nodes, parents and scores of arcs, arcs by node, and the first of each: lists are faster."""
        arrays = self.scores, self.arcs.parent, self.arcs.score, self._incoming, self._bounds
        return tuple(one.tolist() for one in arrays)

    def features(self, arcs: np.ndarray) -> np.ndarray:
        """Returns the features of arcs, float64[A, F]."""
        found, options = Arcs(*(one[arcs] for one in self.arcs)), self.options
        last = self._last_option(found.parent)
        end = np.where(last < 0, 0, options.end[last])
        jump = np.abs(options.start[found.option] - end)
        columns = np.zeros((len(arcs), 2, 3))
        rows, sides = np.arange(len(arcs)), found.orientation
        columns[rows, 0, sides] = options.orientations[found.option, 0, sides]
        columns[rows, 1, sides] = np.where(last < 0, 0.0, options.orientations[last, 1, sides])
        return np.column_stack([options.features[found.option], found.log_p, -jump, columns.reshape(-1, 6)])

    def _last_option(self, nodes: np.ndarray) -> np.ndarray:
        """Returns an option that leads to each node, -1 for roots; those of one node have the same future."""
        first = self._incoming[np.minimum(self._bounds[nodes], len(self._incoming) - 1)]
        return np.where(nodes < self._num_roots, -1, self.arcs.option[first])


def _listed(after: tuple[int, object] | None) -> list[int]:
    found = []
    while after is not None:
        arc, after = after  # type: ignore[assignment]
        found.append(arc)
    return found
