"""Pretrained BERT-like models as encoders for embedding metrics."""

import functools
import os
from collections.abc import Callable, Iterator
from typing import Any

import flax.traverse_util
import jax
import jax.numpy as jnp

from metrics_jax.embedding.encoder import Encoder
from nmt_jax.models.layers.basic import activation
from nmt_jax.models.layers.bert_stack import Bert, Embeddings, Layer
from nmt_jax.pretrained.huggingface import Pretrained
from nmt_jax.pretrained.loading import load
from nmt_jax.pretrained.reproducibility import exact_products, fingerprint


def load_encoder(
    place: str | os.PathLike[str], dtype: str = "float32", download: bool = False, revision: str = "main"
) -> Encoder:
    """An encoder for embedding metrics; arguments and errors as for `load`."""
    return make_encoder(load(place, dtype, download, revision))


def make_encoder(pretrained: Pretrained) -> Encoder:
    """An encoder that returns a model's hidden states, starting with its embeddings."""
    model, tokenizer = pretrained.model, pretrained.tokenizer
    function = activation(model.activation, model.dtype).__name__
    # Settings that no parameter shape reveals.
    settings = [model.num_heads, model.first_position, function, model.epsilon, model.dtype, pretrained.max_length]
    flat = flax.traverse_util.flatten_dict(pretrained.params, sep="/")
    if model.dtype == "bfloat16":  # products round kernels to bfloat16 anyway; this halves their memory
        flat = {name: value.astype(jnp.bfloat16) if name.endswith("/kernel") else value for name, value in flat.items()}
    params = jax.device_put(flax.traverse_util.unflatten_dict(flat, sep="/"))
    hashed = fingerprint((tokenizer.model + repr(settings)).encode(), pretrained.params, "pooler_dense/")
    embed = jax.tree_util.Partial(_states(model), params)
    return Encoder(tokenizer, embed, tokenizer.pieces, pretrained.max_length, hashed, model.dtype)


@functools.cache
def _states(model: Bert) -> Callable[..., Iterator[jax.Array]]:
    """A function that yields the hidden states of a model; the same function for equal models.

    One layer is compiled for each shape, and its program runs with the weights of every layer. This compiles faster
    than the whole model, and layers that are not needed are not computed.
    """

    @jax.jit
    def embeddings(params: dict[str, Any], ids: jax.Array) -> jax.Array:
        return jnp.asarray(Embeddings(**model.fields_of(Embeddings)).apply({"params": params}, ids, None, False))

    @jax.jit
    def layer(params: dict[str, Any], x: jax.Array, mask: jax.Array) -> jax.Array:
        with exact_products(model.dtype):
            return Layer(**model.fields_of(Layer)).apply({"params": params}, x, model.visible(mask), False)[0]

    def states(params: dict[str, Any], ids: jax.Array, mask: jax.Array) -> Iterator[jax.Array]:
        x = embeddings(params["embeddings"], ids)
        yield x
        for number in range(model.num_layers):
            x = layer(params[f"layers_{number}"], x, mask)
            yield x

    return states
