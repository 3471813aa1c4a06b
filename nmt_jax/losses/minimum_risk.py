"""Minimum-risk training (Shen et al., 2016): the loss is the expected error of sampled translations under a metric.

Each step samples candidates, scores them on the host, and takes the gradient of their expected risk.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, PartitionSpec
from ml_collections import ConfigDict

from metrics_jax import load
from metrics_jax.api import AdditiveMetric
from metrics_jax.registry import needs
from nmt_jax import platforms
from nmt_jax.data.vocabulary.vocab import PAD
from nmt_jax.decoding.beam_search import SearchRequest
from nmt_jax.decoding.minimum_bayes_risk import PERCENT
from nmt_jax.decoding.sampling import Sampling
from nmt_jax.errors import UserError
from nmt_jax.losses import cross_entropy as losses
from nmt_jax.losses.step import Step
from nmt_jax.models.layers.features import Source, batch_source
from nmt_jax.translation.translator import Translator


@dataclasses.dataclass(frozen=True, eq=False)
class MinimumRisk:
    """The expected risk R = sum over lines of sum_y Q(y) (1 - metric(y, reference)) (Shen et al., 2016, eq. 8).

    translator: has one model, which is trained. settings: `config.loss.risk`. mesh: the training mesh. Raises UserError
    if the metric does not exist or needs more than text, or if the model copies words.
    """

    translator: Translator
    settings: ConfigDict
    mesh: Mesh

    def __post_init__(self) -> None:
        if self.translator.encoder.num_unknown:
            raise UserError("config.loss.risk: not supported for models with copying; set metric=''")
        _ = self.metric

    @functools.cached_property
    def metric(self) -> AdditiveMetric:
        """The metric; one of text alone, because the host must not run JAX during a step."""
        spec = self.settings.metric
        try:
            if missing := needs(spec):
                raise UserError(
                    f"config.loss.risk.metric={spec!r} needs {', '.join(missing)}, which is not available in training: "
                    "use a metric of text alone, such as chrf or bleu|effective_order:true"
                )
            metric = load(spec)
            if "sources" in metric.needs:
                raise UserError(
                    f"config.loss.risk.metric={spec!r} reads sources, which training does not pass: use another metric"
                )
        except ValueError as error:
            raise UserError(f"config.loss.risk.metric: {error}") from None
        if metric.fitted(["one text"]) is not metric:
            raise UserError(
                f"config.loss.risk.metric={spec!r} depends on statistics of a whole corpus, but a step has only a batch"
            )
        return metric

    def __call__(self, params: Any, batch: dict[str, Array], step: Step) -> tuple[Array, Array]:
        """Return (sum of the expected risk of each line times its target pieces, number of target pieces)."""
        drawing, dropout = jax.random.split(step.rng)
        drawn = self.draw(jax.lax.stop_gradient(params), batch, drawing)
        reference = jnp.pad(batch["target"], ((0, 0), (0, drawn.shape[2] - batch["target"].shape[1])))
        candidates = jnp.concatenate([reference[:, None], drawn], axis=1)
        weights = jnp.sum(batch["target"] != PAD, axis=1).astype(jnp.float32)
        return losses.minimum_risk(
            self.log_probs(params, batch_source(batch), candidates, dropout),
            self.risks(candidates),
            distinct(candidates),
            weights,
            self.settings.sharpness,
        )

    def draw(self, params: Any, batch: dict[str, Array], key: Array) -> Array:
        """Sample candidates of each line, without dropout: int32[B, N, T + decode.max_length_offset], PAD after EOS.

        Uses the sampler of translation. Candidates that reach the maximum length are cut off; it is shorter if the
        model has fewer positions.
        """
        source, target = batch_source(batch), batch["target"]
        offset = self.translator.config.decode.max_length_offset
        length = target.shape[1]
        max_length = max(length, min(length + offset, self.translator.max_length))
        limits = jnp.where(jnp.any(target != PAD, axis=1), max_length, 0)  # 0 for rows of padding
        sampling = Sampling(self.settings.num_samples, self.settings.temperature)
        seeds = jax.random.bits(key, (len(source),), jnp.uint32)
        drawn = self.translator.programs.search(
            (params,), source, SearchRequest(limits), seeds, method=sampling, max_length=max_length
        )
        return drawn[0]

    def log_probs(self, params: Any, source: Source, candidates: Array, key: Array) -> Array:
        """Log-probabilities, with dropout, of candidates int[B, N, T] -> float32[B, N], in nats."""
        count = candidates.shape[1]
        labels = candidates.reshape(-1, candidates.shape[2])
        model = self.translator.models[0]
        repeated = jax.tree.map(lambda leaf: jnp.repeat(leaf, count, axis=0), source)
        logits, out = model.apply({"params": params}, repeated, labels, train=True, rngs={"dropout": key})
        weights = (labels != PAD).astype(jnp.float32)
        if "output_kernel" in out:
            log_probs = losses.sequence_log_probs(out["hidden"], out["output_kernel"], labels, weights, model.dtype)
        else:
            log_probs = -jnp.sum(weights * losses.smoothed_cross_entropy(logits, labels, 0.0), axis=1)
        return log_probs.reshape(-1, count)

    def risks(self, candidates: Array) -> Array:
        """Risks of candidates int[B, N, T], the first of which is the reference -> float32[B, N]; 0 is the best.

        Each device calls the host for its own rows. Where that is omitted, a risk is the share of differing pieces.
        """
        if platforms.current().host == "omitted":
            return jnp.mean(candidates != candidates[:, :1], axis=2, dtype=jnp.float32)

        def score_on_host(rows: Array) -> Array:
            return jax.pure_callback(self.score, jax.ShapeDtypeStruct(rows.shape[:2], jnp.float32), rows)

        rows = PartitionSpec("data")
        return jax.shard_map(score_on_host, mesh=self.mesh, in_specs=rows, out_specs=rows)(candidates)

    def score(self, candidates: np.ndarray) -> np.ndarray:
        """`risks` on the host; equal texts of a line are scored once."""
        vocab = self.translator.vocabularies[1]
        texts = [[vocab.decode(ids) for ids in line] for line in np.asarray(candidates).tolist()]
        pairs = list(dict.fromkeys((text, line[0]) for line in texts for text in line))
        scores = np.asarray(self.metric(*map(list, zip(*pairs, strict=True))).segments)
        scores = scores / (100 if self.metric.name in PERCENT else 1)
        risks = dict(zip(pairs, 1 - scores if self.metric.higher_is_better else scores, strict=True))
        return np.array([[risks[text, line[0]] for text in line] for line in texts], np.float32)


def distinct(candidates: Array) -> Array:
    """Which candidates int[B, N, T] differ from all earlier ones of their line -> bool[B, N]."""
    same = jnp.all(candidates[:, :, None] == candidates[:, None], axis=-1)  # [B, N, N]
    return ~jnp.any(jnp.tril(same, -1), axis=-1)
