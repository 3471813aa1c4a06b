"""Pretrained BERT-like models as encoders for embedding metrics."""

import dataclasses
import functools
import os
from collections.abc import Callable, Iterator
from typing import Any

import flax.linen as nn
import flax.traverse_util
import jax
import jax.numpy as jnp

from metrics_jax.embedding.encoder import Encoder
from nmt_jax.models.layers.activations import activation
from nmt_jax.models.layers.bert_stack import Bert
from nmt_jax.models.layers.encoder_stack import EncoderStack
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
    model, tokenizer = pretrained.model, pretrained.tokenizer.with_space()
    settings = settings_of(model, pretrained.max_length)
    flat = flax.traverse_util.flatten_dict(pretrained.params, sep="/")
    if model.dtype == "bfloat16":  # products round kernels to bfloat16 anyway; this halves their memory
        flat = {name: value.astype(jnp.bfloat16) if name.endswith("/kernel") else value for name, value in flat.items()}
    params = jax.device_put(flax.traverse_util.unflatten_dict(flat, sep="/"))
    hashed = fingerprint((tokenizer.model + repr(settings)).encode(), pretrained.params, "pooler_dense/")
    embed = jax.tree_util.Partial(hidden_states(model), params)
    return Encoder(tokenizer, embed, tokenizer.pieces, pretrained.max_length, hashed, model.dtype)


def settings_of(model: EncoderStack, max_length: int) -> list[Any]:
    """What changes the numbers of a model but is not in its parameters."""
    function = activation(model.activation, model.dtype).__name__
    if isinstance(model, Bert):
        found = [model.num_heads, model.first_position, function, model.epsilon, model.dtype, max_length]
        return [*found, model.num_layers] if model.share_layers else found
    fields = {field.name: getattr(model, field.name) for field in dataclasses.fields(model)}
    return [type(model).__name__, fields | {"parent": None, "name": None}, function, max_length]


@functools.cache
def hidden_states(model: EncoderStack) -> Callable[..., Iterator[jax.Array]]:
    """A function that yields the hidden states of a model; the same function for equal models.

    One layer is compiled for each shape, and its program runs with the weights of every equal layer. This compiles
    faster than the whole model, and layers that are not needed are not computed.
    """

    @jax.jit
    def begin(params: dict[str, Any], ids: jax.Array, mask: jax.Array) -> tuple[jax.Array, tuple[Any, ...]]:
        with exact_products(model.dtype):
            found: Any = model.apply({"params": params}, ids, mask, method="begin")
        x, context = found
        return x, context

    @functools.partial(jax.jit, static_argnums=0)
    def apply(layer: nn.Module, params: dict[str, Any], x: jax.Array, context: tuple[Any, ...]) -> jax.Array:
        with exact_products(model.dtype):
            return jnp.asarray(layer.apply({"params": params}, x, *context)[0])

    layers = [(model.layer_name(number), model.layer(number)) for number in range(model.num_layers)]

    def states(params: dict[str, Any], ids: jax.Array, mask: jax.Array) -> Iterator[jax.Array]:
        rest = {name: value for name, value in params.items() if not name.startswith("layers_")}
        x, context = begin(rest, ids, mask)
        yield x
        for name, layer in layers:
            x = apply(layer, params[name], x, context)
            yield x

    return states
