"""The language models of the metric perplexity: workdirs of task "language_model" and files of n-gram models."""

from __future__ import annotations

import functools
import hashlib
import os
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from metrics_jax.embedding.row_outputs import row_outputs
from metrics_jax.embedding.text_perplexity import LanguageModel
from nmt_jax.data.batching.text_blocks import windows
from nmt_jax.data.lines import find
from nmt_jax.data.vocabulary.vocab import EOS, UNK, Vocab
from nmt_jax.models.registry import model_class
from nmt_jax.ngram.files import read_model
from nmt_jax.ngram.scoring import LN10, score_lines
from nmt_jax.pretrained.loading import read_run, trained_params
from nmt_jax.pretrained.reproducibility import exact_products, fingerprint
from nmt_jax.storage.paths import path_of


def load_language_model(
    place: str | os.PathLike[str], dtype: str = "float32", download: bool = False, revision: str = "main"
) -> LanguageModel:
    """The best checkpoint of a workdir of task "language_model", or an n-gram model from a file, ARPA or binary.

    dtype: of the matrix products. Nothing is downloaded: the other arguments have no effect. Raises UserError if the
    workdir has another task or no checkpoint, or the file has no n-gram model.
    """
    path = path_of(place)
    return _from_workdir(path, dtype) if path.is_dir() else _from_file(path)


def _from_file(path: pathlib.Path) -> LanguageModel:
    """An n-gram model; the fingerprint is that of the file."""
    model = read_model(path)
    with find(path).open("rb") as file:
        hashed = hashlib.file_digest(file, "sha256").hexdigest()

    def measure(texts: Sequence[str]) -> np.ndarray:
        lines = (found for _, found in score_lines(model, texts))
        return np.array([(log_p.sum() * LN10, len(log_p), unknown.sum()) for log_p, unknown in lines]).reshape(-1, 3)

    return LanguageModel(measure, hashed)


def _from_workdir(workdir: pathlib.Path, dtype: str) -> LanguageModel:
    """A neural model, which reads each text after the end of a line, and a long one in overlapping windows."""
    page = "--perplexity needs 'language_model', as configs/gpt.py trains it, or the file of an n-gram model"
    folder, config = read_run(workdir, ["language_model"], page)
    vocab = Vocab.load(folder / "vocab" / "text.model")
    changes = {"dtype": dtype, **({"remat": "none"} if "remat" in config["model"] else {})}
    model = model_class(config["model_name"])(**{**config["model"], **changes}, vocab_size=len(vocab))
    params = trained_params(folder)
    length, context = config["data"]["block_length"], config["eval"]["context"]
    settings = repr([config["model_name"], sorted(config["model"].items(), key=str), dtype, length, context])
    hashed = fingerprint((vocab.fingerprint + settings).encode(), params)
    log_probs = jax.tree_util.Partial(_log_probs(model), jax.device_put(params))

    def measure(texts: Sequence[str]) -> np.ndarray:
        found = np.zeros((len(texts), 3))
        rows, weights, owners = [], [], []  # of each window: its tokens, which of them count, and the text
        for number, text in enumerate(texts):
            ids = np.array([*vocab.encode(text), EOS], np.int32)
            found[number, 1:] = len(ids), np.count_nonzero(ids == UNK)
            for batch in windows(ids, block_length=length, context=context, rows=1):
                counted = batch["weights"][0].astype(np.float64)
                size = int(np.flatnonzero(counted)[-1]) + 1
                rows.append(batch["tokens"][0, : size + 1])
                weights.append(counted[:size])
                owners.append(number)
        outputs = row_outputs(log_probs, rows, length + 1)
        for number, counted, output in zip(owners, weights, outputs, strict=True):
            found[number, 0] += counted @ output[1:, 0].astype(np.float64)
        return found

    return LanguageModel(measure, hashed, dtype)


@functools.cache
def _log_probs(model: nn.Module) -> Callable[..., jax.Array]:
    """A function that returns the log-probability of each token after those before it, float32[B, S, 1].

    It is 0 for the first token. The mask is not needed, since padding is at the end. The same function for equal
    models.
    """

    @jax.jit
    def log_probs(params: Any, ids: jax.Array, mask: jax.Array) -> jax.Array:
        with exact_products(model.dtype):
            found: Any = model.apply({"params": params}, ids[:, :-1])
        logits = found[0].astype(jnp.float32)
        chosen = jnp.take_along_axis(logits, ids[:, 1:, None], axis=-1)[..., 0]
        values = jnp.pad(chosen - jax.nn.logsumexp(logits, axis=-1), ((0, 0), (1, 0)))
        return values[..., None]

    return log_probs
