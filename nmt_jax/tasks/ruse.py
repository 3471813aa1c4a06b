"""Training of the metric RUSE (Shimanaka et al., 2018): a regressor from sentence vectors to human scores.

The sentence encoders are not trained: each text is encoded once, and the regressor is trained on the vectors. The
workdir holds the encoders, in vocab/encoder_0 …, so it is all that the metric needs.
"""

import dataclasses
import functools
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
from nmt_jax import pretrained
from nmt_jax.data.batching.batches import Batches, Shape
from nmt_jax.data.batching.epochs import Batch
from nmt_jax.data.readers.labelled import Labelled, ScoreScaler, open_labelled
from nmt_jax.errors import UserError
from nmt_jax.losses.step import Step
from nmt_jax.models.layers.bert_stack import Bert
from nmt_jax.platforms import compiled
from nmt_jax.pretrained.learned_metrics import read_encoders
from nmt_jax.pretrained.tokenizer import Tokenizer
from nmt_jax.progress import track
from nmt_jax.storage.files import whole_folder
from nmt_jax.tasks.fine_tuning import SIZES
from nmt_jax.tasks.objectives import dropout_options
from nmt_jax.tasks.task import Task
from nmt_jax.tasks.vocab_files import load_or_make

RANDOM_LENGTH = 128  # tokens that a randomly initialised encoder reads


@dataclasses.dataclass(eq=False)
class Features:
    """A corpus of pairs: their features float32[N, F] and scores float32[N]; every item has length 1."""

    name: str
    features: np.ndarray
    targets: np.ndarray
    max_length: int = 1

    @property
    def lengths(self) -> np.ndarray:
        """Lengths of the items, int32[N, 2]."""
        return np.ones((len(self), 2), np.int32)

    def __len__(self) -> int:
        return len(self.targets)

    def __getitems__(self, indices: np.ndarray) -> list[tuple[np.ndarray, np.float32]]:
        """Features and score of the items with these numbers."""
        return [(self.features[index], self.targets[index]) for index in indices]


class PairRows:
    """The arrays of a batch: "features" float32[B, F], "target" float32[B], "mask" bool[B], False in padding."""

    longest = "pairs"
    remedy = "the number of pairs"

    def __init__(self, width: int):
        self.width = width

    def budget(self, one: Any, other: Any) -> Any:
        """Number of pairs."""
        return one * other

    cost = budget

    def arrays(self, items: Sequence[tuple[np.ndarray, np.float32]], shape: Shape) -> Batch:
        features, target = np.zeros((shape.rows, self.width), np.float32), np.zeros(shape.rows, np.float32)
        for row, item in enumerate(items):
            features[row], target[row] = item
        return {"features": features, "target": target, "mask": np.arange(shape.rows) < len(items)}

    def tokens(self, corpus: Any) -> dict[str, int]:
        """None: vectors have no padding."""
        return {}

    def places(self, one: Any, other: Any) -> dict[str, Any]:
        """See `tokens`."""
        return {}


class Ruse(Task):
    """The task of one workdir: predict the score of a translation from the vectors of it and its reference.

    Scores are learned in standard deviations from the mean of their column.
    """

    measures = ("loss", "pearson", "spearman")
    unit = "pairs"
    next_command = "nmt-jax score --metrics=ruse --ruse={workdir} HYPOTHESIS --reference=FILE"

    def __init__(self, config: ConfigDict, workdir: Path, mesh: Mesh) -> None:
        super().__init__(config, workdir, mesh)
        if len(config.data.texts) != 2:
            raise UserError(f"config.data.texts={list(config.data.texts)}: name two columns, the reference first")
        if "," in config.data.label:
            raise UserError(f"config.data.label={config.data.label!r}: RUSE learns one column of scores")

    # Encoders

    @functools.cached_property
    def encoders(self) -> tuple[Encoder, ...]:
        """The workdir's encoders: copied from `config.encoders.places` at the first start, or one random encoder."""
        for number, place in enumerate(list(self.config.encoders.places) or [""]):
            folder = self.workdir / "vocab" / f"encoder_{number}"
            if folder.is_dir():
                continue
            try:
                encoder = pretrained.load(place) if place else self._random_encoder()
            except UserError as error:
                raise UserError(f"config.encoders.places: {error}") from None
            try:
                with whole_folder(folder) as unfinished:
                    pretrained.save(encoder, unfinished)
            except OSError:
                if not folder.is_dir():  # otherwise another process was faster
                    raise
        return read_encoders(self.workdir)

    def _random_encoder(self) -> pretrained.Pretrained:
        """A randomly initialised encoder, a baseline for pretrained ones."""
        texts = (text for item in open_labelled(self.config.data, "train") for text in item.sentences)
        tokenizer = Tokenizer.train(texts, size=self.config.vocab.size)
        sizes = {name: self.config.encoders[name] for name in SIZES}
        model = Bert(vocab_size=len(tokenizer), max_positions=RANDOM_LENGTH, **sizes)
        ids = np.zeros((1, 1), np.int32)
        params = jax.jit(model.init)(jax.random.key(self.config.seed), ids, ids == 0)["params"]
        return pretrained.Pretrained("bert", model, jax.tree.map(np.asarray, params), tokenizer, RANDOM_LENGTH)

    @functools.cached_property
    def width(self) -> int:
        """Number of features of a pair."""
        width = sum(shape_of_states(encoder.embed)[1] for encoder in self.encoders)
        return 4 * width * len(self.config.encoders.layers)

    def stand_in(self) -> None:
        settings = self.config.encoders
        widths = [pretrained.load(place).model.d_model for place in settings.places] or [settings.d_model]
        self._assume(width=4 * sum(widths) * len(settings.layers))

    def row_lengths(self, share: float) -> tuple[int, ...]:
        return 1, 1

    # Pairs

    @functools.cached_property
    def scales(self) -> ScoreScaler:
        """The origin and unit of each column of scores, saved in the workdir."""
        path = self.workdir / "vocab" / "scales.json"
        return ScoreScaler(load_or_make(path, lambda: dict(ScoreScaler.fit(self._pairs("train")).columns)))

    def _pairs(self, split: str) -> Iterator[Labelled]:
        for item in open_labelled(self.config.data, split):
            if len(item.sentences) != 2:
                found = f"{len(item.sentences)} texts"
                raise UserError(f"{item.location}: expected a reference and a translation, not {found}")
            yield item

    @functools.lru_cache(maxsize=2)  # noqa: B019  a task lives as long as the program
    def corpus(self, split: str) -> Features:
        """The pairs of a split."""
        name = open_labelled(self.config.data, split).name
        items = list(track(self._pairs(split), f"reading {name}"))
        if not items:
            raise UserError(f"{name}: no texts")
        targets = np.array([self.scales.scaled(item)[0] for item in items], np.float32)
        normalize, layers = self.config.encoders.normalize, tuple(self.config.encoders.layers)
        texts = [item.sentences[side] for side in (0, 1) for item in items]
        try:
            vectors = [
                ruse.sentence_vectors(encoder, texts, normalize=normalize, states=layers)[0]
                for encoder in self.encoders
            ]
        except ValueError as error:
            raise UserError(f"config.encoders.layers={list(layers)}: {error}") from None
        features = ruse.features([v[: len(items)] for v in vectors], [v[len(items) :] for v in vectors])
        return Features(name, features, targets)

    def summary(self) -> list[tuple[str, str]]:
        places = ", ".join(self.config.encoders.places) or "one, randomly initialised"
        train, dev = self.corpus("train"), self.corpus("dev")
        return [
            ("sentence encoders", f"{places}: {self.width} features per pair"),
            ("training pairs", f"{train.name}: {len(train):,}"),
            ("development pairs", f"{dev.name}: {len(dev):,}"),
            ("scores", f"{self.scales}, y learned"),
        ]

    # Training

    def batches(self, steps: int) -> Batches:
        _ = self.corpus("dev")  # errors in it are reported now, not at the first evaluation
        # `train.batch_tokens` counts pairs.
        return self._train_batches(self.corpus("train"), steps, PairRows(self.width), num_buckets=1)

    def dummy_batch(self, shape: tuple[int, ...]) -> Batch:
        """A batch of shape (rows, 1, 1)."""
        batch = PairRows(self.width).arrays([], Shape(*shape))
        return {**batch, "mask": np.ones_like(batch["mask"])}

    def init(self, rng: jax.Array) -> Any:
        return self.model.init(rng, jnp.zeros((1, self.width)))["params"]

    def loss_fn(self, params: Any, batch: Mapping[str, jax.Array], step: Step | None) -> tuple[jax.Array, jax.Array]:
        """Squared errors over the variance of the scores: (sum, number of pairs)."""
        outputs = self.model.apply({"params": params}, batch["features"], **dropout_options(step))
        weights = batch["mask"].astype(jnp.float32)
        return jnp.sum(jnp.square(outputs[:, 0] - batch["target"]) * weights), jnp.sum(weights)

    @compiled()
    def _predict(self, params: Any, features: jax.Array) -> jax.Array:
        return self.model.apply({"params": params}, features)

    def evaluate(self, params: Any) -> dict[str, float]:
        """Return `dev/loss` (squared errors over the variance), `dev/pearson` and `dev/spearman` in percent."""
        dev = self.corpus("dev")
        padding = -len(dev) % self.evaluator.row_shards
        features = np.pad(dev.features, ((0, padding), (0, 0)))
        predicted = self.evaluator.run(self._predict, params, features)[: len(dev), 0]
        return {
            "dev/loss": float(np.mean((predicted - dev.targets) ** 2)),
            "dev/pearson": 100 * float(pearson(predicted, dev.targets, undefined=0.0)),
            "dev/spearman": 100 * float(spearman(predicted, dev.targets, undefined=0.0)),
        }
