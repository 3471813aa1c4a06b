"""Sampling of the links of both directions, with the model of `fertility`, and the links that most samples agree on."""

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from nmt_jax.alignment import fertility, symmetrization
from nmt_jax.alignment.aligner import lexicon_rows
from nmt_jax.alignment.bitext import SPECIAL, Batch, Bitext, Sentence
from nmt_jax.alignment.fertility import Counts, Prior, Sentences, Stage, Vocabulary
from nmt_jax.alignment.links import Alignment

CHAINS = PartitionSpec("chains")
IBM1, HMM, FERTILITY = Stage(0.0, 0.0), Stage(1.0, 0.0), Stage(1.0, 1.0)


def default_sweeps(sentences: int) -> int:
    """Returns 3,000 divided by the square root of the number of sentences, but at least 5 and at most 100."""
    return min(max(math.ceil(3000 / math.sqrt(max(sentences, 1))), 5), 100)


class Sampler:
    """Aligns sentence pairs by the mean of sampled posteriors.

    bitext: the text. posteriors: for both directions and each batch float32[B, T, S] or float32[B, S, T], the mean
    probability of each link; the rest is that of NULL.
    """

    def __init__(
        self,
        source: Sequence[Sentence],
        target: Sequence[Sentence],
        mesh: Mesh,
        *,
        sweeps: int | None = None,
        chains: int = 3,
        seed: int = 0,
        null_probability: float = 0.2,
        progress: Callable[[Iterable[Batch], int], Iterable[Batch]] = lambda batches, total: batches,
    ):
        """Samples.

        sweeps: over the text with the full model, by default `default_sweeps`; a quarter as many with IBM model 1 and
        with the HMM come before, and the first quarter is not averaged. chains: independent samplers of each direction.
        Each device samples other chains, and half of the devices the other direction. Equal seeds give equal links,
        whatever the number of devices. progress: returns batches, given them and their number.
        """
        self.bitext, prior = Bitext(source, target), Prior(null_probability)
        full = sweeps or default_sweeps(len(source))
        quarter = -(-full // 4)
        self._stages = [IBM1] * quarter + [HMM] * quarter + [FERTILITY] * full
        self._first_averaged = len(self._stages) - full + full // 4
        batches, devices = self.bitext.batches, mesh.devices.ravel().tolist()
        size = min(max(len(devices) // 2, 1), chains)
        total = 2 * -(-chains // size) * len(self._stages) * len(batches)
        shown = iter(progress((batch for _ in range(total // len(batches)) for batch in batches), total))
        sides = zip((False, True), (devices[:size], devices[-size:]), strict=True)
        directions = [_Direction(self.bitext, reverse, some, seed, prior) for reverse, some in sides]
        for first in range(0, chains, size):
            for direction in directions:
                direction.start(first)
            for sweep, stage in enumerate(self._stages):
                for number in range(len(batches)):
                    for direction in directions:
                        next(shown)
                        direction.draw(sweep, number, stage, taken=sweep >= self._first_averaged)
                for direction in directions:
                    direction.wait()
            for direction in directions:
                direction.finish(min(size, chains - first))
        samples = chains * (len(self._stages) - self._first_averaged)
        self.posteriors = [[total / samples for total in direction.totals] for direction in directions]
        next(shown, None)  # ends the display
        self._place = {
            line: (number, row) for number, batch in enumerate(batches) for row, line in enumerate(batch.lines.tolist())
        }

    def align_lines(self, first: int, number: int, method: str = "grow-diag-final-and") -> list[Alignment]:
        """Returns the alignment of each of the lines from `first` on; it is empty if a sentence is.

        In each direction a word is linked to the word that generated it with the largest mean probability, unless that
        of NULL is larger. method: combines both directions, one of `symmetrization.METHODS`.
        """
        return [
            self._combined(*self._place[line], method) if line in self._place else Alignment([], [])
            for line in range(first, first + number)
        ]

    def _combined(self, number: int, row: int, method: str) -> Alignment:
        forward, reverse = (one[number][row] for one in self.posteriors)
        found = most_probable(forward), {(i, j) for j, i in most_probable(reverse)}
        links = sorted(symmetrization.METHODS[method](*found))
        return Alignment(links, [float(forward[j, i] + reverse[i, j]) / 2 for i, j in links])

    def lexicon(self, smallest: float) -> Iterator[tuple[str, str, float]]:
        """Yields source word, target word and p(target word | source word) of at least `smallest`.

        The probabilities are relative frequencies of expected counts, and those of a source word sum to 1.
        """
        counts = np.zeros(len(self.bitext.keys))
        for batch, posteriors in zip(self.bitext.batches, self.posteriors[0], strict=True):
            counts += np.bincount(batch.pairs.ravel(), posteriors.ravel(), len(counts))
        word = self.bitext.pair_words[0]
        totals = np.bincount(word, counts)
        yield from lexicon_rows(self.bitext, counts / np.maximum(totals[word], 1e-30), smallest)


def most_probable(posteriors: np.ndarray) -> set[tuple[int, int]]:
    """Returns (i, j) for each target word j whose most probable source word i is at least as probable as NULL.

    posteriors: float32[T, S].
    """
    best = posteriors.argmax(-1)
    largest = posteriors.max(-1)
    linked = (largest > 0) & (largest >= 1 - posteriors.sum(-1))
    return {(int(best[j]), int(j)) for j in np.flatnonzero(linked)}


class _Direction:
    """Chains of one direction, one on each of some devices, which exchange nothing.

    totals: for each batch float32[B, T, S], the sums of the probabilities of all chains that were finished.
    """

    def __init__(self, bitext: Bitext, reverse: bool, devices: list[jax.Device], seed: int, prior: Prior):
        self._mesh = jax.make_mesh((len(devices),), ("chains",), axis_types=(AxisType.Auto,), devices=devices)
        self._seeds, self._prior, self._devices = (seed, reverse), prior, len(devices)
        self._split, whole = (NamedSharding(self._mesh, spec) for spec in (CHAINS, PartitionSpec()))
        self._texts = [Sentences(*jax.device_put(_arrays(batch, reverse), whole)) for batch in bitext.batches]
        self._vocabulary = jax.device_put(_vocabulary(bitext, reverse), whole)
        self._table_size = _table_size(len(bitext.keys))
        self.totals = [np.zeros(text.pairs.shape, np.float32) for text in self._texts]

    def start(self, first: int) -> None:
        """Begins with no links; first: number of the chain on the first device."""
        self._first = first
        counts = fertility.empty(self._table_size, len(self._vocabulary.partners))
        self._counts = jax.tree.map(lambda table: self._of_each(table.shape, table.dtype, 0), counts)
        self._links = [self._of_each(text.target.shape, jnp.int32, fertility.UNDRAWN) for text in self._texts]
        self._sums = [self._of_each(text.pairs.shape, jnp.float32, 0) for text in self._texts]

    def _of_each(self, shape: tuple[int, ...], dtype: jnp.dtype, value: int) -> Array:
        return jnp.full((self._devices, *shape), value, dtype, device=self._split)

    def draw(self, sweep: int, number: int, stage: Stage, taken: bool) -> None:
        """Draws the links of a batch; taken: whether the probabilities are added to the sums."""
        text = self._texts[number]
        chains = range(self._first, self._first + self._devices)
        generators = [np.random.default_rng((*self._seeds, chain, sweep, number)) for chain in chains]
        uniform = np.stack([generator.random(text.target.shape, np.float32) for generator in generators])
        self._counts, self._links[number], self._sums[number] = _sweep(
            self._counts, self._links[number], self._sums[number], uniform, text, np.float32(taken),
            self._vocabulary, stage, prior=self._prior, mesh=self._mesh,
        )  # fmt: skip

    def wait(self) -> None:
        """Waits for the devices, so that few random numbers are in memory."""
        self._counts.null.block_until_ready()

    def finish(self, chains: int) -> None:
        """Adds the sums of the first `chains` devices, in their order."""
        for total, sums in zip(self.totals, self._sums, strict=True):
            for one in np.asarray(sums)[:chains]:
                total += one


@functools.partial(jax.jit, static_argnames=("prior", "mesh"), donate_argnums=(0, 1, 2))
def _sweep(
    counts: Counts,
    links: Array,
    sums: Array,
    uniform: Array,
    sentences: Sentences,
    taken: Array,
    vocabulary: Vocabulary,
    stage: Stage,
    *,
    prior: Prior,
    mesh: Mesh,
) -> tuple[Counts, Array, Array]:
    """Draws the links of a batch in each chain; returns the counts, links and sums of posteriors.

    The chains are the first axis of counts, links, sums and uniform. taken: 1 if the probabilities are added to the
    sums, otherwise 0.
    """

    def of_chain(chain, sentences, taken, vocabulary, stage):  # type: ignore[no-untyped-def]
        counts, links, sums, uniform = jax.tree.map(lambda one: one[0], chain)
        new, probabilities = fertility.resampled(counts, sentences, links, uniform, vocabulary, stage, prior)
        for some, sign in ((links, -1), (new, 1)):
            counts = fertility.added(counts, fertility.changes(sentences, some, sign))
        return jax.tree.map(lambda one: one[None], (counts, new, sums + taken * probabilities))

    whole = PartitionSpec()
    return jax.shard_map(
        of_chain, mesh=mesh, in_specs=(CHAINS, whole, whole, whole, whole), out_specs=CHAINS, check_vma=False
    )((counts, links, sums, uniform), sentences, taken, vocabulary, stage)


def _arrays(batch: Batch, reverse: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if reverse:
        return batch.target, batch.source, np.ascontiguousarray(batch.pairs.swapaxes(1, 2))
    return batch.source, batch.target, batch.pairs


def _table_size(smallest: int) -> int:
    """Returns a power of two, so that compiled programs serve both directions and other texts."""
    return 1 << (smallest - 1).bit_length()


def _vocabulary(bitext: Bitext, reverse: bool) -> Vocabulary:
    sizes = len(bitext.source_words), len(bitext.target_words)
    partners = np.bincount(bitext.pair_words[reverse], minlength=_table_size(max(sizes)))
    return Vocabulary(jnp.float32(partners), jnp.float32(sizes[not reverse] - SPECIAL))
