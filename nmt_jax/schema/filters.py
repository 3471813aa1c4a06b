"""The filters that `config.data.filters` may name, each with its threshold: `length_ratio:4`."""

import difflib
from collections.abc import Sequence
from typing import NamedTuple

DUPLICATES = "duplicates"


class Threshold(NamedTuple):
    """The default of the threshold of a filter and its bounds."""

    default: float
    low: float
    high: float


FILTERS: dict[str, Threshold | None] = {
    DUPLICATES: None,
    "identical": None,
    "length_ratio": Threshold(4, 1, 1e6),
    "letters": Threshold(0.5, 0, 1),
}


class Filter(NamedTuple):
    """A filter and its threshold; 0 for one that has none."""

    name: str
    threshold: float

    def __str__(self) -> str:
        return f"{self.name}:{self.threshold:g}" if FILTERS[self.name] else self.name


def parse_filter(text: str) -> Filter:
    """The filter that an item of `config.data.filters` names. Raises ValueError if it is none."""
    name, colon, number = text.partition(":")
    if name not in FILTERS:
        near = difflib.get_close_matches(name, FILTERS, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ValueError(f"{text!r} is not a filter{hint}; the filters are {', '.join(FILTERS)}")
    bounds = FILTERS[name]
    if bounds is None:
        if colon:
            raise ValueError(f"{text!r}: {name} has no threshold; write {name!r}")
        return Filter(name, 0)
    try:
        threshold = float(number) if colon else bounds.default
    except ValueError:
        threshold = float("nan")
    if not bounds.low <= threshold <= bounds.high:
        example = f"{name}:{bounds.default:g}"
        raise ValueError(f"{text!r}: the threshold must be from {bounds.low:g} to {bounds.high:g}, as in {example!r}")
    return Filter(name, threshold)


def problem_of_filters(filters: Sequence[str]) -> str:
    """What is wrong with the value of `config.data.filters`, or ""."""
    try:
        names = [parse_filter(text).name for text in filters]
    except ValueError as error:
        return f"config.data.filters: {error}"
    double = next((name for name in names if names.count(name) > 1), "")
    return f"config.data.filters: {double} is there twice; name each filter once" if double else ""
