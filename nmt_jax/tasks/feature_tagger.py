"""Tagging over features that are not trained: static word vectors and the layers of ELMo."""

import functools
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from metrics_jax.embedding.lengths import bucket
from metrics_jax.embedding.vectors import Vectors
from nmt_jax.data.batching.batches import Shape
from nmt_jax.data.batching.encoder_rows import Field, Item, RowLayout, RowLimits
from nmt_jax.data.batching.epochs import Batch
from nmt_jax.data.prepared.cache import cache_directory
from nmt_jax.data.readers.tagged import open_tagged
from nmt_jax.errors import UserError
from nmt_jax.pretrained.elmo_features import Elmo, elmo_features, load_elmo
from nmt_jax.tasks.tag import TAGS, Sentence, Tag
from nmt_jax.tasks.vocab_files import load_or_make, load_vectors


class FeatureRows(RowLayout):
    """`Rows` of words with their features, float32[B, S, …], which are zero in padding."""

    def __init__(self, fields: Mapping[str, Field], shapes: Mapping[str, tuple[int, ...]]):
        super().__init__(fields, segments=False)
        self.shapes = shapes

    def arrays(self, items: Sequence[Item], shape: Shape) -> Batch:
        """Return ids, mask, the fields, and the features."""
        batch = super().arrays(items, shape)
        for name, feature_shape in self.shapes.items():
            batch[name] = np.zeros((shape.rows, shape.first, *feature_shape), np.float32)
            for row, item in enumerate(items):
                batch[name][row, : len(item[name])] = item[name]
        return batch


class FeatureTagger(Tag):
    """The tagging task of one workdir, over features instead of an encoder.

    data.vectors: file of word vectors; a word is looked up as written, then in lower case, and is zero if missing.
    data.elmo: workdir of a bidirectional language model. Neither is trained. vocab.size: number of learned word
    vectors; words with the same hash share one (Weinberger et al., 2009).
    """

    _stored: Sequence[np.ndarray] = ()  # ELMo features of the corpus that is being read

    # Features

    @functools.cached_property
    def _vectors(self) -> Vectors | None:
        return load_vectors(self.config.data) if self.config.data.vectors else None

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
        """The shape of each kind of feature of a word.

        Raises UserError if there are no features, or if they differ from those that training started with.
        """
        self._check_features()
        sources = {"vectors": self._vectors, "elmo": self._elmo}
        fingerprints = {name: source.fingerprint for name, source in sources.items() if source}
        saved = load_or_make(self.workdir / "vocab" / "features.json", lambda: fingerprints)
        for name in sources:
            if saved.get(name) != fingerprints.get(name):
                raise UserError(
                    f"config.data.{name}={self.config.data[name]!r}: this workdir was started with something else; use "
                    "that, or a new --workdir"
                )
        shapes: dict[str, tuple[int, ...]] = {}
        if self._vectors:
            shapes["vectors"] = self._vectors.matrix.shape[1:]
        if self._elmo:
            shapes["elmo"] = self._elmo.shape
            layers = self.config.model.layers
            if layers.isdecimal() and int(layers) >= self._elmo.shape[0]:
                raise UserError(
                    f"config.model.layers={layers}: use mixture, or a layer of ELMo, 0 to {self._elmo.shape[0] - 1}"
                )
        return shapes

    def _check_features(self) -> None:
        """Raise UserError if there are no features."""
        if not (self.config.data.vectors or self.config.data.elmo or self.config.vocab.size):
            raise UserError(
                "config.data.vectors, config.data.elmo, config.vocab.size: set at least one of word vectors, ELMo, and "
                "the number of learned vectors"
            )

    def _look_up(self, words: Sequence[str]) -> np.ndarray:
        """The vectors of words, float32[S, Dx]."""
        assert self._vectors is not None
        exact, lower = self._vectors.rows(words), self._vectors.rows(map(str.lower, words))
        rows = np.where(exact >= 0, exact, lower)
        return np.where(rows[:, None] >= 0, self._vectors.matrix[rows], 0).astype(np.float32)

    @functools.lru_cache(maxsize=2)  # noqa: B019  a task lives as long as the program
    def _read(self, split: str) -> Any:
        """As in `Tag`. ELMo features of a corpus are cached on disk; those of text to tag are not."""
        if self._elmo:
            words = [item.words for item in open_tagged(self.config.data, split)]
            self._stored = elmo_features(self._elmo, words, cache_directory(self.config.data))
        try:
            return super()._read(split)
        finally:
            self._stored = ()

    def _sentences(self, sentences: Sequence[Sequence[str]]) -> list[Sentence]:
        """Words as rows of their features."""
        shapes, longest = self.shapes, self.reader.max_length
        elmo = self._stored or (self._elmo.features(sentences) if self._elmo else ())
        encoded = []
        for number, words in enumerate(sentences):
            hashes = np.array([zlib.crc32(word.encode("utf-8", "replace")) for word in words], np.uint32)
            whole: Item = {"ids": hashes % max(self.config.vocab.size, 1)}
            if "vectors" in shapes:
                whole["vectors"] = self._look_up(words)
            if "elmo" in shapes:
                whole["elmo"] = elmo[number].swapaxes(0, 1)
            numbers = [np.arange(len(words))[start : start + longest] for start in range(0, len(words), longest)]
            rows = [{name: array[part] for name, array in whole.items()} for part in numbers]
            encoded.append(Sentence(rows, [np.arange(len(part)) for part in numbers], numbers))
        return encoded

    def encoder_rows(self) -> list[tuple[str, str]]:
        rows, shapes, data = [], self.shapes, self.config.data
        if "vectors" in shapes:
            rows.append(("word vectors", f"{data.vectors}: width {shapes['vectors'][0]}"))
        if "elmo" in shapes:
            layers, width = shapes["elmo"]
            used = self.config.model.layers
            used = "a mixture of all layers" if used == "mixture" else f"layer {used}"
            rows.append(("ELMo", f"{data.elmo}: {layers} layers of width {width}; the tagger reads {used}"))
        return rows

    # Model and batches

    @functools.cached_property
    def reader(self) -> Any:
        """The limits of a row."""
        return RowLimits(self.config.data.max_length)

    def model_sizes(self) -> dict[str, Any]:
        return {"vocab_size": self.config.vocab.size, "num_outputs": len(self.tags)}

    def stand_in(self) -> None:
        """Vectors have width 300, and ELMo has the published size."""
        self._check_features()
        shapes = {"vectors": (300,), "elmo": (3, 1024)}
        self._assume(shapes={name: shape for name, shape in shapes.items() if self.config.data[name]}, tags=TAGS)

    def warm_start(self, params: Any) -> Any:
        return params  # there is no encoder

    def _layout(self, fields: Mapping[str, Field]) -> FeatureRows:
        return FeatureRows(fields, self.shapes)

    def _inputs(self, batch: Mapping[str, Any]) -> tuple[Any, ...]:
        return batch["ids"], batch["mask"], batch.get("vectors"), batch.get("elmo")

    def _padded_length(self, length: int) -> int:
        return bucket(length)
