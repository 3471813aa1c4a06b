"""Sampling of the links of both directions, with the model of `fertility`, and the links that most samples agree on."""

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from nmt_jax.alignment import fertility
from nmt_jax.alignment.aligner import lexicon_rows
from nmt_jax.alignment.bitext import SPECIAL, Batch, Bitext, Sentence
from nmt_jax.alignment.fertility import Counts, Prior, Sentences, Stage, Vocabulary
from nmt_jax.alignment.links import Alignment
from nmt_jax.alignment.posteriors import Posteriors, alignments

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
        with the HMM come before, and the first quarter is not averaged. chains: independent samplers of each direction,
        of which each device draws one at a time. Equal seeds give equal links, whatever the number of devices.
        progress: returns batches, given them and their number.
        """
        self.bitext = Bitext(source, target)
        full = sweeps or default_sweeps(len(source))
        quarter = -(-full // 4)
        stages = [IBM1] * quarter + [HMM] * quarter + [FERTILITY] * full
        first_averaged = len(stages) - full + full // 4
        batches, devices = self.bitext.batches, mesh.devices.ravel().tolist()
        wanted = [Chain(reverse, chain) for reverse in (False, True) for chain in range(chains)]
        rounds = -(-len(wanted) // len(devices))
        at_once = -(-len(wanted) // rounds)
        sampling = _Sampling(self.bitext, devices[:at_once], seed, Prior(null_probability))
        total = rounds * len(stages) * len(batches)
        shown = iter(progress((batch for _ in range(total // len(batches)) for batch in batches), total))
        self.posteriors = [[np.zeros(batch.pairs.shape, np.float32) for batch in batches] for _ in (False, True)]
        for first in range(0, len(wanted), at_once):
            chosen = wanted[first : first + at_once]
            sampling.start(chosen)
            for sweep, stage in enumerate(stages):
                for number in range(len(batches)):
                    next(shown)
                    sampling.draw(sweep, number, stage, taken=sweep >= first_averaged)
                sampling.wait()
            for number, sums in enumerate(sampling.sums):
                for chain, one in zip(chosen, np.asarray(sums), strict=False):
                    self.posteriors[chain.reverse][number] += one
        for one in itertools.chain(*self.posteriors):
            one /= chains * (len(stages) - first_averaged)
        next(shown, None)  # ends the display

    def align_lines(self, first: int, number: int, method: str = "grow-diag-final-and") -> list[Alignment]:
        """Returns the alignment of each of the lines of the text from `first` on; it is empty if a sentence is.

        method: combines both directions, see `posteriors.alignments`.
        """
        aligned = [Alignment([], []) for _ in range(number)]
        for place, rows in self.bitext.places_of(first, number):
            both = (one[place][rows] for one in self.posteriors)
            forward, reverse = (Posteriors(links, 1 - links.sum(-1)) for links in both)
            lines = self.bitext.batches[place].lines[rows].tolist()
            for line, alignment in zip(lines, alignments(forward, reverse, method), strict=True):
                aligned[line - first] = alignment
        return aligned

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


class Chain(NamedTuple):
    """A sampler of one direction; number: of the chain, for its random numbers."""

    reverse: bool
    number: int


class _Sampling:
    """Chains that are drawn at the same time, one on each device, and exchange nothing.

    The first axis of all arrays is that of the devices. sums: for each batch float32[devices, B, T, S], of the
    probabilities of links.
    """

    def __init__(self, bitext: Bitext, devices: list[jax.Device], seed: int, prior: Prior):
        self._mesh = jax.make_mesh((len(devices),), ("chains",), axis_types=(AxisType.Auto,), devices=devices)
        self._split, self._devices = NamedSharding(self._mesh, CHAINS), len(devices)
        self._bitext, self._seed, self._prior = bitext, seed, prior
        self._table_size = _table_size(len(bitext.keys))
        self._vocabularies = [_vocabulary(bitext, reverse) for reverse in (False, True)]

    def start(self, chains: list[Chain]) -> None:
        """Begins these chains, at most one for each device, with no links."""
        # Devices without a chain repeat the first one, since all execute the same program.
        self._chains = chains + chains[:1] * (self._devices - len(chains))
        self._texts = [
            Sentences(*self._placed([batch.directed(chain.reverse) for chain in self._chains]))
            for batch in self._bitext.batches
        ]
        self._vocabulary = self._placed([self._vocabularies[chain.reverse] for chain in self._chains])
        counts = fertility.empty(self._table_size, self._vocabulary.partners.shape[1])
        self._counts = jax.tree.map(lambda table: self._of_each(table.shape, table.dtype, 0), counts)
        shapes = [batch.target.shape for batch in self._bitext.batches]
        self._links = [self._of_each(shape, jnp.int32, fertility.UNDRAWN) for shape in shapes]
        self.sums = [self._of_each(batch.pairs.shape, jnp.float32, 0) for batch in self._bitext.batches]

    def _placed(self, of_each: list[Any]) -> Any:
        """Returns the arrays of all devices, each on its own."""
        return jax.tree.map(lambda *arrays: jax.device_put(np.stack(arrays), self._split), *of_each)

    def _of_each(self, shape: tuple[int, ...], dtype: jnp.dtype, value: int) -> Array:
        return jnp.full((self._devices, *shape), value, dtype, device=self._split)

    def draw(self, sweep: int, number: int, stage: Stage, taken: bool) -> None:
        """Draws the links of a batch; taken: whether the probabilities are added to the sums."""
        text = self._texts[number]
        generators = [np.random.default_rng((self._seed, *chain, sweep, number)) for chain in self._chains]
        uniform = np.stack([generator.random(text.target.shape[1:], np.float32) for generator in generators])
        self._counts, self._links[number], self.sums[number] = _sweep(
            self._counts, self._links[number], self.sums[number], uniform, text, self._vocabulary,
            np.float32(taken), stage, prior=self._prior, mesh=self._mesh,
        )  # fmt: skip

    def wait(self) -> None:
        """Waits for the devices, so that few random numbers are in memory."""
        self._counts.null.block_until_ready()


@functools.partial(jax.jit, static_argnames=("prior", "mesh"), donate_argnums=(0, 1, 2))
def _sweep(
    counts: Counts,
    links: Array,
    sums: Array,
    uniform: Array,
    sentences: Sentences,
    vocabulary: Vocabulary,
    taken: Array,
    stage: Stage,
    *,
    prior: Prior,
    mesh: Mesh,
) -> tuple[Counts, Array, Array]:
    """Draws the links of a batch in each chain; returns the counts, links and sums of posteriors.

    The chains are the first axis of all arrays. taken: 1 if the probabilities are added to the sums, otherwise 0.
    """

    def of_chain(chain, taken, stage):  # type: ignore[no-untyped-def]
        counts, links, sums, uniform, sentences, vocabulary = jax.tree.map(lambda one: one[0], chain)
        new, probabilities = fertility.resampled(counts, sentences, links, uniform, vocabulary, stage, prior)
        for some, sign in ((links, -1), (new, 1)):
            counts = fertility.added(counts, fertility.changes(sentences, some, sign))
        return jax.tree.map(lambda one: one[None], (counts, new, sums + taken * probabilities))

    whole = PartitionSpec()
    return jax.shard_map(of_chain, mesh=mesh, in_specs=(CHAINS, whole, whole), out_specs=CHAINS, check_vma=False)(
        (counts, links, sums, uniform, sentences, vocabulary), taken, stage
    )


def _table_size(smallest: int) -> int:
    """Returns a power of two, so that compiled programs serve both directions and other texts."""
    return 1 << (smallest - 1).bit_length()


def _vocabulary(bitext: Bitext, reverse: bool) -> Vocabulary:
    sizes = len(bitext.source_words), len(bitext.target_words)
    partners = np.bincount(bitext.pair_words[reverse], minlength=_table_size(max(sizes)))
    return Vocabulary(jnp.float32(partners), jnp.float32(sizes[not reverse] - SPECIAL))
