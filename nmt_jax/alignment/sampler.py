"""Sampling of the links of both directions, with the model of `fertility`, and the links that most samples agree on."""

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from nmt_jax.alignment import fertility, symmetrization
from nmt_jax.alignment.aligner import lexicon_rows
from nmt_jax.alignment.bitext import SPECIAL, Batch, Bitext, Sentence
from nmt_jax.alignment.fertility import Counts, Prior, Sentences, Stage, Vocabulary
from nmt_jax.alignment.links import Alignment

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
        Equal seeds give equal links. progress: returns batches, given them and their number.
        """
        self.bitext = Bitext(source, target, mesh.shape["data"])
        self._prior, self._mesh = Prior(null_probability), mesh
        full = sweeps or default_sweeps(len(source))
        quarter = -(-full // 4)
        self._stages = [IBM1] * quarter + [HMM] * quarter + [FERTILITY] * full
        self._first_averaged = len(self._stages) - full + full // 4
        batches = self.bitext.batches
        total = 2 * chains * len(self._stages) * len(batches)
        shown = iter(progress((batch for _ in range(total // len(batches)) for batch in batches), total))
        self.posteriors = [self._direction(reverse, chains, seed, shown) for reverse in (False, True)]
        next(shown, None)  # ends the display
        self._place = {
            line: (number, row) for number, batch in enumerate(batches) for row, line in enumerate(batch.lines.tolist())
        }

    def _direction(self, reverse: bool, chains: int, seed: int, shown: Iterator[Batch]) -> list[np.ndarray]:
        """Returns the mean posteriors of each batch."""
        split, whole = (NamedSharding(self._mesh, spec) for spec in (PartitionSpec("data"), PartitionSpec()))
        texts = [Sentences(*jax.device_put(_arrays(batch, reverse), split)) for batch in self.bitext.batches]
        vocabulary = jax.device_put(_vocabulary(self.bitext, reverse), whole)
        sums = [jnp.zeros(text.pairs.shape, device=split) for text in texts]
        for chain in range(chains):
            counts = fertility.empty(_table_size(len(self.bitext.keys)), len(vocabulary.partners))
            counts = jax.device_put(counts, whole)  # as they are after a sweep, or a second program would be compiled
            links = [jnp.full(text.target.shape, fertility.UNDRAWN, device=split) for text in texts]
            for sweep, stage in enumerate(self._stages):
                taken = np.float32(sweep >= self._first_averaged)
                for number, text in enumerate(texts):
                    next(shown)
                    random = np.random.default_rng((seed, reverse, chain, sweep, number))
                    uniform = random.random(text.target.shape, np.float32)
                    counts, links[number], sums[number] = _sweep(
                        counts, links[number], sums[number], text, uniform, taken, vocabulary, stage,
                        prior=self._prior, mesh=self._mesh,
                    )  # fmt: skip
                counts.null.block_until_ready()  # many collectives in flight can abort on simulated devices
        samples = chains * (len(self._stages) - self._first_averaged)
        return [np.asarray(total) / samples for total in sums]

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


@functools.partial(jax.jit, static_argnames=("prior", "mesh"), donate_argnums=(0, 1, 2))
def _sweep(
    counts: Counts,
    links: Array,
    sums: Array,
    sentences: Sentences,
    uniform: Array,
    taken: Array,
    vocabulary: Vocabulary,
    stage: Stage,
    *,
    prior: Prior,
    mesh: Mesh,
) -> tuple[Counts, Array, Array]:
    """Draws the links of a batch, whose rows are split over "data"; returns the counts, links and sums of posteriors.

    taken: 1 if the probabilities are added to the sums, otherwise 0.
    """

    def of_rows(counts, links, sums, sentences, uniform, taken, vocabulary, stage):  # type: ignore[no-untyped-def]
        new, probabilities = fertility.resampled(counts, sentences, links, uniform, vocabulary, stage, prior)
        removed, drawn = (fertility.changes(sentences, some, sign) for some, sign in ((links, -1), (new, 1)))
        changes = jax.tree.map(lambda *both: jnp.concatenate(both), removed, drawn)
        # What the rows of all devices change is gathered, instead of summing tables that are much larger.
        counts = fertility.added(counts, jax.lax.all_gather(changes, "data", tiled=True))
        return counts, new, sums + taken * probabilities

    split, whole = PartitionSpec("data"), PartitionSpec()
    return jax.shard_map(
        of_rows,
        mesh=mesh,
        in_specs=(whole, split, split, split, split, whole, whole, whole),
        out_specs=(whole, split, split),
        check_vma=False,
    )(counts, links, sums, sentences, uniform, taken, vocabulary, stage)


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
