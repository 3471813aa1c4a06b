"""InfoLM (Colombo, Clavel and Piantanida, 2022): how different two texts are to a masked language model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np

from metrics_jax.api import check_sequences
from metrics_jax.embedding.contextual import IdfMode, WeightedMetric
from metrics_jax.embedding.encoder import progress, tokenized, truncated
from metrics_jax.embedding.idf import Idf
from metrics_jax.embedding.information import check_parameters, measured
from metrics_jax.embedding.lengths import bucket

if TYPE_CHECKING:
    from jax import Array

Measure = Literal[
    "kl_divergence",
    "alpha_divergence",
    "beta_divergence",
    "ab_divergence",
    "renyi_divergence",
    "l1_distance",
    "l2_distance",
    "l_infinity_distance",
    "fisher_rao_distance",
]
SPAN = 64  # pairs whose distributions are in memory together


@dataclasses.dataclass(frozen=True, eq=False)
class MaskedEncoder:
    """The interface between InfoLM and a masked language model; any functions with these signatures will do.

    tokenize: as that of `Encoder`. logits: ids int[B, S], mask bool[B, S] (False: padding), positions int[B] -> logits
    of the piece at each position, float32[B, V], in JAX; a `jax.tree_util.Partial` whose arguments are the weights.
    mask_id: the id of the piece that hides another. max_length: of a row, in tokens. fingerprint: SHA-256 of everything
    that changes the numbers. dtype: of the matrix products.
    """

    tokenize: Callable[[Sequence[str]], tuple[np.ndarray, np.ndarray, np.ndarray]]
    logits: Callable[[Array, Array, Array], Array]
    mask_id: int
    max_length: int
    fingerprint: str
    dtype: str = ""


@dataclasses.dataclass(frozen=True)
class InfoLM(WeightedMetric):
    """A measure between the distributions that a masked language model sees in two texts; 0 and up, lower is better.

    Each token of a text is hidden in turn, and the model predicts a distribution over its vocabulary for this place;
    that of the text is their mean, weighted by idf (section 3.1). The measure compares that of the reference, p, with
    that of the hypothesis, q (table 1); for its parameters see `information`. torchmetrics returns the Kullback-Leibler
    and alpha divergences with the opposite sign. Special tokens have no weight. A text without tokens has the uniform
    distribution. Of several references, the best counts. The corpus score is the mean over segments.

    temperature: of the softmax. hypothesis_idf: weights of the hypothesis's tokens; None means the same as idf. The
    published programs count them in all hypotheses, see `Idf.fit`. idf, long: see `WeightedMetric`.
    """

    encoder: MaskedEncoder
    information_measure: Measure = "kl_divergence"
    alpha: float | None = None
    beta: float | None = None
    temperature: float = 0.25
    idf: Idf | IdfMode = "references"
    hypothesis_idf: Idf | None = None
    long: Literal["truncate", "error"] = "truncate"

    name: ClassVar[str] = "infolm"
    higher_is_better: ClassVar[bool] = False
    columns: ClassVar[tuple[str, ...]] = ("infolm",)
    long_options: ClassVar[tuple[str, ...]] = ("truncate", "error")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_parameters(self.information_measure, self.alpha, self.beta)
        if not 0.01 <= self.temperature <= 100:
            raise ValueError(f"temperature={self.temperature}: must be at least 0.01 and at most 100")

    def score_pairs(self, hypotheses: Sequence[str], references: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        scores, long = np.zeros(len(hypotheses)), np.zeros(len(hypotheses), bool)
        order = np.argsort([len(text) for text in references], kind="stable")  # equal references are often adjacent
        with progress("scoring", len(order)) as advance:
            for span in np.split(order, range(SPAN, len(order), SPAN)):
                q, p = self._both_sides([hypotheses[k] for k in span], [references[k] for k in span])
                scores[span] = self._measured(p.table[p.rows], q.table[q.rows])
                long[span] = p.long[p.rows] | q.long[q.rows]
                advance(len(span))
        return scores[:, None], long

    def pairwise(self, hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
        """The score of every hypothesis against every single reference, float[H, R]."""
        check_sequences(hypotheses, references)
        if not hypotheses or not references:
            return np.zeros((len(hypotheses), len(references)))
        sides = ([text.strip() for text in texts] for texts in (hypotheses, references))
        q, p = self.fitted(references)._both_sides(*sides)
        return np.stack([self._measured(p.table, one) for one in q.table])[q.rows][:, p.rows]

    def _both_sides(self, hypotheses: Sequence[str], references: Sequence[str]) -> tuple[Distributions, Distributions]:
        """The distributions of the hypotheses and of the references."""
        idf = self.idf if isinstance(self.idf, Idf) else None
        return self._distributions(hypotheses, self.hypothesis_weights), self._distributions(references, idf)

    def _measured(self, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        parameters = check_parameters(self.information_measure, self.alpha, self.beta)
        return measured(self.information_measure, p, q, **parameters)

    def _distributions(self, texts: Sequence[str], idf: Idf | None) -> Distributions:
        """The distributions of texts; each distinct one is read once.

        Raises ValueError if one is not finite, and with long="error" for a text that is too long.
        """
        number = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        read = [*tokenized(self.encoder, [*number])]
        kept = [truncated(*tokens, self.encoder.max_length) for tokens in read]
        long = np.array([len(ids) > self.encoder.max_length for ids, _ in read], bool)
        if self.long == "error" and long.any():
            count, most = len(read[int(long.argmax())][0]), self.encoder.max_length
            raise ValueError(f'a text has {count} tokens, but the encoder reads at most {most}: choose long="truncate"')
        lengths = [len(ids) for ids, _ in kept]
        ids, words = np.zeros((len(kept), max(lengths)), np.int32), np.zeros((len(kept), max(lengths)), bool)
        for row, (one, special) in enumerate(kept):
            ids[row, : len(one)], words[row, : len(one)] = one, ~special
        weights = idf.weights(ids, words) if idf else words.astype(np.float64)
        table = _mean_distributions(self.encoder, [one for one, _ in kept], weights, self.temperature)
        if not np.isfinite(table).all():
            raise ValueError("a probability is NaN or infinity: the weights of the model are damaged")
        return Distributions(table, long, np.array([number[text] for text in texts], int))


class Distributions(NamedTuple):
    """Those of M distinct texts, float64[M, V], whether each text was truncated, bool[M]; rows int[N] of N texts."""

    table: np.ndarray
    long: np.ndarray
    rows: np.ndarray


def _mean_distributions(
    model: MaskedEncoder, rows: Sequence[np.ndarray], weights: np.ndarray, temperature: float
) -> np.ndarray:
    """The weighted means float64[N, V] of what the model predicts for each token of N texts.

    A text is a row int[S] of ids with weights float64[N, S]; tokens without weight are not predicted. All batches of a
    length have the same number of rows, since another one could change the last bits of a row.
    """
    import jax

    from metrics_jax.embedding import devices, platforms

    mesh = devices.local_mesh()
    placed, logits = devices.by_rows(mesh), devices.put_weights(model.logits, mesh)
    size = platforms.batch_tokens(devices.platform())[-1]
    one_row = jax.ShapeDtypeStruct((1, 8), np.int32)
    shape = jax.eval_shape(model.logits, one_row, one_row, jax.ShapeDtypeStruct((1,), np.int32)).shape
    means = np.zeros((len(rows), shape[-1]))
    alike: dict[int, list[tuple[int, int]]] = {}  # the places of texts, by padded length
    for text, place in np.argwhere(weights).tolist():
        alike.setdefault(bucket(len(rows[text]), model.max_length), []).append((text, place))
    batches: list[tuple[int, int, list[tuple[int, int]]]] = []
    for length, places in alike.items():
        height = mesh.size * max(size // length, 1)
        batches += [(length, height, places[first : first + height]) for first in range(0, len(places), height)]

    def start(batch: tuple[int, int, list[tuple[int, int]]]) -> Any:
        length, height, places = batch
        ids, mask = np.zeros((height, length), np.int32), np.zeros((height, length), bool)
        mask[:, 0], positions = True, np.zeros(height, np.int32)  # a row of padding only could have undefined states
        for row, (text, place) in enumerate(places):
            ids[row, : len(rows[text])], mask[row, : len(rows[text])] = rows[text], True
            ids[row, place], positions[row] = model.mask_id, place
        return logits(*devices.put((ids, mask, positions), placed))

    for (_, _, places), predicted in devices.overlapped(start, batches):
        scaled = predicted[: len(places)].astype(np.float64) / temperature  # float32 would underflow
        likely = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
        likely /= likely.sum(axis=-1, keepdims=True)
        for (text, place), one in zip(places, likely, strict=True):
            means[text] += weights[text, place] * one
    totals = weights.sum(axis=1, keepdims=True)
    return np.where(totals > 0, means / np.where(totals > 0, totals, 1), 1 / means.shape[1])
