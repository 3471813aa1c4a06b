"""The programs of embedding metrics: a batch of pairs of texts, tokens in, scores out."""

import functools
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from metrics_jax.embedding import devices
from metrics_jax.embedding.contextual import ContextualMetric
from metrics_jax.embedding.encoder import Encoder
from metrics_jax.embedding.lengths import batch_rows
from metrics_jax.embedding.pair_batches import PairTokens, Places
from metrics_jax.embedding.pair_scoring import Scoring, match_pairs
from metrics_jax.embedding.platforms import batch_tokens
from nmt_jax.errors import UserError
from nmt_jax.planning.programs import TYPICAL, Program, Shape


def shapes(encoder: Encoder, mesh: Mesh, given: Shape | None) -> list[Shape]:
    """Return the shapes of full batches of the encoder, [B, S]: of its longest rows, and of shorter ones.

    Raises UserError if the devices cannot share the pairs of a given shape, or its number of axes is wrong.
    """
    if given and len(given) != 2:
        raise UserError(f"--batch={_joined(given)}: an encoder needs two numbers, rows and length: 64x128")
    if given and given[0] % (2 * mesh.size):
        raise UserError(
            f"--batch={_joined(given)}: {given[0]} rows cannot be divided into pairs of rows for {mesh.size} devices; "
            f"use a multiple of {2 * mesh.size}"
        )
    if given:
        return [given]
    tokens = batch_tokens(mesh.devices.flat[0].platform)[0]
    lengths = dict.fromkeys([encoder.max_length, max(int(TYPICAL * encoder.max_length), 1)])
    return [(mesh.size * max(batch_rows(length, tokens), 2), length) for length in lengths]


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
