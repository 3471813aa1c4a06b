"""Tagging with features that are made once and stored: static word vectors, the layers of ELMo."""

import functools
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from metrics_jax.embedding.forward import bucket
from metrics_jax.embedding.vectors import Vectors
from nmt_jax import config as configs
from nmt_jax.data.batching.batches import Shape
from nmt_jax.data.batching.encoder_rows import Field, Item, Rows
from nmt_jax.data.batching.epochs import Batch
from nmt_jax.data.batching.prediction import pack_by_length
from nmt_jax.data.prepared.cache import cache_directory
from nmt_jax.data.readers.tagged import open_tagged
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.losses.step import Step
from nmt_jax.models.registry import model_class
from nmt_jax.pretrained.elmo_features import Elmo, elmo_features, load_elmo
from nmt_jax.tasks.fine_tuning import saved
from nmt_jax.tasks.tag import Sentence, Tag


class Limits(NamedTuple):
    """How many words a row has at most; words have no segments."""

    max_length: int
    segments: bool = False


class FeatureRows(Rows):
    """`Rows` of words, and their features float32[B, S, …]; zero where there is no word."""

    def __init__(self, fields: dict[str, Field], shapes: dict[str, tuple[int, ...]]):
        super().__init__(fields, segments=False)
        self.shapes = shapes

    def arrays(self, items: Sequence[Item], shape: Shape) -> Batch:
        """-> ids, mask, the fields, and the features."""
        batch = super().arrays(items, shape)
        for name, own in self.shapes.items():
            batch[name] = np.zeros((shape.rows, shape.first, *own), np.float32)
            for row, item in enumerate(items):
                batch[name][row, : len(item[name])] = item[name]
        return batch


class FeatureTagger(Tag):
    """The tagging task (`tasks.Task`) of one workdir, over features instead of an encoder.

    data.vectors: a file of word vectors, looked up as a word is written and else in lower case; words that it lacks are
    zero. data.elmo: the workdir of a bidirectional language model. Both stay as they are. vocab.size: words have
    learned vectors, too, which those of one hash share (Weinberger et al., 2009).
    """

    _stored: Sequence[np.ndarray] = ()  # ELMo's features of the corpus that is being read

    # Features

    @functools.cached_property
    def _vectors(self) -> Vectors | None:
        if not self.config.data.vectors:
            return None
        try:
            return Vectors.load(self.config.data.vectors)
        except ValueError as error:
            raise UserError(f"config.data.vectors: {error}") from None

    @functools.cached_property
    def _elmo(self) -> Elmo | None:
        if not self.config.data.elmo:
            return None
        try:
            return load_elmo(self.config.data.elmo)
        except UserError as error:
            raise UserError(f"config.data.elmo: {error}") from None

    @functools.cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of each kind of feature what it has a word; UserError where they are not those that training began with."""
        if not (self._vectors or self._elmo or self.config.vocab.size):
            raise UserError(
                "config.data.vectors, config.data.elmo, config.vocab.size: give at least one of "
                "word vectors, ELMo, and a number of learned vectors"
            )
        places = {"vectors": self._vectors, "elmo": self._elmo}
        found = {name: feature.fingerprint for name, feature in places.items() if feature}
        began = saved(self.workdir / "vocab" / "features.json", lambda: found)
        for name in places:
            if began.get(name) != found.get(name):
                raise UserError(
                    f"config.data.{name}={self.config.data[name]!r}: not what this workdir began with: give that, or "
                    "take a new --workdir"
                )
        shapes: dict[str, tuple[int, ...]] = {}
        if self._vectors:
            shapes["vectors"] = self._vectors.matrix.shape[1:]
        if self._elmo:
            shapes["elmo"] = self._elmo.shape
            layers = self.config.model.layers
            if layers.isdecimal() and int(layers) >= self._elmo.shape[0]:
                raise UserError(
                    f"config.model.layers={layers}: ELMo has the layers 0 to {self._elmo.shape[0] - 1}, or mixture"
                )
        return shapes

    def _look_up(self, words: Sequence[str]) -> np.ndarray:
        """float32[S, Dx]."""
        assert self._vectors is not None
        exact, lower = self._vectors.rows(words), self._vectors.rows(map(str.lower, words))
        rows = np.where(exact >= 0, exact, lower)
        return np.where(rows[:, None] >= 0, self._vectors.matrix[rows], 0).astype(np.float32)

    @functools.lru_cache(maxsize=2)  # noqa: B019  a task lives as long as the program
    def _read(self, split: str) -> Any:
        """As `Tag`; ELMo's features of a corpus are stored, those of what is only predicted are not."""
        if self._elmo:
            words = [item.words for item in open_tagged(self.config.data, split)]
            self._stored = elmo_features(self._elmo, words, cache_directory(self.config.data))
        try:
            return super()._read(split)
        finally:
            self._stored = ()

    def _sentences(self, sentences: Sequence[Sequence[str]]) -> list[Sentence]:
        """Words -> rows of their features."""
        shapes, longest = self.shapes, self.reader.max_length
        elmo = self._stored or (self._elmo.features(sentences) if self._elmo else ())
        found = []
        for number, words in enumerate(sentences):
            whole: Item = {
                "ids": np.array([zlib.crc32(word.encode("utf-8", "replace")) for word in words], np.uint32)
                % max(self.config.vocab.size, 1)
            }
            if "vectors" in shapes:
                whole["vectors"] = self._look_up(words)
            if "elmo" in shapes:
                whole["elmo"] = elmo[number].swapaxes(0, 1)
            cuts = [slice(start, start + longest) for start in range(0, len(words), longest)]
            numbers = [np.arange(len(words))[cut] for cut in cuts]
            rows = [{name: array[cut] for name, array in whole.items()} for cut in cuts]
            found.append(Sentence(rows, [np.arange(len(own)) for own in numbers], numbers))
        return found

    def encoder_rows(self) -> list[tuple[str, str]]:
        """What the start table says of the features."""
        rows, shapes = [], self.shapes
        if "vectors" in shapes:
            rows.append(("word vectors", f"{self.config.data.vectors}: {shapes['vectors'][0]} numbers a word"))
        if "elmo" in shapes:
            layers, width = shapes["elmo"]
            read = "a mixture of all" if self.config.model.layers == "mixture" else f"layer {self.config.model.layers}"
            rows.append(("ELMo", f"{self.config.data.elmo}: {layers} layers of width {width}, read is {read}"))
        return rows

    # Learning and predicting

    @functools.cached_property
    def reader(self) -> Any:
        """The limits of a row."""
        if self.config.data.max_length < 1:
            raise UserError(f"config.data.max_length={self.config.data.max_length} must be at least 1")
        return Limits(self.config.data.max_length)

    @functools.cached_property
    def layout(self) -> FeatureRows:
        """How rows lie in a batch to train on."""
        return FeatureRows(dict(self.fields), self.shapes)

    @functools.cached_property
    def model(self) -> Any:
        """The linen module that `config.model_name` and `config.model` describe; its fields are the schema."""
        sizes = {"vocab_size": self.config.vocab.size, "num_outputs": len(self.tags)}
        return configs.build_model(model_class(self.config.model_name), self.config.model, **sizes)

    def _apply(self, params: Any, batch: dict[str, jax.Array], **options: Any) -> jax.Array:
        given = (batch["ids"], batch["mask"], batch.get("vectors"), batch.get("elmo"))
        return jnp.asarray(self.model.apply({"params": params}, *given, **options))

    def init(self, rng: jax.Array) -> Any:
        """-> parameters."""
        batch = self.dummy_batch((1, 1, 1))
        return self.model.init(rng, batch["ids"], batch["mask"], batch.get("vectors"), batch.get("elmo"))["params"]

    def warm_start(self, params: Any) -> Any:
        """The features are no parameters: all of these are learned."""
        return params

    def loss_fn(self, params: Any, batch: dict[str, jax.Array], step: Step | None) -> tuple[jax.Array, jax.Array]:
        """-> (sum, weight: the number of rows that are not of nothing)."""
        options: dict[str, Any] = {"train": True, "rngs": {"dropout": step.rng}} if step else {}
        weights = batch["mask"][:, 0].astype(jnp.float32)
        return jnp.sum(self.loss(self._apply(params, batch, **options), batch) * weights), jnp.sum(weights)

    @functools.cached_property
    def _outputs(self) -> Any:
        """One compiled program a shape."""
        return jax.jit(self._apply, out_shardings=sharding.replicated(self.local_mesh))

    def outputs(self, params: Any, items: Sequence[Item]) -> list[np.ndarray]:
        """Logits of the words of each item, float32[S, C]; items never see each other."""
        found: list[Any] = [None] * len(items)
        layout, lengths = FeatureRows({}, self.shapes), [len(item["ids"]) for item in items]
        data = self.local_mesh.shape["data"]
        for numbers, shape in pack_by_length(lengths, self.config.eval.batch_tokens, data, bucket):
            batch = layout.arrays([items[number] for number in numbers], shape)
            rows = np.asarray(self._outputs(params, sharding.shard_batch(batch, self.local_mesh)))
            for number, row in zip(numbers, rows, strict=False):
                found[number] = row[: lengths[number]]
        return found
