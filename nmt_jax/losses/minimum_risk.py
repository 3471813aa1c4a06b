"""Minimum-risk training (Shen et al., 2016): what a metric thinks of the model's own translations, as a loss.

A step draws candidates, scores them by the metric on the host, and makes the good ones more probable.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from ml_collections import ConfigDict

from metrics_jax import parse
from metrics_jax.api import AdditiveMetric
from metrics_jax.registry import needs
from nmt_jax.data.vocabulary.vocab import PAD
from nmt_jax.decoding.beam_search import SearchRequest
from nmt_jax.decoding.minimum_bayes_risk import PERCENT
from nmt_jax.decoding.sampling import Sampling
from nmt_jax.errors import UserError
from nmt_jax.losses import cross_entropy as losses
from nmt_jax.losses.step import Step
from nmt_jax.translation.translator import Translator

Array = jax.Array


@dataclasses.dataclass(frozen=True, eq=False)
class MinimumRisk:
    """The expected risk of what the one model of `translator` says, as `settings` has it: `config.loss.risk`.

    mesh: that of the training.
    UserError for a metric that does not exist or needs more than text, and for settings out of their range.
    """

    translator: Translator
    settings: ConfigDict
    mesh: Mesh

    def __post_init__(self) -> None:
        settings, where = self.settings, "config.loss.risk"
        if settings.num_samples < 1:
            raise UserError(f"{where}.num_samples={settings.num_samples}: at least 1")
        if not 0 < settings.temperature < float("inf"):
            raise UserError(f"{where}.temperature={settings.temperature} must be above 0")
        if not 0 < settings.sharpness < float("inf"):
            raise UserError(f"{where}.sharpness={settings.sharpness} must be above 0")
        if not 0 < settings.share <= 1:
            raise UserError(f"{where}.share={settings.share} must be above 0 and at most 1; metric='' is none of it")
        if self.translator.num_unknown:
            raise UserError(f"{where}: candidates of a copying model cannot be read here; set its metric to ''")
        _ = self.metric

    @functools.cached_property
    def metric(self) -> AdditiveMetric:
        """What candidates are scored by: one that reads text alone, since the host may run no JAX during a step."""
        spec = self.settings.metric
        try:
            if missing := needs(spec):
                raise UserError(
                    f"config.loss.risk.metric={spec!r} needs {', '.join(missing)}, which a training step does not "
                    "have: take a metric of text alone, such as chrf or bleu|effective_order:true"
                )
            metric = parse(spec)
        except ValueError as error:
            raise UserError(f"config.loss.risk.metric: {error}") from None
        if metric.fitted(["one text"]) is not metric:
            raise UserError(
                f"config.loss.risk.metric={spec!r} learns from a whole corpus: a step has a few lines of it"
            )
        return metric

    def __call__(self, params: Any, batch: dict[str, Array], step: Step) -> tuple[Array, Array]:
        """-> (sum over target pieces of the expected risk of their line, number of target pieces), 0 the best."""
        drawing, dropout = jax.random.split(step.rng)
        drawn = self.draw(jax.lax.stop_gradient(params), batch, drawing)
        reference = jnp.pad(batch["target"], ((0, 0), (0, drawn.shape[2] - batch["target"].shape[1])))
        candidates = jnp.concatenate([reference[:, None], drawn], axis=1)
        weights = jnp.sum(batch["target"] != PAD, axis=1).astype(jnp.float32)
        return losses.minimum_risk(
            self.log_probs(params, batch["source"], candidates, dropout),
            self.risks(candidates),
            distinct(candidates),
            weights,
            self.settings.sharpness,
        )

    def draw(self, params: Any, batch: dict[str, Array], key: Array) -> Array:
        """Candidates of each line -> int32[B, N, T + decode.max_length_offset], PAD after EOS; without dropout.

        The sampler is the one that translates. A candidate that has no end by then is taken as it is.
        """
        source, target = batch["source"], batch["target"]
        max_length = target.shape[1] + self.translator.config.decode.max_length_offset
        limits = jnp.where(jnp.any(target != PAD, axis=1), max_length, 0)  # nothing is said of a row of padding
        sampling = Sampling(self.settings.num_samples, self.settings.temperature)
        seeds = jax.random.bits(key, (len(source),), jnp.uint32)
        drawn = self.translator.programs.decode(
            (params,), source, SearchRequest(limits), seeds, method=sampling, max_length=max_length
        )
        return drawn[0]

    def log_probs(self, params: Any, source: Array, candidates: Array, key: Array) -> Array:
        """What the model, with dropout, thinks of candidates int[B, N, T] -> float32[B, N], in nats."""
        count = candidates.shape[1]
        labels = candidates.reshape(-1, candidates.shape[2])
        model = self.translator.models[0]
        logits, out = model.apply(
            {"params": params}, jnp.repeat(source, count, axis=0), labels, train=True, rngs={"dropout": key}
        )
        weights = (labels != PAD).astype(jnp.float32)
        if "output_kernel" in out:
            found = losses.sequence_log_probs(out["hidden"], out["output_kernel"], labels, weights, model.dtype)
        else:
            found = -jnp.sum(weights * losses.smoothed_cross_entropy(logits, labels, 0.0), axis=1)
        return found.reshape(-1, count)

    def risks(self, candidates: Array) -> Array:
        """What candidates int[B, N, T] cost, of which the first is the reference -> float32[B, N], 0 the best.

        Every device asks the host about its own rows.
        """

        def ask(rows: Array) -> Array:
            return jax.pure_callback(self.score, jax.ShapeDtypeStruct(rows.shape[:2], jnp.float32), rows)

        rows = PartitionSpec("data")
        return jax.shard_map(ask, mesh=self.mesh, in_specs=rows, out_specs=rows)(candidates)

    def score(self, candidates: np.ndarray) -> np.ndarray:
        """`risks` on the host; a text that comes twice in a line is scored once."""
        vocab = self.translator.vocabularies[1]
        texts = [[vocab.decode(ids) for ids in line] for line in np.asarray(candidates).tolist()]
        pairs = list(dict.fromkeys((text, line[0]) for line in texts for text in line))
        scores = np.asarray(self.metric(*map(list, zip(*pairs, strict=True))).segments)
        scores = scores / (100 if self.metric.name in PERCENT else 1)
        risks = dict(zip(pairs, 1 - scores if self.metric.higher_is_better else scores, strict=True))
        return np.array([[risks[text, line[0]] for text in line] for line in texts], np.float32)


def distinct(candidates: Array) -> Array:
    """Which candidates int[B, N, T] of a line are not the same, piece by piece, as one before them -> bool[B, N]."""
    same = jnp.all(candidates[:, :, None] == candidates[:, None], axis=-1)  # [B, N, N]
    return ~jnp.any(jnp.tril(same, -1), axis=-1)
