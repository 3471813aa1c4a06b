"""Checks that the parameters and the outputs of a model are finite."""

from typing import Any

import jax
import numpy as np

from nmt_jax.errors import UserError


def check_parameters(params: Any, place: str) -> None:
    """Raise UserError if parameters are infinite or not a number; place: where they come from."""
    leaves = jax.tree.leaves_with_path(params)
    broken = [path for path, leaf in leaves if not all(np.isfinite(shard).all() for shard in _distinct_shards(leaf))]
    if broken:
        name = jax.tree_util.keystr(broken[0], simple=True, separator="/")
        more = f" and {len(broken) - 1} more" if len(broken) > 1 else ""
        raise UserError(
            f"{place}: the model has diverged: parameters are not finite ({name}{more}); use an earlier checkpoint, "
            "or train again with a lower optimizer.learning_rate"
        )


def _distinct_shards(array: jax.Array) -> list[np.ndarray]:
    """The parts of an array on the devices of this process, each once; NumPy needs no program for each shape."""
    return [np.asarray(data) for data in {str(shard.index): shard.data for shard in array.addressable_shards}.values()]


def check_outputs(outputs: Any) -> None:
    """Raise UserError if an output of a model is NaN or positive infinity; -inf is the logarithm of 0."""
    if not np.less(outputs, np.inf).all():  # false for NaN
        raise UserError(
            "the outputs of the model are not finite: it has diverged; use an earlier checkpoint, or train again with "
            "a lower optimizer.learning_rate"
        )
