"""The compiled forward pass of an encoder: rows in batches of a few shapes, longest first, on all local devices."""

import collections
import dataclasses
import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from metrics_jax.embedding import devices, platforms
from metrics_jax.embedding.lengths import bucket

COMBINE = ("concatenate", "mean", "power_means")
Embed = Callable[..., Iterable[Array]]  # as `Encoder.embed`
OVERHEAD = 1 / 32  # the fixed cost of a batch, relative to the largest batch


@dataclasses.dataclass(frozen=True)
class _Batch:
    """The numbers of some rows, and the shape that they are padded to."""

    numbers: list[int]
    height: int
    length: int


class Forward:
    """A compiled pass through an encoder that combines the selected layers; options as for `encode`."""

    def __init__(self, embed: Embed, layers: tuple[int, ...], combine: str, normalize: bool, max_length: int) -> None:
        """Raises ValueError if an option or a layer does not exist."""
        if combine not in COMBINE:
            raise ValueError(f"combine={combine!r} is none of {', '.join(COMBINE)}")
        mesh = devices.local_mesh()
        self._devices = mesh.devices.ravel().tolist()
        self._by_rows = devices.by_rows(mesh)
        self._embed = devices.put_weights(embed, mesh)
        one_by_one = inspect.isgeneratorfunction(self._embed.func)
        self._padded = functools.partial(bucket, max_length=max_length, steps=8 if one_by_one else 4)
        count, width = shape_of_states(embed, self._padded(1), len(self._devices))
        self.layers = layer_numbers(layers, count)
        self.width = width * {"concatenate": len(layers), "mean": 1, "power_means": 3}[combine]
        self._states = functools.partial(selected_states, layers=self.layers, normalize=normalize)
        self._combined = functools.partial(combined, combine=combine)

    def __call__(self, rows: Sequence[np.ndarray], batch_tokens: int | None) -> Iterator[tuple[int, np.ndarray]]:
        """Yields (row number, vectors float32[S, E]) of rows int[S] of 1 to max_length ids each, longest first.

        A batch has about `batch_tokens` tokens per device (None: chosen by platform), and half as many after memory
        runs out. Raises MemoryError if there is not enough for a single row.
        """
        sizes = (batch_tokens,) if batch_tokens else platforms.batch_tokens(self._devices[0].platform)
        padded = [self._padded(len(row)) for row in rows]
        longest_first = sorted(range(len(rows)), key=lambda number: -len(rows[number]))
        todo = collections.deque(self._batches(longest_first, padded, sizes))
        running: tuple[_Batch, Any] | None = None  # the batch on the devices while the next one is prepared
        while todo or running:
            batch = todo.popleft() if todo else None
            try:
                started = (batch, self._start(rows, batch)) if batch else None
                vectors = self._combined(jax.device_get(running[1])) if running else None
            except Exception as error:
                if not devices.out_of_memory(error):
                    raise
                lost = [number for one in (running and running[0], batch) if one for number in one.numbers]
                if sizes[0] < 2 * padded[lost[-1]]:
                    longest = len(rows[lost[0]])
                    raise MemoryError(f"not enough memory for one row of {longest} tokens on each device") from error
                left = [*lost, *(number for one in todo for number in one.numbers)]
                sizes, running = (sizes[0] // 2,), None
                todo = collections.deque(self._batches(left, padded, sizes))
                continue
            if running and vectors is not None:
                for index, number in enumerate(running[0].numbers):
                    yield number, vectors[index, : len(rows[number])]
            running = started

    def _batches(self, numbers: Sequence[int], padded: Sequence[int], sizes: Sequence[int]) -> Iterator[_Batch]:
        """Divides rows, longest first, into batches of one padded length each; padded: the lengths of all rows.

        All batches of a length have one shape, that of the size that takes the least work: to compile another program
        for the last rows costs more than some empty rows.
        """
        overhead = sizes[0] * OVERHEAD
        for length, alike in itertools.groupby(numbers, key=lambda number: padded[number]):
            rows = [*alike]
            heights = [len(self._devices) * max(size // length, 1) for size in sizes]
            work = [-(-len(rows) // height) * (height * length + len(self._devices) * overhead) for height in heights]
            height = heights[int(np.argmin(work))]
            for first in range(0, len(rows), height):
                yield _Batch(rows[first : first + height], height, length)

    def _start(self, rows: Sequence[np.ndarray], batch: _Batch) -> list[Array]:
        """Pads a batch, puts it on the devices and starts the computation."""
        ids = np.zeros((batch.height, batch.length), np.int32)
        mask = np.zeros(ids.shape, bool)
        for index, number in enumerate(batch.numbers):
            ids[index, : len(rows[number])] = rows[number]
            mask[index, : len(rows[number])] = True
        ids, mask = jax.device_put((ids, mask), self._by_rows)
        return self._states(self._embed, ids, mask)


def shape_of_states(embed: Embed, length: int = 1, height: int = 1) -> tuple[int, int]:
    """The number of hidden states, embeddings included, and their width; nothing is computed."""
    ids = jax.ShapeDtypeStruct((height, length), np.int32)
    states = jax.eval_shape(lambda ids, mask: [*embed(ids, mask)], ids, jax.ShapeDtypeStruct(ids.shape, bool))
    return len(states), states[0].shape[-1]


def layer_numbers(layers: tuple[int, ...], count: int) -> tuple[int, ...]:
    """The layers of an encoder with `count` states, counted from the first. Raises ValueError if one does not exist."""
    if not layers or not all(-count <= layer < count for layer in layers):
        raise ValueError(f"layers {layers}: the encoder has layers 0 (embeddings) to {count - 1}")
    return tuple(layer % count for layer in layers)


def selected_states(
    embed: jax.tree_util.Partial, ids: Array, mask: Array, *, layers: tuple[int, ...], normalize: bool
) -> list[Array]:
    """The states float32[B, S, D] of these layers, none of them negative, of a batch; normalize: to length 1."""
    select = _layers_one_by_one if inspect.isgeneratorfunction(embed.func) else _all_layers
    states = select(embed, ids, mask, layers=layers)
    return [_normalized(state) if normalize else state.astype(np.float32) for state in states]


@jax.jit
def _normalized(states: Array) -> Array:
    """States float[B, S, D], each divided by its length, in float32."""
    states = states.astype(jnp.float32)
    return states / jnp.maximum(jnp.linalg.norm(states, axis=-1, keepdims=True), 1e-30)


def _layers_one_by_one(embed: Embed, ids: Array, mask: Array, layers: tuple[int, ...]) -> list[Array]:
    """The states of these layers; no layer above the highest one is computed."""
    states = enumerate(itertools.islice(embed(ids, mask), max(layers) + 1))
    found = {number: state for number, state in states if number in layers}
    return [found[layer] for layer in layers]


@functools.partial(jax.jit, static_argnames="layers")
def _all_layers(embed: Callable[..., Array], ids: Array, mask: Array, layers: tuple[int, ...]) -> list[Array]:
    """The same for a function that returns all layers at once, compiled as a whole."""
    states = embed(ids, mask)
    return [states[layer] for layer in layers]


def combined(states: Sequence[Any], *, combine: str) -> Any:
    """Combines states float32[B, S, D] into float32[B, S, E], arrays of NumPy or JAX; NumPy compiles nothing."""
    of = np if isinstance(states[0], np.ndarray) else jnp
    if combine == "concatenate":
        return states[0] if len(states) == 1 else of.concatenate(states, axis=-1)
    mean = sum(states[1:], start=states[0]) / len(states)
    if combine == "mean":
        return mean
    least, most = functools.reduce(of.minimum, states), functools.reduce(of.maximum, states)
    return of.concatenate([least, mean, most], axis=-1)
