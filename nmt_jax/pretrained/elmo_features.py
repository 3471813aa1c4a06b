"""ELMo features: the vectors of every layer for the words of sentences, computed once and cached."""

from __future__ import annotations

import dataclasses
import functools
import os
import pathlib
import zipfile
from collections.abc import Sequence
from typing import Any, BinaryIO

import jax
import jax.numpy as jnp
import numpy as np

from metrics_jax.embedding.lengths import pack_by_length
from nmt_jax.data.prepared.cache import cached_file
from nmt_jax.data.vocabulary.word_types import WordTypes
from nmt_jax.errors import UserError
from nmt_jax.models.elmo import Model
from nmt_jax.pretrained.loading import read_run, trained_params
from nmt_jax.pretrained.reproducibility import exact_products, fingerprint

FORMAT = 1  # increase it when the content of cached files changes
BATCH_WORDS = 4096


@dataclasses.dataclass(frozen=True, eq=False)
class Elmo:
    """A trained bidirectional language model that computes features."""

    model: Model
    params: dict[str, Any]

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the weights without the softmax layer, and of the settings that no parameter shape reveals."""
        settings = repr([self.model.max_characters, self.model.widths, self.model.dtype]).encode()
        return fingerprint(settings, self.params, excluded="output_")

    @property
    def shape(self) -> tuple[int, int]:
        """The number of layers, including the word layer, and their width."""
        return self.model.num_layers + 1, 2 * self.model.d_projection

    @functools.cached_property
    def _states(self) -> Any:
        """The compiled forward pass."""

        @jax.jit
        def states(params: Any, characters: jax.Array, mask: jax.Array) -> jax.Array:
            with exact_products(self.model.dtype):
                found = self.model.apply({"params": params}, characters.astype(jnp.int32), mask, method="states")
            return jnp.asarray(found)

        return states

    def features(self, sentences: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """Features float32[L + 1, S, D] of each sentence, independent of the others; sentences are single lines."""
        read = [WordTypes.read([[], words]) for words in sentences]
        lengths = [len(text.ids) for text in read]
        found: list[Any] = [None] * len(read)
        for numbers, *shape in pack_by_length(lengths, BATCH_WORDS):
            characters = np.zeros((*shape, self.model.max_characters), np.int16)
            mask = np.zeros(shape, bool)
            for row, number in enumerate(numbers):
                text = read[number]
                characters[row, : lengths[number]] = text.characters(self.model.max_characters)[text.ids]
                mask[row, : lengths[number]] = True
            states = np.asarray(self._states(self.params, characters, mask))
            for row, number in enumerate(numbers):
                found[number] = states[:, row, 1 : lengths[number] - 1]
        return found


def load_elmo(workdir: str | os.PathLike[str], dtype: str = "float32", checkpoint: str | int | None = None) -> Elmo:
    """The trained model of a workdir of task "bidirectional_language_model".

    dtype: of the matrix products, independent of training. checkpoint: "best" (also None), "last", or n for the mean of
    the last n. Raises UserError if the workdir has another task or no checkpoint.
    """
    task = "bidirectional_language_model"
    folder, config = read_run(workdir, [task], f"ELMo features need {task!r}, as configs/elmo.py trains it")
    params = trained_params(folder, checkpoint)
    return Elmo(Model(vocab_size=len(params["output_bias"]), **{**config["model"], "dtype": dtype}), params)


def elmo_features(
    elmo: Elmo | str | os.PathLike[str], sentences: Sequence[Sequence[str]], cache: str | os.PathLike[str] | None = None
) -> list[np.ndarray]:
    """Features float32[L + 1, S, D] of sentences given as words, kept in the folder `cache` for the next call.

    elmo: a model or its workdir. The cached file is named by a hash of the weights and the sentences and is written
    atomically. Without `cache`, nothing is stored. Raises UserError if a cached file is damaged or cannot be written.
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
        raise UserError(f"{path}: damaged ({error}): delete it, and it will be computed again") from error
    return np.split(whole, np.cumsum(lengths)[:-1], axis=1) if lengths else []
