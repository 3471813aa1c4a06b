"""RUSE (Shimanaka et al., 2018): a regressor over the vectors of two sentences learns what people said of the second.

The encoders of sentences learn nothing: each text is read once, and only its vector is trained on. A workdir holds the
encoders, in vocab/encoder_0 …, so it is all that the metric needs.
"""

import dataclasses
import functools
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from ml_collections import ConfigDict

from metrics_jax.embedding import ruse
from metrics_jax.embedding.encoder import Encoder
from metrics_jax.embedding.forward import shape_of_states
from metrics_jax.prediction.correlation import pearson, spearman
from nmt_jax import config as configs
from nmt_jax import pretrained
from nmt_jax.data.batching.batches import Batches, Shape
from nmt_jax.data.batching.epochs import Batch
from nmt_jax.data.readers.labelled import Labelled, open_labelled
from nmt_jax.data.readers.score_scaler import ScoreScaler
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.losses.step import Step
from nmt_jax.models.layers.bert_stack import Bert
from nmt_jax.models.mlp import Model
from nmt_jax.pretrained.ruse_regressor import read_encoders
from nmt_jax.pretrained.tokenizer import Tokenizer
from nmt_jax.progress import track
from nmt_jax.tasks.fine_tuning import SIZES, saved

SPLITS = (("train", "training"), ("dev", "development"))
RANDOM_LENGTH = 128  # pieces that an encoder which stays random reads


@dataclasses.dataclass(eq=False)
class Features:
    """Pairs as random access: float32[N, F] and their scores float32[N]; every item has length 1."""

    name: str
    features: np.ndarray
    targets: np.ndarray
    max_length: int = 1

    @property
    def lengths(self) -> np.ndarray:
        """int32[N, 2]."""
        return np.ones((len(self), 2), np.int32)

    def __len__(self) -> int:
        return len(self.targets)

    def __getitems__(self, indices: np.ndarray) -> list[tuple[np.ndarray, np.float32]]:
        """The features and the score of those numbers."""
        return [(self.features[index], self.targets[index]) for index in indices]


class Layout:
    """Pairs in rows: "features" float32[B, F], "target" float32[B], "mask" bool[B], False in a row of nothing."""

    longest = "pairs"
    remedy = "the number of pairs"

    def __init__(self, width: int):
        self.width = width

    def budget(self, one: Any, other: Any) -> Any:
        """Pairs."""
        return one * other

    cost = budget

    def arrays(self, items: Sequence[tuple[np.ndarray, np.float32]], shape: Shape) -> Batch:
        """-> the three."""
        batch: Batch = {
            "features": np.zeros((shape.rows, self.width), np.float32),
            "target": np.zeros(shape.rows, np.float32),
            "mask": np.arange(shape.rows) < len(items),
        }
        for row, (features, target) in enumerate(items):
            batch["features"][row], batch["target"][row] = features, target
        return batch


class Ruse:
    """The task (`tasks.Task`) of one workdir: the score of a pair, from the vectors of reference and translation.

    Scores are learned in standard deviations from their mean, each column's its own.
    """

    measures = ("loss", "pearson", "spearman")
    unit = "pairs"
    next_command = "nmt-jax score --metrics=ruse --ruse={workdir} HYPOTHESIS --reference=FILE"

    def __init__(self, config: ConfigDict, workdir: Path, mesh: Mesh) -> None:
        self.config = config
        self.workdir = Path(workdir)
        self.mesh = mesh
        if len(config.data.texts) != 2:
            raise UserError(f"config.data.texts={list(config.data.texts)}: name two columns, the reference first")
        if "," in config.data.label:
            raise UserError(f"config.data.label={config.data.label!r}: RUSE learns one column of scores")

    # The encoders

    @functools.cached_property
    def encoders(self) -> tuple[Encoder, ...]:
        """The workdir's; at the first start those of `config.encoders.places` are copied there, or one is drawn."""
        places = list(self.config.encoders.places)
        for number, place in enumerate(places or [""]):
            folder = self.workdir / "vocab" / f"encoder_{number}"
            if folder.is_dir():
                continue
            unfinished = folder.with_name(f".{folder.name}.{os.getpid()}")  # processes may write at the same time
            try:
                found = pretrained.load(place) if place else self._random()
            except UserError as error:
                raise UserError(f"config.encoders.places: {error}") from None
            pretrained.save(found, unfinished)
            if not folder.is_dir():
                unfinished.replace(folder)
            shutil.rmtree(unfinished, ignore_errors=True)
        return read_encoders(self.workdir)

    def _random(self) -> pretrained.Pretrained:
        """An encoder that stays as it was drawn: what vectors of sentences are worth without any training."""
        texts = (text for item in open_labelled(self.config.data, "train") for text in item.sentences)
        tokenizer = Tokenizer.train(texts, size=self.config.vocab.size)
        sizes = {name: self.config.encoders[name] for name in SIZES}
        model = Bert(vocab_size=len(tokenizer), max_positions=RANDOM_LENGTH, **sizes)
        ids = np.zeros((1, 1), np.int32)
        params = jax.jit(model.init)(jax.random.key(self.config.seed), ids, ids == 0)["params"]
        return pretrained.Pretrained("bert", model, jax.tree.map(np.asarray, params), tokenizer, RANDOM_LENGTH)

    @functools.cached_property
    def width(self) -> int:
        """Features of a pair."""
        width = sum(shape_of_states(encoder.embed)[1] for encoder in self.encoders)
        return 4 * width * len(self.config.encoders.layers)

    # Pairs

    @functools.cached_property
    def scales(self) -> ScoreScaler:
        """The workdir's origin and unit of each column of scores."""

        def make() -> dict[str, Sequence[float]]:
            return dict(ScoreScaler.fit(self._pairs("train")).columns)

        return ScoreScaler(saved(self.workdir / "vocab" / "scales.json", make))

    def _pairs(self, split: str) -> Iterator[Labelled]:
        for item in open_labelled(self.config.data, split):
            if len(item.sentences) != 2:
                raise UserError(f"{item.location}: {len(item.sentences)} texts; a reference and a translation are read")
            yield item

    @functools.lru_cache(maxsize=2)  # noqa: B019  a task lives as long as the program
    def corpus(self, split: str) -> Features:
        """The pairs of a split."""
        name = open_labelled(self.config.data, split).name
        items = list(track(self._pairs(split), f"reading {name}"))
        if not items:
            raise UserError(f"{name}: no text is left to learn from")
        targets = np.array([self.scales.scaled(item)[0] for item in items], np.float32)
        sides = [[item.sentences[side] for item in items] for side in (0, 1)]
        settings, both = self.config.encoders, [*sides[0], *sides[1]]
        how: dict[str, Any] = {"normalize": settings.normalize, "states": tuple(settings.layers)}
        try:
            vectors = [ruse.sentence_vectors(encoder, both, **how)[0] for encoder in self.encoders]
        except ValueError as error:
            raise UserError(f"config.encoders.layers={list(settings.layers)}: {error}") from None
        features = ruse.features([v[: len(items)] for v in vectors], [v[len(items) :] for v in vectors])
        return Features(name, features, targets)

    def summary(self) -> list[tuple[str, str]]:
        """Rows for the start table: encoders, corpora, scores."""
        places = ", ".join(self.config.encoders.places) or "one that stays random"
        return [
            ("encoders of sentences", f"{places}: {self.width} features of a pair"),
            *((f"{what} pairs", f"{self.corpus(split).name}: {len(self.corpus(split)):,}") for split, what in SPLITS),
            ("scores", f"{self.scales}, y learned"),
        ]

    # Training

    @functools.cached_property
    def model(self) -> Any:
        """The regressor that `config.model` describes."""
        return configs.build_model(Model, self.config.model)

    def batches(self, steps: int) -> Batches:
        """The training batches of `steps` steps; `train.batch_tokens` counts pairs."""
        _ = self.corpus("dev")  # a mistake in it is told now, not at the first evaluation
        return Batches(
            self.corpus("train"),
            batch_tokens=self.config.train.batch_tokens,
            num_buckets=1,
            share=sharding.share(self.mesh, self.config.train.accumulate),
            seed=self.config.seed,
            steps=steps,
            layout=Layout(self.width),
        )

    def dummy_batch(self, shape: tuple[int, ...]) -> Batch:
        """(rows, 1, 1) -> a full batch."""
        batch = Layout(self.width).arrays([], Shape(*shape))
        return {**batch, "mask": np.ones_like(batch["mask"])}

    def init(self, rng: jax.Array) -> Any:
        """-> parameters."""
        return self.model.init(rng, jnp.zeros((1, self.width)))["params"]

    def warm_start(self, params: Any) -> Any:
        """All of them are learned here."""
        return params

    def loss_fn(self, params: Any, batch: Mapping[str, jax.Array], step: Step | None) -> tuple[jax.Array, jax.Array]:
        """Squared errors in units of the scores' variance -> (sum, weight: pairs)."""
        options = {"train": True, "rngs": {"dropout": step.rng}} if step else {}
        outputs = self.model.apply({"params": params}, batch["features"], **options)
        weights = batch["mask"].astype(jnp.float32)
        return jnp.sum(jnp.square(outputs[:, 0] - batch["target"]) * weights), jnp.sum(weights)

    def evaluate(self, params: Any) -> dict[str, float]:
        """-> `dev/loss` (squared errors in units of the variance), `dev/pearson` and `dev/spearman` in percent."""
        dev = self.corpus("dev")
        found = np.asarray(jax.jit(self.model.apply)({"params": params}, dev.features))[:, 0]
        return {
            "dev/loss": float(np.mean((found - dev.targets) ** 2)),
            "dev/pearson": 100 * float(pearson(found, dev.targets, undefined=0.0)),
            "dev/spearman": 100 * float(spearman(found, dev.targets, undefined=0.0)),
        }
