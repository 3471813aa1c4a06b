"""ELMo from its workdir: the vectors of every layer for words in sentences, computed once and stored."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import pathlib
import zipfile
from collections.abc import Sequence
from typing import Any, BinaryIO

import flax.traverse_util
import jax
import jax.numpy as jnp
import numpy as np

from metrics_jax.embedding.forward import bucket
from nmt_jax.checkpoints.reading import load_params
from nmt_jax.data.batching.prediction import pack_by_length
from nmt_jax.data.prepared.cache import cached_file
from nmt_jax.data.vocabulary.word_types import WordTypes
from nmt_jax.errors import UserError
from nmt_jax.models.elmo import Model
from nmt_jax.pretrained.tokenizer import read_json

FORMAT = 1  # raise it whenever what lies in a stored file changes
BATCH_WORDS = 4096


@dataclasses.dataclass(frozen=True, eq=False)
class Elmo:
    """A trained bidirectional language model, as features are made with it."""

    model: Model
    params: dict[str, Any]

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the weights and of what no shape tells."""
        digest = hashlib.sha256(repr([self.model.max_characters, self.model.widths, self.model.dtype]).encode())
        flat = flax.traverse_util.flatten_dict(self.params, sep="/")
        for name in sorted(flat):
            if not name.startswith("output_"):  # the softmax has no part in the features
                digest.update(name.encode())
                digest.update(np.ascontiguousarray(flat[name], np.float32).data)
        return digest.hexdigest()

    @property
    def shape(self) -> tuple[int, int]:
        """Layers, those of the words themselves included, and the width of each."""
        return self.model.num_layers + 1, 2 * self.model.d_projection

    @functools.cached_property
    def _states(self) -> Any:
        """One compiled program a shape."""

        @jax.jit
        def states(params: Any, characters: jax.Array, mask: jax.Array) -> jax.Array:
            with jax.default_matmul_precision("highest" if self.model.dtype == "float32" else "default"):
                found = self.model.apply({"params": params}, characters.astype(jnp.int32), mask, method="states")
            return jnp.asarray(found)

        return states

    def features(self, sentences: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """Words of each sentence -> float32[L + 1, S, D], whatever stands beside it; ends of lines stand around it."""
        read = [WordTypes.read([[], words]) for words in sentences]
        lengths = [len(text.ids) for text in read]
        found: list[Any] = [None] * len(read)
        for numbers, shape in pack_by_length(lengths, BATCH_WORDS, 1, bucket):
            characters = np.zeros((shape.rows, shape.first, self.model.max_characters), np.int16)
            mask = np.zeros((shape.rows, shape.first), bool)
            for row, number in enumerate(numbers):
                text = read[number]
                characters[row, : lengths[number]] = text.characters(self.model.max_characters)[text.ids]
                mask[row, : lengths[number]] = True
            states = np.asarray(self._states(self.params, characters, mask))
            for row, number in enumerate(numbers):
                found[number] = states[:, row, 1 : lengths[number] - 1]
        return found


def load_elmo(workdir: str | os.PathLike[str], dtype: str = "float32", checkpoint: str | int | None = None) -> Elmo:
    """The model that a workdir of task "bidirectional_language_model" has trained.

    dtype: of the products, whatever it was trained in. checkpoint: "best", "last", or n for the mean of the last n;
    None is "best". UserError, one line, for a workdir of another task or without a checkpoint.
    """
    folder = pathlib.Path(workdir).expanduser().absolute()
    config = read_json(folder / "config.json")
    if config.get("task") != "bidirectional_language_model":
        raise UserError(
            f"{folder}: its task is {config.get('task')!r}: ELMo comes of 'bidirectional_language_model', as "
            "configs/elmo.py trains it"
        )
    params = jax.tree.map(np.asarray, load_params(folder, checkpoint or "best"))
    return Elmo(Model(vocab_size=len(params["output_bias"]), **{**config["model"], "dtype": dtype}), params)


def elmo_features(
    elmo: Elmo | str | os.PathLike[str],
    sentences: Sequence[Sequence[str]],
    cache: str | os.PathLike[str] | None = None,
) -> list[np.ndarray]:
    """Words of each sentence -> float32[L + 1, S, D], stored in the folder `cache` and found there the next time.

    elmo: a model or its workdir. The file is named by the weights and the sentences, and appears whole or not at all;
    without `cache` nothing is stored. UserError where a stored file is damaged or the disk is full.
    """
    elmo = elmo if isinstance(elmo, Elmo) else load_elmo(elmo)
    if cache is None:
        return elmo.features(sentences)

    def write(file: BinaryIO) -> None:
        features = [np.zeros((elmo.shape[0], 0, elmo.shape[1])), *elmo.features(sentences)]
        np.savez(file, features=np.concatenate(features, axis=1).astype(np.float32))

    key = [FORMAT, elmo.fingerprint, [list(words) for words in sentences]]
    path = cached_file(pathlib.Path(cache).expanduser(), "elmo", key, ".npz", write)
    lengths = [len(words) for words in sentences]
    try:
        with open(path, "rb") as file, np.load(file) as stored:
            whole = stored["features"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(f"{path}: damaged ({error}): remove it, and it is made again") from error
    return np.split(whole, np.cumsum(lengths)[:-1], axis=1) if lengths else []
