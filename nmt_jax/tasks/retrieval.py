"""Retrieval: a source and its target become vectors, and each is to be nearest to the other among all pairs."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from ml_collections import ConfigDict

from metrics_jax.embedding.lengths import bucket, pack_by_length
from metrics_jax.prediction.retrieval import median_rank, ranks, recall_at
from nmt_jax.checkpoints.finite import check_outputs
from nmt_jax.data.batching.epochs import Batch
from nmt_jax.data.readers import sources
from nmt_jax.data.readers.parallel_text import open_text
from nmt_jax.data.vocabulary.vocab import EOS, PAD
from nmt_jax.errors import UserError
from nmt_jax.losses.contrastive import equal_rows, info_nce
from nmt_jax.losses.step import Step
from nmt_jax.models.layers.features import batch_source
from nmt_jax.platforms import compiled
from nmt_jax.tasks.objectives import dropout_options
from nmt_jax.tasks.translate import PairTask

Side = Literal["source", "target"]
RECALLS = (1, 5, 10)


class Found(NamedTuple):
    """A candidate: its number, from 0, and its cosine with the query."""

    number: int
    cosine: float


class Retrieval(PairTask):
    """The retrieval task of one workdir: a dual encoder, trained with the other pairs of a batch as negatives.

    Pairs with the same text on a side are right for each other, in training and in evaluation.
    """

    measures = ("loss", *(f"recall_{k}" for k in RECALLS), "median_rank")
    unit = "pairs"
    next_command = "nmt-jax retrieve --workdir={workdir} --candidates=targets.txt < sources.txt > found.txt"

    def __init__(self, config: ConfigDict, workdir: Path, mesh: Mesh) -> None:
        super().__init__(config, workdir, mesh)
        if config.model_name != "dual_encoder":
            raise UserError(f"config.model_name={config.model_name!r}: task='retrieval' needs dual_encoder")
        if self.num_sources > 1:
            raise UserError(f"config.data.source={config.data.source!r}: task='retrieval' needs one source")

    def loss_fn(self, params: Any, batch: dict[str, jax.Array], step: Step | None) -> tuple[jax.Array, jax.Array]:
        """Symmetric InfoNCE over the global batch, or the micro-batch if `train.accumulate` is above 1."""
        source, target = batch_source(batch), batch["target"]
        first, second, scale = self.model.apply({"params": params}, source, target, **dropout_options(step))
        same = equal_rows(target)
        if self.reader.only_text:
            same |= equal_rows(batch["source"])
        return info_nce(first, second, scale, same, (target[:, 0] != PAD).astype(jnp.float32))

    def evaluate(self, params: Any) -> dict[str, float]:
        """Return `dev/loss` in nats, `dev/recall_1` … in percent and `dev/median_rank`, means over both directions.

        All are among the first `eval.max_pairs` development pairs.
        """
        pairs = itertools.islice(open_text(self.config.data, "dev"), self.config.eval.max_pairs)
        texts = [pair for pair in pairs if all(map(str.strip, pair))]
        if not texts:
            raise UserError("config.data.dev: no pair has text on both sides")
        sides: tuple[Side, Side] = ("source", "target")
        vectors = [
            self.vectors(params, column, side) for side, column in zip(sides, zip(*texts, strict=True), strict=True)
        ]
        numbers = [np.unique(column, return_inverse=True)[1] for column in zip(*texts, strict=True)]
        same = np.logical_or.reduce([side[:, None] == side[None, :] for side in numbers])
        cosines = vectors[0] @ vectors[1].T
        found = [ranks(cosines, same), ranks(cosines.T, same)]
        loss, weight = self._contrast(params, *vectors, same)
        recalls = {f"dev/recall_{k}": 100 * float(np.mean([recall_at(one, k) for one in found])) for k in RECALLS}
        return {
            "dev/loss": float(loss / weight),
            **recalls,
            "dev/median_rank": float(np.mean([median_rank(one) for one in found])),
        }

    @compiled()
    def _contrast(self, params: Any, first: jax.Array, second: jax.Array, same: jax.Array) -> Any:
        """The loss with all pairs as candidates."""
        scale = self.model.apply({"params": params}, method="scale")
        return info_nce(first, second, scale, same, jnp.ones(len(first)))

    # Vectors of lines

    def vectors(self, params: Any, lines: Sequence[str], side: Side) -> np.ndarray:
        """Return vectors of length 1 of lines on a side, float32[N, d_output], each whatever the others.

        A source that is not text is the path of its file. Long lines are cut to `data.max_length`; an empty one has the
        vector 0.
        """
        items = [self._encoded(line, side) for line in lines]
        filled = [number for number, item in enumerate(items) if lines[number].strip() and len(item)]
        found = np.zeros((len(items), self.model.d_output), np.float32)
        program = self._source_vectors if side == "source" else self._target_vectors
        lengths = [len(items[number]) for number in filled]
        longest = self.config.data.max_length
        # A single row would be a vector, whose products are rounded differently than those of matrices.
        tokens, multiple_of = self.config.eval.batch_tokens, 2 * self.evaluator.row_shards
        for chosen, rows, length in pack_by_length(lengths, tokens, multiple_of, lambda n: bucket(n, longest)):
            numbers = [filled[index] for index in chosen]
            batch = self._side_batch([items[number] for number in numbers], side, (rows, length))
            outputs = self.evaluator.run(program, params, batch)[: len(numbers)]
            check_outputs(outputs)
            found[numbers] = outputs
        return found

    def _encoded(self, line: str, side: Side) -> Any:
        """Ids with EOS, or the features of a source that is not text, at most `data.max_length`."""
        longest = self.config.data.max_length
        vocab = self.vocabularies[side == "target"]
        if side == "source" and not self.reader.only_text:
            return self.reader.features(self.reader.read(line, vocab.encode))[:longest]
        return [*vocab.encode(line)[: longest - 1], EOS]

    def _side_batch(self, items: Sequence[Any], side: Side, shape: tuple[int, int]) -> Batch:
        if side == "source":
            return self.layout.sources(items, shape)
        return {"target": sources.fill(items, shape, 1)}

    @compiled()
    def _source_vectors(self, params: Any, batch: Batch) -> jax.Array:
        return self.model.apply({"params": params}, batch_source(batch), method="encode_source")

    @compiled()
    def _target_vectors(self, params: Any, batch: Batch) -> jax.Array:
        return self.model.apply({"params": params}, batch["target"], method="encode_target")

    def nearest(self, queries: np.ndarray, candidates: np.ndarray, count: int) -> list[list[Found]]:
        """Return the nearest candidates of each query, best first; of equal ones, the first in the file comes first.

        queries: vectors float32[N, d_output], candidates: float32[M, d_output]. An empty query has none, and an empty
        candidate is not found.
        """
        numbers = np.flatnonzero(candidates.any(axis=1))
        filled = candidates[numbers]
        found: list[list[Found]] = []
        for query in queries:
            cosines = filled @ query
            best = np.argsort(-cosines, kind="stable")[: count if query.any() else 0]
            found.append([Found(int(numbers[one]), float(cosines[one])) for one in best])
        return found
