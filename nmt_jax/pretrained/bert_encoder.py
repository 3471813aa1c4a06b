"""Pretrained models as encoders: what embedding metrics read text with."""

import functools
import hashlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import flax.traverse_util
import jax
import jax.numpy as jnp
import numpy as np

from metrics_jax.embedding.encoder import Encoder
from nmt_jax.models.layers.activations import activation
from nmt_jax.models.layers.bert_stack import Bert, Embeddings, Layer
from nmt_jax.pretrained.huggingface import Pretrained
from nmt_jax.pretrained.loading import load


def load_encoder(
    place: str | os.PathLike[str], dtype: str = "float32", download: bool = False, revision: str = "main"
) -> Encoder:
    """What embedding metrics read text with, from the places and with the errors of `load`."""
    return make_encoder(load(place, dtype, download, revision))


def make_encoder(pretrained: Pretrained) -> Encoder:
    """An encoder of a model's hidden states, its embeddings first."""
    model, tokenizer = pretrained.model, pretrained.tokenizer
    digest = hashlib.sha256(tokenizer.model.encode())
    used = activation(model.activation, model.dtype).__name__
    told = [model.num_heads, model.first_position, used, model.epsilon, model.dtype, pretrained.max_length]
    digest.update(repr(told).encode())  # of what no shape tells
    flat = flax.traverse_util.flatten_dict(pretrained.params, sep="/")
    for name in sorted(flat):
        if not name.startswith("pooler_dense/"):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(flat[name], np.float32).data)
    if model.dtype == "bfloat16":  # what every product would be rounded to anyway takes half the memory
        flat = {name: value.astype(jnp.bfloat16) if name.endswith("/kernel") else value for name, value in flat.items()}
    params = jax.device_put(flax.traverse_util.unflatten_dict(flat, sep="/"))
    return Encoder(
        tokenize=tokenizer,
        embed=jax.tree_util.Partial(_states(model), params),
        pieces=tokenizer.pieces,
        max_length=pretrained.max_length,
        fingerprint=digest.hexdigest(),
        dtype=model.dtype,
    )


@functools.cache
def _states(model: Bert) -> Callable[..., Iterator[jax.Array]]:
    """The hidden states of a model, one function for equal ones.

    A layer is compiled once for each shape and runs with the weights of all: programs are ready sooner, the more layers
    there are, and none is run that nobody asks for.
    """

    @jax.jit
    def embeddings(params: dict[str, Any], ids: jax.Array) -> jax.Array:
        return jnp.asarray(Embeddings(**model.fields_of(Embeddings)).apply({"params": params}, ids, None, False))

    @jax.jit
    def layer(params: dict[str, Any], x: jax.Array, mask: jax.Array) -> jax.Array:
        # Accelerators round the operands of float32 products to fewer bits unless told not to.
        with jax.default_matmul_precision("highest" if model.dtype == "float32" else "default"):
            return Layer(**model.fields_of(Layer)).apply({"params": params}, x, model.visible(mask), False)[0]

    def states(params: dict[str, Any], ids: jax.Array, mask: jax.Array) -> Iterator[jax.Array]:
        x = embeddings(params["embeddings"], ids)
        yield x
        for number in range(model.num_layers):
            x = layer(params[f"layers_{number}"], x, mask)
            yield x

    return states
