"""Vectors of words in context: from an encoder with pieces, from ELMo, or from the encoder of a translation model.

The vectors of a translation model are the CoVe of McCann et al. (2017).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from metrics_jax.embedding.context_mover import ContextVectors
from metrics_jax.embedding.encoder import encode
from metrics_jax.embedding.forward import combined, layer_numbers
from metrics_jax.embedding.lengths import pack_by_length
from nmt_jax.data.vocabulary.vocab import EOS, Vocab
from nmt_jax.pretrained.bert_encoder import make_encoder
from nmt_jax.pretrained.elmo_features import load_elmo
from nmt_jax.pretrained.loading import find_folder, load
from nmt_jax.pretrained.model_files import read_json
from nmt_jax.pretrained.reproducibility import exact_products
from nmt_jax.pretrained.translation_models import load_translation_model

BATCH_TOKENS = 4096


def load_context_vectors(
    place: str | os.PathLike[str], dtype: str = "float32", download: bool = False, revision: str = "main"
) -> ContextVectors:
    """An encoder, as `load` reads it, or a workdir of an ELMo or a translation model. Arguments and errors as `load`.

    The vector of a word of several pieces is their mean. Texts that are too long are read in windows. A translation
    model has one layer: the states that its decoder attends to.
    """
    folder = find_folder(place, download, revision)
    task = read_json(folder / "config.json").get("task") if (folder / "checkpoints").is_dir() else None
    if task == "bidirectional_language_model":
        return _of_elmo(folder, dtype)
    if task == "translate":
        return _of_translation_model(folder, dtype)
    pretrained = load(folder, dtype)
    encoder, tokenizer = make_encoder(pretrained), pretrained.tokenizer.with_space()

    def read(lines: Sequence[Sequence[str]], layers: tuple[int, ...], combine: str) -> list[np.ndarray]:
        texts = [" ".join(words) for words in lines]
        encoded = encode(encoder, texts, layers, combine=combine, normalize=False, long="window")
        numbers = tokenizer.word_numbers(texts)
        return [_means(encoded[row][0], numbers[row], len(words)) for row, words in enumerate(lines)]

    return ContextVectors(read, encoder.fingerprint, encoder.dtype)


def _means(vectors: np.ndarray, word_of_piece: np.ndarray, num_words: int) -> np.ndarray:
    """Vectors float[S, E] of pieces and the number int[S] of the word of each, -1 for none -> means float[n, E]."""
    kept = word_of_piece >= 0
    sums = np.zeros((num_words, vectors.shape[1]))
    np.add.at(sums, word_of_piece[kept], vectors[kept])
    counts = np.bincount(word_of_piece[kept], minlength=num_words)
    return np.asarray(sums / np.maximum(counts, 1)[:, None], np.float32)


def _of_elmo(workdir: os.PathLike[str], dtype: str) -> ContextVectors:
    elmo = load_elmo(workdir, dtype)

    def read(lines: Sequence[Sequence[str]], layers: tuple[int, ...], combine: str) -> list[np.ndarray]:
        chosen = list(layer_numbers(layers, elmo.shape[0]))
        return [np.asarray(combined([*states[chosen]], combine=combine)) for states in elmo.features(lines)]

    return ContextVectors(read, elmo.fingerprint, dtype)


def _of_translation_model(workdir: os.PathLike[str], dtype: str) -> ContextVectors:
    found = load_translation_model(workdir, dtype, "a model of words in context")
    states, params = _encoder_states(found.model), jax.device_put(found.params)

    def read(lines: Sequence[Sequence[str]], layers: tuple[int, ...], combine: str) -> list[np.ndarray]:
        same = len(layer_numbers(layers, 1))
        windows = [list(_windows(found.source, words, found.longest)) for words in lines]
        rows = [ids for of_line in windows for ids, _ in of_line]
        vectors: list[Any] = [None] * len(rows)
        for numbers, *shape in pack_by_length([len(ids) for ids in rows], BATCH_TOKENS):
            source = np.zeros(shape, np.int32)
            for row, number in enumerate(numbers):
                source[row, : len(rows[number])] = rows[number]
            encoded = np.asarray(states(params, source))
            for row, number in enumerate(numbers):
                vectors[number] = encoded[row, : len(rows[number])]
        remaining = iter(vectors)
        means = []
        for words, of_line in zip(lines, windows, strict=True):
            of_pieces = np.concatenate([next(remaining) for _ in of_line])
            means.append(_means(of_pieces, np.concatenate([numbers for _, numbers in of_line]), len(words)))
        return [np.asarray(combined([one] * same, combine=combine)) for one in means]

    return ContextVectors(read, found.fingerprint, dtype)


def _windows(vocab: Vocab, words: Sequence[str], longest: int) -> Iterator[tuple[list[int], np.ndarray]]:
    """Yield the pieces of words, at most `longest` with EOS, and the number int[S] of the word of each, -1 for EOS.

    A word of more pieces is cut.
    """
    ids: list[int] = []
    numbers: list[int] = []
    for number, word in enumerate(words):
        pieces = vocab.encode(word)[: longest - 1]
        if len(ids) + len(pieces) >= longest:
            yield [*ids, EOS], np.array([*numbers, -1])
            ids, numbers = [], []
        ids += pieces
        numbers += [number] * len(pieces)
    yield [*ids, EOS], np.array([*numbers, -1])


@functools.cache
def _encoder_states(model: nn.Module) -> Callable[[Any, np.ndarray], jax.Array]:
    """A compiled function of params and sources int[B, S] to the states float[B, S, H]; the same for equal models."""

    @jax.jit
    def states(params: Any, source: jax.Array) -> jax.Array:
        with exact_products(model.dtype):
            found: Any = model.apply({"params": params}, source, method="encode")
        return jnp.asarray(found["states"] if isinstance(found, dict) else found, jnp.float32)

    return states
