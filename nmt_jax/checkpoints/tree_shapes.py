"""Comparison of trees of arrays by names and shapes."""

from collections.abc import Mapping
from typing import Any

import jax


def name_differences(expected: Any, found: Any) -> str:
    """The names of arrays that are missing, unexpected or of another shape in `found`; empty if the trees agree."""
    return shape_differences(tree_shapes(expected), tree_shapes(found))


def tree_shapes(tree: Any) -> dict[str, list[int]]:
    """The shape of every array of a tree by its name, such as "layer/kernel"."""
    return {
        jax.tree_util.keystr(path, simple=True, separator="/"): list(leaf.shape)
        for path, leaf in jax.tree.leaves_with_path(tree)
    }


def shape_differences(expected: Mapping[str, list[int]], found: Mapping[str, list[int]]) -> str:
    """The differences between two results of `tree_shapes`, as one line."""
    lists = {
        "missing": [name for name in expected if name not in found],
        "unexpected": [name for name in found if name not in expected],
        "of another shape": [
            f"{name} {found[name]} instead of {expected[name]}"
            for name in expected
            if name in found and list(found[name]) != expected[name]
        ],
    }
    return "; ".join(f"{what}: {_first(names)}" for what, names in lists.items() if names)


def _first(names: list[str], count: int = 8) -> str:
    return ", ".join(names[:count]) + (f" and {len(names) - count} more" if len(names) > count else "")
