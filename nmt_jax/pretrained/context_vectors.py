"""Vectors of words in context for Sentence Mover's Similarity: from an encoder with pieces, or from ELMo."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from metrics_jax.embedding.context_mover import ContextVectors
from metrics_jax.embedding.encoder import encode
from metrics_jax.embedding.forward import combined, layer_numbers
from nmt_jax.pretrained.bert_encoder import make_encoder
from nmt_jax.pretrained.elmo_features import load_elmo
from nmt_jax.pretrained.loading import find_folder, load
from nmt_jax.pretrained.model_files import read_json

ELMO = "bidirectional_language_model"


def load_context_vectors(
    place: str | os.PathLike[str], dtype: str = "float32", download: bool = False, revision: str = "main"
) -> ContextVectors:
    """An encoder, as `load` reads it, or the workdir of an ELMo. Arguments and errors as for `load`.

    The vector of a word of several pieces is their mean. Texts that are too long are read in windows.
    """
    folder = find_folder(place, download, revision)
    if (folder / "checkpoints").is_dir() and read_json(folder / "config.json").get("task") == ELMO:
        return _of_elmo(folder, dtype)
    pretrained = load(folder, dtype)
    encoder, tokenizer = make_encoder(pretrained), pretrained.tokenizer.with_space()

    def read(lines: Sequence[Sequence[str]], layers: tuple[int, ...], combine: str) -> list[np.ndarray]:
        texts = [" ".join(words) for words in lines]
        encoded = encode(encoder, texts, layers, combine=combine, normalize=False, long="window")
        found = []
        for number, (words, of_piece) in enumerate(zip(lines, tokenizer.word_numbers(texts), strict=True)):
            vectors = np.zeros((len(words), encoded.vectors.shape[1]))
            counts = np.bincount(of_piece[of_piece >= 0], minlength=len(words))
            np.add.at(vectors, of_piece[of_piece >= 0], encoded[number][0][of_piece >= 0])
            found.append(vectors / np.maximum(counts, 1)[:, None])
        return found

    return ContextVectors(read, encoder.fingerprint, encoder.dtype)


def _of_elmo(workdir: os.PathLike[str], dtype: str) -> ContextVectors:
    elmo = load_elmo(workdir, dtype)

    def read(lines: Sequence[Sequence[str]], layers: tuple[int, ...], combine: str) -> list[np.ndarray]:
        chosen = list(layer_numbers(layers, elmo.shape[0]))
        return [np.asarray(combined([*states[chosen]], combine=combine)) for states in elmo.features(lines)]

    return ContextVectors(read, elmo.fingerprint, dtype)
