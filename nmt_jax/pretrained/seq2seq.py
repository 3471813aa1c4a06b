"""Pretrained encoder-decoders: the probabilities of given targets, and the first step of the decoder."""

import dataclasses
import functools
import os
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from nmt_jax.pretrained.huggingface import Pretrained, read_folder
from nmt_jax.pretrained.loading import find_folder
from nmt_jax.pretrained.reproducibility import exact_products, fingerprint
from nmt_jax.pretrained.seq2seq_families import SEQ2SEQ
from nmt_jax.pretrained.weight_names import pad_id


@dataclasses.dataclass(frozen=True, eq=False)
class Seq2Seq(Pretrained):
    """An encoder-decoder with its parameters and tokenizer.

    model: a `T5` or `Bart`, called with the ids of sources, their mask, and the ids of targets up to the token before.
    max_length: of a text, in tokens; T5 and mT5 read longer ones, too. start_id: begins every target. pad_id: of
    padding.
    """

    start_id: int
    pad_id: int

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all that changes the numbers: weights, vocabulary, sizes and precision."""
        fields = {field.name: getattr(self.model, field.name) for field in dataclasses.fields(self.model)}
        settings = repr([self.kind, fields | {"parent": None, "name": None}, self.start_id])
        return fingerprint((self.tokenizer.model + settings).encode(), self.params)


def load_seq2seq(
    place: str | os.PathLike[str], dtype: str = "float32", download: bool = False, revision: str = "main"
) -> Seq2Seq:
    """Reads a T5, mT5, BART or mBART with its decoder; arguments and errors as for `pretrained.load`."""
    found, config = read_folder(find_folder(place, download, revision), SEQ2SEQ, dtype)
    family, start_id = SEQ2SEQ[found.kind], config.get("decoder_start_token_id")
    start_id = family.start_id if start_id is None else start_id
    return Seq2Seq(**vars(found), start_id=start_id, pad_id=pad_id(config, family))


@functools.cache
def log_probabilities(model: nn.Module) -> Callable[..., jax.Array]:
    """A compiled function of params, ids int[B, S], mask bool[B, S], targets int[B, T] and a start id.

    It returns log p(target_t | source, target_<t), float32[B, T]. Targets are padded at the end with any id; what is
    returned there is meaningless.
    """

    @jax.jit
    def score(params: Any, ids: jax.Array, mask: jax.Array, targets: jax.Array, start_id: jax.Array) -> jax.Array:
        start = jnp.broadcast_to(jnp.asarray(start_id, targets.dtype), (len(targets), 1))
        previous = jnp.concatenate([start, targets[:, :-1]], axis=1)
        with exact_products(model.dtype):
            logits: Any = model.apply({"params": params}, ids, mask, previous)
        chosen = jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
        return chosen - jax.nn.logsumexp(logits, axis=-1)

    return score


@functools.cache
def first_logits(model: nn.Module) -> Callable[..., jax.Array]:
    """A compiled function of params, ids int[B, S], mask bool[B, S], start id -> first logits, float32[B, V]."""

    @jax.jit
    def score(params: Any, ids: jax.Array, mask: jax.Array, start_id: jax.Array) -> jax.Array:
        start = jnp.broadcast_to(jnp.asarray(start_id, ids.dtype), (len(ids), 1))
        with exact_products(model.dtype):
            logits: Any = model.apply({"params": params}, ids, mask, start)
        return jnp.asarray(logits[:, 0])

    return score
