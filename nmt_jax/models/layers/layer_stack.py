"""Equal layers, one after the other: each with a program of its own, or all with the same one in a `jax.lax.scan`.

With a scan the compiler sees a single layer, whatever their number. The parameters keep their names and shapes: they
are stacked inside the program. `remat` chooses what the backward pass recomputes (Chen et al., 2016).
"""

from collections.abc import Callable, Sequence
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

# What is kept of a layer for the backward pass. The products that "dots" keeps are those with parameters; the scores
# and contexts of attention, which have a batch axis, are recomputed.
REMAT = {
    "none": jax.checkpoint_policies.everything_saveable,
    "full": jax.checkpoint_policies.nothing_saveable,
    "dots": jax.checkpoint_policies.dots_with_no_batch_dims_saveable,
}

Step = Callable[[Any, Array], tuple[Array, Any]]


def run_layers(
    layers: Sequence[nn.Module], step: Step, x: Array, *, scan: bool = False, remat: str = "none"
) -> tuple[Array, list[Any]]:
    """Apply (x, output) = step(layer, x) with each of the equal `layers`; return the last x and all outputs.

    The shape and type of x do not change. remat: a key of REMAT. scan: dropout masks differ from those of the loop. The
    outputs are slices of stacked arrays; those that are not used take no memory.
    """
    if remat != "none":
        step = nn.remat(step, prevent_cse=not scan, policy=REMAT[remat])
    if scan and not layers[0].is_initializing():
        return _scan(layers, step, x)
    outputs = []
    for layer in layers:
        x, output = step(layer, x)
        outputs.append(output)
    return x, outputs


def _scan(layers: Sequence[nn.Module], step: Step, x: Array) -> tuple[Array, list[Any]]:
    """`run_layers` with the first layer in a scan over the parameters of all."""
    first = layers[0]
    apply = nn.apply(step, first.clone())
    key = first.make_rng("dropout") if first.has_rng("dropout") else None
    params = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(layer.variables["params"] for layer in layers))

    def body(x: Array, numbered: tuple[Array, Any]) -> tuple[Array, Any]:
        number, params = numbered
        rngs = {} if key is None else {"dropout": jax.random.fold_in(key, number)}
        return apply({"params": params}, x, rngs=rngs)

    x, stacked = jax.lax.scan(body, x, (jnp.arange(len(layers)), params))
    return x, [jax.tree.map(lambda leaf, number=number: leaf[number], stacked) for number in range(len(layers))]
