"""Training of both directions by EM, and the links that they find."""

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, PartitionSpec

from nmt_jax.alignment import symmetrization, translation_table
from nmt_jax.alignment.bitext import SPECIAL, Batch, Bitext, Sentence
from nmt_jax.alignment.diagonal import Diagonal
from nmt_jax.alignment.hmm import HMM
from nmt_jax.alignment.ibm1 import IBM1, Expectations, Lexical
from nmt_jax.alignment.links import Alignment
from nmt_jax.alignment.translation_table import Rows, Table

FLOOR = 1e-20  # probability of pairs of words that did not occur in training, or whose probability vanished


class Direction(NamedTuple):
    """A direction: the translation table, and the parameters of the model."""

    table: Table
    parameters: Any


class Totals(NamedTuple):
    """Sums over sentences: expected counts, statistics of the model, log-likelihood."""

    counts: Table
    statistics: Any
    log_likelihood: Array


def stages(model: str, null_probability: float) -> list[Any]:
    """Returns the models to train, one after the other; the HMM begins with the table of IBM model 1."""
    models: dict[str, list[Any]] = {
        "ibm1": [IBM1()],
        "diagonal": [Diagonal(null_probability)],
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
        progress: Callable[[Iterable[Batch], int], Iterable[Batch]] = lambda batches, total: batches,
    ):
        """Trains the model.

        iterations: of EM, for each of the `stages`. alpha: of the Dirichlet prior, see `translation_table.maximized`.
        progress: returns batches, given them and their number, and displays how many are done.
        """
        self._mesh = mesh
        self._text = source, target
        self.bitext = Bitext(source, target, mesh.shape["data"])
        self.log_likelihoods: list[list[float]] = []  # of each iteration, in both directions
        longest = max(batch.pairs.shape[1] for batch in self.bitext.batches)
        self._rows = [Rows.of(self.bitext, reverse) for reverse in (False, True)]
        tables = [translation_table.uniform(self.bitext, reverse) for reverse in (False, True)]
        models = stages(model, null_probability)
        rounds = iterations * len(models)
        batches = iter(
            progress((batch for _ in range(rounds) for batch in self.bitext.batches), rounds * self.num_batches)
        )
        for self._model in models:
            self.directions = [Direction(table, self._model.initial(longest)) for table in tables]
            for _ in range(iterations):
                self._iterate(batches, alpha)
            tables = [direction.table for direction in self.directions]
        next(batches, None)  # ends the display

    @property
    def num_batches(self) -> int:
        """Number of batches in an iteration."""
        return len(self.bitext.batches)

    def _iterate(self, batches: Iterator[Batch], alpha: float) -> None:
        """One iteration of EM."""
        totals: list[Totals] = []
        for batch in itertools.islice(batches, self.num_batches):
            found = expected_totals(self.directions, _arrays(batch), model=self._model, mesh=self._mesh)
            totals = _add(totals, found) if totals else found
            jax.block_until_ready(totals)  # many collectives in flight can abort on simulated devices
        self._counts = totals[0].counts
        self.directions = [
            Direction(
                translation_table.maximized(one.counts, rows, jnp.float32(alpha)),
                self._model.update(direction.parameters, one.statistics),
            )
            for direction, one, rows in zip(self.directions, totals, self._rows, strict=True)
        ]
        self.log_likelihoods.append([float(one.log_likelihood) for one in totals])

    def align(
        self, source: Sequence[Sentence], target: Sequence[Sentence], method: str = "grow-diag-final-and"
    ) -> list[Alignment]:
        """Returns the alignment of each sentence pair; it is empty if a sentence is.

        The posterior of a link is the mean of both directions.

        In each direction a word is linked to the word that most probably generated it, unless NULL is more probable.
        method: combines both directions, one of `symmetrization.METHODS`.
        """
        aligned = [Alignment([], []) for _ in source]
        combine = symmetrization.METHODS[method]
        for batch in self.bitext.batches_of(source, target):
            posteriors = expected_links(self.directions, _arrays(batch), model=self._model, mesh=self._mesh)
            (forward, found_forward), (reverse, found_reverse) = jax.device_get(posteriors)
            mean = (forward + reverse) / 2
            for row, line in enumerate(batch.lines.tolist()):
                both = (set(zip(*np.nonzero(one[row]), strict=True)) for one in (found_forward, found_reverse))
                links = sorted((int(i), int(j)) for i, j in combine(*both))
                aligned[line] = Alignment(links, [float(mean[row, i, j]) for i, j in links])
        return aligned

    def align_lines(self, first: int, number: int, method: str = "grow-diag-final-and") -> list[Alignment]:
        """Returns the alignment of each of the lines of the text from `first` on, as `align` does."""
        source, target = (side[first : first + number] for side in self._text)
        return self.align(source, target, method)

    def lexicon(self, smallest: float) -> Iterator[tuple[str, str, float]]:
        """Yields source word, target word and p(target word | source word) of at least `smallest`.

        The probabilities of a source word sum to 1: they are relative frequencies of expected counts, without a prior.
        """
        probabilities = translation_table.maximized(self._counts, self._rows[0], jnp.float32(0)).pairs
        yield from lexicon_rows(self.bitext, np.asarray(probabilities), smallest)


def lexicon_rows(bitext: Bitext, probabilities: np.ndarray, smallest: float) -> Iterator[tuple[str, str, float]]:
    """Yields source word, target word and probability float[P] of the pairs with at least the smallest probability."""
    source, target = bitext.pair_words
    for pair in np.flatnonzero(probabilities >= smallest).tolist():
        if pair:  # not padding
            words = bitext.source_words.words[source[pair] - SPECIAL], bitext.target_words.words[target[pair] - SPECIAL]
            yield *words, float(probabilities[pair])


Arrays = dict[str, np.ndarray]


def _arrays(batch: Batch) -> Arrays:
    return {"source": batch.source, "target": batch.target, "pairs": batch.pairs}


@functools.partial(jax.jit, donate_argnums=0)
def _add(one: list[Totals], other: list[Totals]) -> list[Totals]:
    return jax.tree.map(jnp.add, one, other)


@functools.partial(jax.jit, static_argnames=("model", "mesh"))
def expected_totals(directions: list[Direction], batch: Arrays, *, model: Any, mesh: Mesh) -> list[Totals]:
    """Returns the sums over the sentences of a batch, for each direction; the rows are split over "data"."""

    def of_rows(directions: list[Direction], batch: Arrays) -> list[Totals]:
        totals = []
        for direction, one in zip(directions, (batch, _reversed(batch)), strict=True):
            found = model.expectations(direction.parameters, lexical(direction.table, one))
            counts = Table(
                jnp.zeros_like(direction.table.pairs).at[one["pairs"].ravel()].add(found.links.ravel()),
                jnp.zeros_like(direction.table.null).at[one["target"].ravel()].add(found.null.ravel()),
            )
            totals.append(Totals(counts, found.statistics, found.log_likelihood))
        return jax.lax.psum(totals, "data")

    return _split(of_rows, mesh, PartitionSpec())(directions, batch)


@functools.partial(jax.jit, static_argnames=("model", "mesh"))
def expected_links(directions: list[Direction], batch: Arrays, *, model: Any, mesh: Mesh) -> list[tuple[Array, Array]]:
    """Returns for each direction the posteriors float32[B, S, T], and the links to take, bool[B, S, T]."""

    def of_rows(directions: list[Direction], batch: Arrays) -> list[tuple[Array, Array]]:
        both = []
        for number, one in enumerate((batch, _reversed(batch))):
            found = model.expectations(directions[number].parameters, lexical(directions[number].table, one))
            posteriors, taken = found.links, most_probable(found)
            both.append((posteriors, taken) if number else (posteriors.mT, taken.mT))
        return both

    return _split(of_rows, mesh, PartitionSpec("data"))(directions, batch)


def most_probable(found: Expectations) -> Array:
    """Returns for each target word the most probable source word, bool[B, T, S], unless NULL is more probable."""
    best = found.links.max(-1)
    is_best = jax.nn.one_hot(found.links.argmax(-1), found.links.shape[-1], dtype=bool)
    return is_best & ((best > 0) & (best >= found.null))[..., None]


def lexical(table: Table, batch: Arrays) -> Lexical:
    """Returns the probabilities of the words of a batch."""
    source, target = jnp.asarray(batch["source"] > 0), jnp.asarray(batch["target"] > 0)
    both = source[:, None, :] & target[:, :, None]
    words = jnp.where(both, jnp.maximum(table.pairs[batch["pairs"]], FLOOR), 0.0)
    return Lexical(words, jnp.where(target, jnp.maximum(table.null[batch["target"]], FLOOR), 0.0), source, target)


def _split(function: Callable[..., Any], mesh: Mesh, out: PartitionSpec) -> Callable[..., Any]:
    specs = (PartitionSpec(), PartitionSpec("data"))
    return jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=out, check_vma=False)


def _reversed(batch: Arrays) -> Arrays:
    """Returns the batch with source and target exchanged."""
    return {"source": batch["target"], "target": batch["source"], "pairs": batch["pairs"].mT}
