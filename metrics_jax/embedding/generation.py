"""Metrics by the probability that a trained encoder-decoder gives to one text after another: BARTScore and Prism."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from metrics_jax.api import References, flatten, pair
from metrics_jax.embedding.comet import QualityEstimate, TextRow, check_long
from metrics_jax.embedding.contextual import LearnedMetric
from metrics_jax.embedding.encoder import progress
from metrics_jax.embedding.lengths import bucket

if TYPE_CHECKING:
    from jax import Array


@dataclasses.dataclass(frozen=True, eq=False)
class Generator:
    """The interface between these metrics and a trained encoder-decoder; functions with these signatures will do.

    read: texts -> rows as the encoder reads them, of at most `max_length` pieces. write: the same as the decoder writes
    them. log_probs: sources int[B, S], mask bool[B, S] (False: padding), targets int[B, T] -> log p of each target
    piece after the source and the earlier pieces, float32[B, T], in JAX; a `jax.tree_util.Partial` whose arguments are
    the weights. fingerprint: SHA-256 of everything that changes the numbers. dtype: of the matrix products.
    """

    read: Callable[[Sequence[str]], list[TextRow]]
    write: Callable[[Sequence[str]], list[TextRow]]
    log_probs: Callable[[Array, Array, Array], Array]
    max_length: int
    fingerprint: str
    dtype: str = ""


def mean_log_probs(
    generator: Generator, sources: Sequence[str], targets: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """The mean of log p over the pieces of P targets, each after its source, float64[P].

    Returns also the number of pieces of the longer text of each pair before truncation, int[P]. Equal pairs are
    computed once. Raises ValueError if a value is not finite.
    """
    pairs = list(dict.fromkeys(zip(sources, targets, strict=True)))
    read, written = generator.read([one for one, _ in pairs]), generator.write([other for _, other in pairs])
    found = np.zeros(len(pairs))
    longest = generator.max_length
    # Both texts of a pair have one length, since each pair of lengths would be a compilation.
    lengths = [bucket(max(len(s.ids), len(t.ids)), longest) for s, t in zip(read, written, strict=True)]
    order = sorted(range(len(pairs)), key=lambda number: -lengths[number])
    with progress("scoring", len(pairs)) as advance:
        for length, alike in itertools.groupby(order, key=lambda number: lengths[number]):
            for chosen, values in _log_probs(generator.log_probs, read, written, [*alike], length):
                for number, row in zip(chosen, values, strict=False):
                    found[number] = row[: len(written[number].ids)].astype(np.float64).mean()
                advance(len(chosen))
    if not np.isfinite(found).all():
        raise ValueError("a probability is NaN or infinity: the weights of the model are damaged")
    rows = {both: number for number, both in enumerate(pairs)}
    at = [rows[both] for both in zip(sources, targets, strict=True)]
    num_pieces = np.array([max(s.num_pieces, t.num_pieces) for s, t in zip(read, written, strict=True)], int)
    return found[at], num_pieces[at]


def _log_probs(
    log_probs: Any, read: Sequence[TextRow], written: Sequence[TextRow], numbers: Sequence[int], length: int
) -> Iterator[tuple[Sequence[int], np.ndarray]]:
    """Yield the numbers of pairs of one padded length, batch by batch, and their log-probabilities float32[B, T].

    All batches have the same number of rows, since another one could change the last bits of a row.
    """
    from metrics_jax.embedding import devices, platforms

    mesh = devices.local_mesh()
    size = platforms.batch_tokens(devices.platform())[-1]
    height = mesh.size * max(size // length, 1)
    placed, weights = devices.by_rows(mesh), devices.put_weights(log_probs, mesh)

    def start(chosen: Sequence[int]) -> Any:
        sources, targets = (np.zeros((height, length), np.int32) for _ in range(2))
        mask = np.zeros((height, length), bool)
        mask[:, 0] = True  # a row of padding only could have undefined states
        for row, number in enumerate(chosen):
            sources[row, : len(read[number].ids)] = read[number].ids
            mask[row, : len(read[number].ids)] = True
            targets[row, : len(written[number].ids)] = written[number].ids
        return weights(*devices.put((sources, mask, targets), placed))

    batches = (numbers[first : first + height] for first in range(0, len(numbers), height))
    return devices.overlapped(start, batches)


class GenerationMetric(LearnedMetric):
    """Base class: the mean log-probability per piece, in nats, of one text after the other.

    direction: "precision" is log p(hypothesis | reference), "recall" log p(reference | hypothesis), "f" their mean.
    """

    estimator: Generator
    direction: str

    long_options: ClassVar[tuple[str, str]] = ("truncate", "error")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.direction not in ("precision", "recall", "f"):
            raise ValueError(f"direction={self.direction!r}: choose precision, recall or f")

    def statistics(self, hypotheses: Sequence[str], references: References) -> np.ndarray:
        """Returns float64[N, 3]: the score, whether a text was truncated, 1."""
        texts, owner = flatten(hypotheses, references)
        candidates, others = pair(texts, owner)
        forward, backward = (others, candidates), (candidates, others)
        chosen = {"precision": [forward], "recall": [backward], "f": [forward, backward]}[self.direction]
        found = [mean_log_probs(self.estimator, *sides) for sides in chosen]
        longest = np.maximum.reduce([num_pieces for _, num_pieces in found])
        cut = check_long(self.long, longest, owner, self.estimator.max_length)
        return self.segment_statistics(np.mean([scores for scores, _ in found], axis=0), cut, owner)


@dataclasses.dataclass(frozen=True)
class BARTScore(GenerationMetric):
    """The mean log-probability per piece that BART gives to a text after another (Yuan et al., 2021); at most 0.

    direction: "precision" is log p(hypothesis | reference), "recall" log p(reference | hypothesis), "f" their mean
    (section 3.2). Special pieces count, as in the published program. The corpus score is the mean over segments.
    Several references and long texts as for BLEURT.
    """

    estimator: Generator
    direction: Literal["precision", "recall", "f"] = "f"
    multi_reference: Literal["max", "mean"] = "max"
    long: Literal["truncate", "error"] = "truncate"

    name: ClassVar[str] = "bartscore"


@dataclasses.dataclass(frozen=True)
class BARTScoreSource(QualityEstimate):
    """log p(hypothesis | source) per piece, without a reference: the "faithfulness" of BARTScore, for summaries."""

    estimator: Generator
    long: Literal["truncate", "error"] = "truncate"

    name: ClassVar[str] = "bartscore_source"

    def estimates(self, hypotheses: Sequence[str], sources: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        return mean_log_probs(self.estimator, sources, hypotheses)


@dataclasses.dataclass(frozen=True)
class Prism(GenerationMetric):
    """The mean log-probability per piece that a translation model gives to a text after another; at most 0.

    Thompson and Post (2020): a multilingual model is a paraphraser if it translates into the language it reads. "f" is
    the mean of both directions (section 3), the metric of the paper.
    """

    estimator: Generator
    direction: Literal["precision", "recall", "f"] = "f"
    multi_reference: Literal["max", "mean"] = "max"
    long: Literal["truncate", "error"] = "truncate"

    name: ClassVar[str] = "prism"
