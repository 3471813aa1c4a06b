"""The programs of embedding metrics: the forward pass of the encoder, and the comparison of token vectors."""

import functools
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from metrics_jax.embedding import matching
from metrics_jax.embedding.contextual import ContextualMetric
from metrics_jax.embedding.encoder import Encoder
from metrics_jax.embedding.forward import combined_states, shape_of_states
from metrics_jax.embedding.lengths import batch_rows
from metrics_jax.embedding.platforms import batch_tokens
from metrics_jax.embedding.token_batches import BATCH_TOKENS, Side
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.planning.programs import TYPICAL, Program, Shape


def shapes(encoder: Encoder, mesh: Mesh, given: Shape | None) -> list[Shape]:
    """Return the shapes of full batches of the encoder, [B, S]: of its longest rows, and of shorter ones."""
    if given and len(given) != 2:
        raise UserError(f"--batch={'x'.join(map(str, given))}: an encoder needs two numbers, rows and length: 64x128")
    if given:
        return [given]
    tokens = batch_tokens(mesh.devices.flat[0].platform)[0]
    lengths = dict.fromkeys([encoder.max_length, max(int(TYPICAL * encoder.max_length), 1)])
    return [(mesh.size * max(tokens // length, 1), length) for length in lengths]


def encoding(metric: ContextualMetric, mesh: Mesh, shape: Shape) -> Program:
    """The forward pass for a batch of this shape, with all layers in one program."""
    embed, (layers, combine) = metric.encoder.embed, metric.selection
    count, _ = shape_of_states(embed)
    positive = tuple(layer % count for layer in layers)
    forward = functools.partial(combined_states, layers=positive, combine=combine, normalize=True)
    whole, by_rows = sharding.replicated(mesh), NamedSharding(mesh, PartitionSpec("data"))
    weights = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=whole), embed)
    ids = jax.ShapeDtypeStruct(shape, np.int32, sharding=by_rows)
    mask = jax.ShapeDtypeStruct(shape, np.bool_, sharding=by_rows)
    name = f"encode for {metric.name}"
    return Program(name, jax.jit(forward), (weights, ids, mask), {}, mesh, shape, shape[0] * shape[1], forward)


def comparison(metric: ContextualMetric, mesh: Mesh, length: int) -> Program:
    """The distances or similarities of a batch of pairs with texts of this length, on one device.

    Transport between them runs on the host.
    """
    embed, (layers, combine) = metric.encoder.embed, metric.selection
    width = shape_of_states(embed)[1] * {"concatenate": len(layers), "mean": 1, "power_means": 3}[combine]
    rows, whole = batch_rows(length, BATCH_TOKENS), sharding.replicated(mesh)

    def array(dtype: Any, *shape: int) -> Any:
        return jax.ShapeDtypeStruct(shape, dtype, sharding=whole)

    vectors, weights = array(np.float32, rows, length, width), array(np.float32, rows, length)
    side = Side(vectors, weights, array(np.bool_, rows, length))
    compare = compared_by(metric)
    tokens = 2 * rows * length
    name = f"compare for {metric.name}"
    return Program(name, jax.jit(compare), (side, side), {}, mesh, (rows, length), tokens, compare)


def compared_by(metric: Any) -> Any:
    """Return the function that compares two sides on the device."""
    if metric.name == "moverscore" and metric.variant == "v2":
        return functools.partial(matching.distances, pairwise=False)
    if metric.name == "moverscore":
        return functools.partial(matching.squared_distances, n_gram=metric.n_gram, pairwise=False)
    if metric.name == "twmd":
        options = {"temperature": metric.temperature, "relaxed": metric.relaxed, "num_iters": metric.num_iters}
        return functools.partial(matching.tempered_similarity, **options, pairwise=False)
    nonnegative = getattr(metric, "nonnegative", True)
    return functools.partial(
        matching.greedy, n_gram=getattr(metric, "n_gram", 1), nonnegative=nonnegative, pairwise=False
    )
