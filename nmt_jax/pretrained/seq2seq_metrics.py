"""The encoder-decoders of MetricX and BARTScore, from folders in Hugging Face's format."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable, Sequence
from typing import Any

import flax.linen as nn
import jax
import numpy as np

from metrics_jax.embedding.comet import RowScorer, TextRow
from metrics_jax.embedding.encoder import truncated
from metrics_jax.embedding.generation import Generator
from nmt_jax.errors import UserError
from nmt_jax.pretrained.seq2seq import Seq2Seq, first_logits, load_seq2seq, log_probabilities

Place = str | os.PathLike[str]
SCORE_ID, SCORE_PIECE = 250089, "<extra_id_10>"  # its logit is the score; the id of the piece in mT5


def load_metricx23(place: Place, dtype: str = "float32", download: bool = False, revision: str = "main") -> RowScorer:
    """The model of MetricX-23, with or without references; it reads 1,024 pieces. Arguments and errors as for `load`.

    The folder has an mT5 with its decoder and tokenizer.
    """
    return _metricx(load_seq2seq(place, dtype, download, revision), place, 1024)


def load_metricx24(place: Place, dtype: str = "float32", download: bool = False, revision: str = "main") -> RowScorer:
    """The hybrid model of MetricX-24, which reads 1,536 pieces; as `load_metricx23`."""
    return _metricx(load_seq2seq(place, dtype, download, revision), place, 1536)


def _metricx(found: Seq2Seq, place: Place, max_length: int) -> RowScorer:
    """A scorer of prompts, of which the last piece of `max_length`, for the end of the text, is left out."""
    # The published program uses the id, whatever the tokenizer calls the piece.
    piece = SCORE_ID if found.model.vocab_size > SCORE_ID else found.tokenizer.id(SCORE_PIECE)
    if found.kind not in ("t5", "mt5") or piece is None:
        raise UserError(f"{place}: a {found.kind} model without the piece {SCORE_PIECE}; MetricX is an mT5")

    def tokenize(prompts: Sequence[str]) -> list[TextRow]:
        rows = found.tokenizer.encode([prompt.encode("utf-8", "replace").decode() for prompt in prompts])
        return [TextRow(np.array(ids[: max_length - 1], np.int32), len(ids) + 1) for ids in rows]

    weights = jax.device_put({"params": found.params, "start": np.int32(found.start_id), "piece": np.int32(piece)})
    outputs = jax.tree_util.Partial(_score(found.model), weights)
    hashed = hashlib.sha256(f"{found.fingerprint} {piece} {max_length}".encode()).hexdigest()
    return RowScorer(tokenize, outputs, max_length, hashed, found.model.dtype)


@functools.cache
def _score(model: nn.Module) -> Callable[..., jax.Array]:
    """A function that returns the logit of one piece at the first step, float32[B, 1, 1]; the same for equal models."""
    logits = first_logits(model)

    def outputs(weights: dict[str, Any], ids: jax.Array, mask: jax.Array) -> jax.Array:
        return logits(weights["params"], ids, mask, weights["start"])[:, weights["piece"], None, None]

    return outputs


def load_bartscore(place: Place, dtype: str = "float32", download: bool = False, revision: str = "main") -> Generator:
    """The model of BARTScore: a BART, mBART, T5 or mT5. Arguments and errors as for `load`.

    Texts are tokenized with the special pieces of the tokenizer, which count like any others.
    """
    found = load_seq2seq(place, dtype, download, revision)

    def rows(texts: Sequence[str]) -> list[TextRow]:
        tokens = []
        for row, mask, special in zip(*found.tokenizer(texts), strict=True):
            length = int(mask.sum())
            ids, _ = truncated(row[:length], special[:length], found.max_length)
            tokens.append(TextRow(ids, length))
        return tokens

    weights = jax.device_put({"params": found.params, "start": np.int32(found.start_id)})
    log_probs = jax.tree_util.Partial(_log_probs(found.model), weights)
    return Generator(rows, rows, log_probs, found.max_length, found.fingerprint, found.model.dtype)


@functools.cache
def _log_probs(model: nn.Module) -> Callable[..., jax.Array]:
    """`log_probabilities` with the parameters and the start id as one argument; the same for equal models."""
    score = log_probabilities(model)

    def log_probs(weights: dict[str, Any], sources: jax.Array, mask: jax.Array, targets: jax.Array) -> jax.Array:
        return score(weights["params"], sources, mask, targets, weights["start"])

    return log_probs
