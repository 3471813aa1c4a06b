"""Information measures between distributions: divergences and distances, all at least 0 and 0 for equal ones."""

from collections.abc import Callable

import numpy as np

LEAST = 1e-300  # a smaller probability counts as this, so that no measure is infinite


def kl_divergence(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Kullback and Leibler (1951): the mean of log p / q under p, float64[...], of distributions float64[..., V]."""
    return (p * np.log(p / q)).sum(axis=-1)


def alpha_divergence(p: np.ndarray, q: np.ndarray, alpha: float) -> np.ndarray:
    """(sum p^alpha q^(1 - alpha) - 1) / (alpha (alpha - 1)) for alpha other than 0 and 1."""
    return (_product(p, q, alpha, 1 - alpha) - 1) / (alpha * (alpha - 1))


def renyi_divergence(p: np.ndarray, q: np.ndarray, alpha: float) -> np.ndarray:
    """log(sum p^alpha q^(1 - alpha)) / (alpha - 1) for alpha other than 1."""
    return np.log(_product(p, q, alpha, 1 - alpha)) / (alpha - 1)


def ab_divergence(p: np.ndarray, q: np.ndarray, alpha: float, beta: float) -> np.ndarray:
    """The logarithmic form of Cichocki et al. (2011), for alpha, beta and their sum other than 0."""
    total = alpha + beta
    left, right = np.log((p**total).sum(axis=-1)), np.log((q**total).sum(axis=-1))
    return left / (beta * total) + right / (alpha * total) - np.log(_product(p, q, alpha, beta)) / (alpha * beta)


def beta_divergence(p: np.ndarray, q: np.ndarray, beta: float) -> np.ndarray:
    """`ab_divergence` with alpha = 1, for beta other than 0 and -1."""
    return ab_divergence(p, q, 1.0, beta)


def l1_distance(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The sum of |p - q|; at most 2."""
    return np.abs(p - q).sum(axis=-1)


def l2_distance(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The Euclidean distance; at most the square root of 2."""
    return np.sqrt(((p - q) ** 2).sum(axis=-1))


def l_infinity_distance(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The largest |p - q|; at most 1."""
    return np.abs(p - q).max(axis=-1)


def fisher_rao_distance(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Twice the angle between the square roots; at most pi."""
    return 2 * np.arccos(np.clip(np.sqrt(p * q).sum(axis=-1), 0, 1))


def _product(p: np.ndarray, q: np.ndarray, power: float, other: float) -> np.ndarray:
    return (p**power * q**other).sum(axis=-1)


MEASURES: dict[str, tuple[Callable[..., np.ndarray], tuple[str, ...]]] = {  # by name: the function, its parameters
    "kl_divergence": (kl_divergence, ()),
    "alpha_divergence": (alpha_divergence, ("alpha",)),
    "beta_divergence": (beta_divergence, ("beta",)),
    "ab_divergence": (ab_divergence, ("alpha", "beta")),
    "renyi_divergence": (renyi_divergence, ("alpha",)),
    "l1_distance": (l1_distance, ()),
    "l2_distance": (l2_distance, ()),
    "l_infinity_distance": (l_infinity_distance, ()),
    "fisher_rao_distance": (fisher_rao_distance, ()),
}


def check_parameters(measure: str, alpha: float | None, beta: float | None) -> dict[str, float]:
    """The parameters of a measure by name.

    Raises ValueError if the measure does not exist, if it needs a parameter that is None or has none that is given, and
    for a value at which it is not defined.
    """
    if measure not in MEASURES:
        raise ValueError(f"information_measure={measure!r} is none of {', '.join(MEASURES)}")
    names, found = MEASURES[measure][1], {}
    for name, value in (("alpha", alpha), ("beta", beta)):
        if (value is not None) != (name in names):
            raise ValueError(f"{measure} {'has no' if value is not None else 'needs'} {name}")
        if value is not None:
            found[name] = value
    excluded = {
        "alpha_divergence": lambda: alpha in (0, 1),
        "beta_divergence": lambda: beta in (0, -1),
        "ab_divergence": lambda: 0 in (alpha, beta) or sum(found.values()) == 0,
        "renyi_divergence": lambda: alpha in (0, 1),
    }
    if not all(np.isfinite(value) and abs(value) <= MOST for value in found.values()):
        raise ValueError(f"{measure}: alpha and beta must lie between -{MOST} and {MOST}")
    if measure in excluded and excluded[measure]():
        given = ", ".join(f"{name}={value}" for name, value in found.items())
        raise ValueError(f"{measure} is not defined for {given}")
    return found


MOST = 10  # of alpha and beta


def measured(measure: str, p: np.ndarray, q: np.ndarray, **parameters: float) -> np.ndarray:
    """A measure of distributions float64[..., V], float64[...]; parameters: as `check_parameters` returns them."""
    p, q = np.maximum(p, LEAST), np.maximum(q, LEAST)
    return np.maximum(MEASURES[measure][0](p, q, **parameters), 0.0)  # rounding may leave less than 0
