"""One key of a config: its default, its meaning, and the values that it may have."""

import dataclasses
from collections.abc import Mapping
from typing import Any

LARGEST = 2**31 - 1  # of an integer on a device
KINDS = {bool: "true or false", int: "an integer", float: "a number", str: "a string"}


@dataclasses.dataclass(frozen=True)
class Key:
    """A key; its type is that of `default`, and in a list, that of each item (a string if the default is empty).

    help: a sentence. low, high: the bounds of a number or of each number of a list. above, below: bounds that are not
    values themselves. choices: all values of a string. unit: what a number counts. renamed: values of older versions,
    as text, and what they are called now.
    """

    default: Any
    help: str
    low: float | None = None
    high: float | None = None
    above: float | None = None
    below: float | None = None
    choices: tuple[str, ...] = ()
    unit: str = ""
    renamed: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def type(self) -> type:
        """The type of a value, or of each item of a list."""
        if isinstance(self.default, list):
            return type(self.default[0]) if self.default else str
        return type(self.default)

    @property
    def kind(self) -> str:
        """The type in words."""
        if isinstance(self.default, list):
            return {int: "a list of integers", str: "a list of strings"}[self.type]
        return KINDS[self.type]

    @property
    def limits(self) -> str:
        """The range or the choices in words, or "" if there are none."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        words = {"above": "more than", "low": "at least", "below": "less than", "high": "at most"}
        bounds = {text: getattr(self, name) for name, text in words.items()}
        return " and ".join(f"{text} {bound:,}" for text, bound in bounds.items() if bound is not None)

    def problem(self, value: Any) -> str:
        """What is wrong with a value, as in "must be at least 1" or "use one of a, b"; "" if nothing is."""
        items = value if isinstance(self.default, list) else [value]
        if not isinstance(items, list | tuple) or not all(map(self._has_type, items)):
            return f"must be {self.kind}"
        if all(map(self._is_allowed, items)):
            return ""
        return f"use {self.limits}" if self.choices else f"must be {self.limits}"

    def _has_type(self, value: Any) -> bool:
        kinds = (int, float) if self.type is float else self.type
        return isinstance(value, kinds) and (self.type is bool or not isinstance(value, bool))

    def _is_allowed(self, value: Any) -> bool:
        if self.choices:
            return value in self.choices
        # NaN fulfils no comparison.
        return (
            (self.low is None or value >= self.low)
            and (self.high is None or value <= self.high)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )


def choice(default: str, help_text: str, *choices: str) -> Key:
    """Returns a key with a fixed list of values."""
    return Key(default, help_text, choices=choices)


def count(default: int, help_text: str, unit: str = "", *, low: int = 1, high: int = LARGEST) -> Key:
    """Returns an integer key."""
    return Key(default, help_text, low=low, high=high, unit=unit)


def width(default: int, help_text: str, *, low: int = 1) -> Key:
    """Returns the key of the width of a layer."""
    return count(default, help_text, low=low, high=262_144)


def layers(default: int, help_text: str, *, low: int = 1) -> Key:
    """Returns the key of a number of layers."""
    return count(default, help_text, low=low, high=1000)


def rate(default: float, help_text: str) -> Key:
    """Returns the key of a rate that is less than 1, such as that of dropout."""
    return Key(default, help_text, low=0, below=1)


def share(default: float, help_text: str) -> Key:
    """Returns the key of a fraction from 0 to 1."""
    return Key(default, help_text, low=0, high=1)
