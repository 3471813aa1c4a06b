"""Training of both directions by EM, and the links that they find."""

import functools
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from nmt_jax.alignment import translation_table
from nmt_jax.alignment.bitext import SPECIAL, Batch, Bitext, Sentence
from nmt_jax.alignment.diagonal import Diagonal
from nmt_jax.alignment.hmm import HMM
from nmt_jax.alignment.ibm1 import IBM1, Expectations, Lexical
from nmt_jax.alignment.links import Alignment
from nmt_jax.alignment.posteriors import Posteriors, alignments
from nmt_jax.alignment.translation_table import Rows, Table

Arrays = dict[str, np.ndarray]
Item = TypeVar("Item")
ROWS, REVERSE = PartitionSpec("data"), (False, True)
FLOOR = 1e-20  # probability of pairs of words that did not occur in training, or whose probability vanished


class Direction(NamedTuple):
    """A direction: the translation table, and the parameters of the model."""

    table: Table
    parameters: Any


class Totals(NamedTuple):
    """Sums over the sentences of a device: expected counts, log-likelihood, statistics of the model.

    The first axis of each array is that of the devices.
    """

    counts: Table
    log_likelihood: Array
    statistics: Any


def stages(model: str, null_probability: float, fit_tension: bool) -> list[Any]:
    """Returns the models to train, one after the other; the HMM begins with the table of IBM model 1."""
    models: dict[str, list[Any]] = {
        "ibm1": [IBM1()],
        "diagonal": [Diagonal(null_probability, fit_tension)],
        "hmm": [IBM1(), HMM(null_probability)],
    }
    return models[model]


class Aligner:
    """Aligns sentence pairs with a model that is trained on them, in both directions."""

    def __init__(
        self,
        source: Sequence[Sentence],
        target: Sequence[Sentence],
        mesh: Mesh,
        *,
        model: str = "hmm",
        iterations: int = 5,
        alpha: float = 0.0,
        null_probability: float = 0.08,
        fit_tension: bool = False,
        progress: Callable[[Iterable[Batch], int], Iterable[Batch]] = lambda batches, total: batches,
    ):
        """Trains the model.

        iterations: of EM, for each of the `stages`. alpha: of the Dirichlet prior, see `translation_table.maximized`.
        fit_tension: whether training changes the tension of the diagonal model.
        progress: returns batches, given them and their number, and displays how many are done.
        """
        self._mesh = mesh
        self._split, self._whole = (NamedSharding(mesh, spec) for spec in (ROWS, PartitionSpec()))
        self.bitext = Bitext(source, target, mesh.shape["data"])
        self.log_likelihoods: list[list[float]] = []  # of each iteration, in both directions
        self._longest = max(batch.pairs.shape[1] for batch in self.bitext.batches)
        self._rows = [Rows.of(self.bitext, reverse) for reverse in REVERSE]
        self._tables = [translation_table.uniform(self.bitext, reverse) for reverse in REVERSE]
        models = stages(model, null_probability, fit_tension)
        rounds = iterations * len(models)
        batches = iter(
            progress((batch for _ in range(rounds) for batch in self.bitext.batches), rounds * self.num_batches)
        )
        for self._model in models:
            parameters = [self._model.initial(self._longest) for _ in REVERSE]
            for _ in range(iterations):
                parameters = self._iterate(batches, parameters, alpha)
        self.directions = self._placed(parameters)
        next(batches, None)  # ends the display

    @property
    def num_batches(self) -> int:
        """Number of batches in an iteration."""
        return len(self.bitext.batches)

    def _placed(self, parameters: list[Any]) -> list[Direction]:
        """Returns both directions, on all devices."""
        return jax.device_put([Direction(*one) for one in zip(self._tables, parameters, strict=True)], self._whole)

    def _iterate(self, batches: Iterator[Batch], parameters: list[Any], alpha: float) -> list[Any]:
        """Makes one iteration of EM; returns the parameters.

        Each device sums up its own rows, and exchanges nothing between batches. The sums of all devices are added up at
        the end, on the first one.
        """
        directions = self._placed(parameters)
        totals: list[Totals] = []
        before: list[Expectations] = []
        for batch in itertools.islice(batches, self.num_batches):
            arrays = [_arrays(batch, reverse) for reverse in REVERSE]
            found = [self._expected(*one) for one in zip(directions, arrays, strict=True)]
            totals = totals or [self._zeros(*one) for one in zip(self._tables, found, strict=True)]
            totals = [_added(*one, mesh=self._mesh) for one in zip(totals, found, arrays, strict=True)]
            jax.block_until_ready(before)  # so that two batches at most are in memory
            before = found
        sums = [_summed(one) for one in jax.device_put(totals, self._mesh.devices.ravel()[0])]
        self._counts = sums[0].counts
        self._tables = [
            translation_table.maximized(one.counts, rows, alpha) for one, rows in zip(sums, self._rows, strict=True)
        ]
        self.log_likelihoods.append([float(one.log_likelihood) for one in sums])
        return [self._model.update(old, one.statistics) for old, one in zip(parameters, sums, strict=True)]

    def _expected(self, direction: Direction, arrays: Arrays) -> Expectations:
        return expectations(direction, arrays, model=self._model, mesh=self._mesh)

    def _zeros(self, table: Table, found: Expectations) -> Totals:
        counts = Table(*(jnp.zeros((self._mesh.shape["data"], *one.shape), device=self._split) for one in table))
        sums = found.log_likelihood, found.statistics
        return Totals(counts, *jax.tree.map(lambda one: jnp.zeros(one.shape, device=self._split), sums))

    def align(
        self, source: Sequence[Sentence], target: Sequence[Sentence], method: str = "grow-diag-final-and"
    ) -> list[Alignment]:
        """Returns the alignment of each sentence pair, see `posteriors.alignments`; it is empty if a sentence is."""
        batches = ((batch, slice(len(batch.lines))) for batch in self.bitext.batches_of(source, target))
        return self._aligned(batches, 0, len(source), method)

    def align_lines(self, first: int, number: int, method: str = "grow-diag-final-and") -> list[Alignment]:
        """Returns the alignment of each of the lines of the text from `first` on, as `align` does."""
        places = self.bitext.places_of(first, number)
        return self._aligned(((self.bitext.batches[place], rows) for place, rows in places), first, number, method)

    def _aligned(self, batches: Iterable[tuple[Batch, slice]], first: int, number: int, method: str) -> list[Alignment]:
        aligned = [Alignment([], []) for _ in range(number)]
        computed = ((batch, rows, self._posteriors(batch)) for batch, rows in batches)
        for batch, rows, both in one_ahead(computed):
            forward, reverse = (Posteriors(*(np.asarray(one)[rows] for one in direction)) for direction in both)
            found = alignments(forward, reverse, method)
            for line, alignment in zip(batch.lines[rows].tolist(), found, strict=True):
                aligned[line - first] = alignment
        return aligned

    def _posteriors(self, batch: Batch) -> list[tuple[Array, Array]]:
        """Returns for each direction the posteriors of links and of NULL."""
        found = [
            self._expected(direction, _arrays(batch, reverse))
            for direction, reverse in zip(self.directions, REVERSE, strict=True)
        ]
        return [(one.links, one.null) for one in found]

    def lexicon(self, smallest: float) -> Iterator[tuple[str, str, float]]:
        """Yields source word, target word and p(target word | source word) of at least `smallest`.

        The probabilities of a source word sum to 1: they are relative frequencies of expected counts, without a prior.
        """
        probabilities = translation_table.maximized(self._counts, self._rows[0], 0.0).pairs
        yield from lexicon_rows(self.bitext, np.asarray(probabilities), smallest)


def lexicon_rows(bitext: Bitext, probabilities: np.ndarray, smallest: float) -> Iterator[tuple[str, str, float]]:
    """Yields source word, target word and probability float[P] of the pairs with at least the smallest probability."""
    source, target = bitext.pair_words
    for pair in np.flatnonzero(probabilities >= smallest).tolist():
        if pair:  # not padding
            words = bitext.source_words.words[source[pair] - SPECIAL], bitext.target_words.words[target[pair] - SPECIAL]
            yield *words, float(probabilities[pair])


def _arrays(batch: Batch, reverse: bool) -> Arrays:
    return dict(zip(("source", "target", "pairs"), batch.directed(reverse), strict=True))


@functools.partial(jax.jit, static_argnames=("model", "mesh"))
def expectations(direction: Direction, batch: Arrays, *, model: Any, mesh: Mesh) -> Expectations:
    """Returns the posteriors of a batch; the first axis of its sums is that of the devices, which share the rows."""

    def of_rows(direction: Direction, batch: Arrays) -> Expectations:
        found = model.expectations(direction.parameters, lexical(direction.table, batch))
        sums = found.log_likelihood, found.statistics
        log_likelihood, statistics = jax.tree.map(lambda one: one[None], sums)
        return Expectations(found.links, found.null, log_likelihood, statistics)

    return _split(of_rows, mesh, (PartitionSpec(), ROWS))(direction, batch)


@functools.partial(jax.jit, static_argnames="mesh", donate_argnums=0)
def _added(totals: Totals, found: Expectations, batch: Arrays, *, mesh: Mesh) -> Totals:
    """Returns the sums of each device with those of its rows of a batch."""

    def of_rows(totals: Totals, found: Expectations, batch: Arrays) -> Totals:
        pairs, null = totals.counts
        counts = Table(
            pairs.at[0, batch["pairs"].ravel()].add(found.links.ravel()),
            null.at[0, batch["target"].ravel()].add(found.null.ravel()),
        )
        return Totals(counts, *jax.tree.map(jnp.add, totals[1:], (found.log_likelihood, found.statistics)))

    return _split(of_rows, mesh, (ROWS, ROWS, ROWS))(totals, found, batch)


@jax.jit
def _summed(totals: Totals) -> Totals:
    # One after the other, since XLA's CPU compiler sums over the first axis ten times more slowly.
    return jax.tree.map(lambda one: functools.reduce(jnp.add, one), totals)


def lexical(table: Table, batch: Arrays) -> Lexical:
    """Returns the probabilities of the words of a batch."""
    source, target = jnp.asarray(batch["source"] > 0), jnp.asarray(batch["target"] > 0)
    both = source[:, None, :] & target[:, :, None]
    words = jnp.where(both, jnp.maximum(table.pairs[batch["pairs"]], FLOOR), 0.0)
    return Lexical(words, jnp.where(target, jnp.maximum(table.null[batch["target"]], FLOOR), 0.0), source, target)


def _split(function: Callable[..., Any], mesh: Mesh, specs: tuple[PartitionSpec, ...]) -> Callable[..., Any]:
    return jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=ROWS, check_vma=False)


def one_ahead(items: Iterable[Item]) -> Iterator[Item]:
    """Yields the items, each after the next one was asked for: devices compute it in the meantime."""
    waiting = deque[Item]()
    for item in items:
        waiting.append(item)
        if len(waiting) > 1:
            yield waiting.popleft()
    yield from waiting
