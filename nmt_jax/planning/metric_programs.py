"""The programs of embedding metrics and learned metrics: a batch of rows of tokens in, scores or vectors out."""

import functools
import inspect
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from metrics_jax.embedding import devices
from metrics_jax.embedding.contextual import ContextualMetric
from metrics_jax.embedding.lengths import batch_rows
from metrics_jax.embedding.pair_batches import PairTokens, Places
from metrics_jax.embedding.pair_scoring import Scoring, match_pairs
from metrics_jax.embedding.platforms import batch_tokens
from nmt_jax.errors import UserError
from nmt_jax.planning.programs import TYPICAL, Program, Shape


def shapes(max_length: int, mesh: Mesh, given: Shape | None) -> list[Shape]:
    """Return the shapes of full batches, [B, S]: of rows of `max_length` tokens, and of shorter ones.

    Raises UserError if the devices cannot share the pairs of a given shape, its rows are too long, or its number of
    axes is wrong.
    """
    if given and len(given) != 2:
        raise UserError(f"--batch={_joined(given)}: an encoder needs two numbers, rows and length: 64x128")
    if given and given[0] % (2 * mesh.size):
        raise UserError(
            f"--batch={_joined(given)}: {given[0]} rows cannot be divided into pairs of rows for {mesh.size} devices; "
            f"use a multiple of {2 * mesh.size}"
        )
    if given and given[1] > max_length:
        raise UserError(f"--batch={_joined(given)}: the encoder reads up to {max_length} tokens; use shorter rows")
    if given:
        return [given]
    tokens = batch_tokens(mesh.devices.flat[0].platform)[0]
    lengths = dict.fromkeys([max_length, max(int(TYPICAL * max_length), 1)])
    return [(mesh.size * max(batch_rows(length, tokens), 2), length) for length in lengths]


def of_metric(metric: Any, mesh: Mesh, given: Shape | None) -> list[Program]:
    """Return the programs of a metric with an encoder, or with an estimator of the family of COMET or MetricX.

    Raises UserError as `shapes` does.
    """
    if isinstance(metric, ContextualMetric):
        return [scoring(metric, mesh, shape) for shape in shapes(metric.encoder.max_length, mesh, given)]
    return [estimation(metric, mesh, shape) for shape in shapes(metric.estimator.max_length, mesh, given)]


def weights(metric: Any) -> Any:
    """Return the function that a metric applies to rows of tokens; its leaves are the weights."""
    if isinstance(metric, ContextualMetric):
        return metric.encoder.embed
    return getattr(metric.estimator, "embed", None) or metric.estimator.outputs


def estimation(metric: Any, mesh: Mesh, shape: Shape) -> Program:
    """The program that reads a batch of rows of this shape: vectors of texts for COMET, scores for the others."""
    rows, length = shape
    whole, parts = devices.everywhere(mesh), devices.by_rows(mesh)
    function = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=whole), weights(metric))
    ids = jax.ShapeDtypeStruct(shape, np.int32, sharding=parts)
    mask = jax.ShapeDtypeStruct(shape, np.bool_, sharding=parts)
    return Program(metric.name, _read, (function, ids, mask), {}, mesh, shape, rows * length, _read)


@jax.jit
def _read(function: Any, ids: jax.Array, mask: jax.Array) -> Any:
    """The output of a function for rows of tokens; one that yields it in parts is compiled as a whole."""
    found = function(ids, mask)
    return list(found)[-1] if inspect.isgenerator(found) else found


def scoring(metric: ContextualMetric, mesh: Mesh, shape: Shape) -> Program:
    """The program that scores a batch of this shape, with a pair of texts for two rows.

    Exact transport is not part of it: the program returns costs, and the host solves the problems.
    """
    rows, length = shape

    def array(dtype: Any, *shape: int) -> Any:
        return jax.ShapeDtypeStruct(shape, dtype, sharding=devices.by_rows(mesh))

    places = Places(array(np.int32, rows // 2, length), array(np.float32, rows // 2, length))
    tokens = PairTokens(array(np.int32, rows, length), array(np.int32, rows), places, places)
    whole = devices.everywhere(mesh)
    embed = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=whole), metric.encoder.embed
    )
    options = {"scoring": Scoring.of(metric, mesh)}
    model = functools.partial(match_pairs, **options)
    return Program(metric.name, match_pairs, (embed, tokens), options, mesh, shape, rows * length, model)


def _joined(shape: Shape) -> str:
    return "x".join(map(str, shape))
