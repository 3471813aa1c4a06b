"""The arithmetic of a program by the shapes of its products, with loops counted as often as they run."""

import math
from typing import Any

from jax.interpreters import partial_eval


def matrix_flops(jaxpr: Any, trips: int = 1) -> float:
    """Operations of all matrix products and convolutions, 2 N D M for [N, D] times [D, M], on all devices together.

    jaxpr: the program as JAX traced it; what its results do not need is left out, as compilers do. trips: how often a
    loop runs whose length depends on data.
    """
    return _flops(partial_eval.dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))[0], trips)


def _flops(jaxpr: Any, trips: int) -> float:
    total = 0.0
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        if name == "dot_general":
            total += _product(equation)
        elif name == "conv_general_dilated":
            total += _convolution(equation)
        else:
            inner = [_flops(one, trips) for one in _inner(equation)]
            if name == "scan":
                total += equation.params["length"] * sum(inner)
            elif name == "while":
                total += trips * sum(inner)
            else:
                total += max(inner, default=0.0) if name == "cond" else sum(inner)
    return total


def _inner(equation: Any) -> list[Any]:
    """The programs within an equation, without the rules of gradients."""
    found = []
    for value in equation.params.values():
        for one in value if isinstance(value, tuple | list) else [value]:
            one = getattr(one, "jaxpr", one)  # a closed program contains one
            if hasattr(one, "eqns"):
                found.append(one)
    return found


def _product(equation: Any) -> float:
    """2 times the size of the result times the size of the contracted axes."""
    (contracted, _), _ = equation.params["dimension_numbers"]
    left, result = equation.invars[0].aval.shape, equation.outvars[0].aval.shape
    return 2.0 * math.prod(result) * math.prod(left[axis] for axis in contracted)


def _convolution(equation: Any) -> float:
    """2 times the size of the result times the number of kernel elements that each of its elements sums over."""
    kernel, result = equation.invars[1].aval.shape, equation.outvars[0].aval.shape
    features = kernel[equation.params["dimension_numbers"].rhs_spec[0]]
    return 2.0 * math.prod(result) * math.prod(kernel) / features
