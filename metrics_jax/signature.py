"""Signatures: a metric with all its options in one line, `name|option:value|...|version:x`."""

import dataclasses
from typing import Any

__version__ = "0.1.0"
_ESCAPED = str.maketrans({mark: f"%{ord(mark):02X}" for mark in "%+|"})  # "+" and "|" join values


def sign(metric: Any, **call: object) -> str:
    """The signature of a metric, a frozen dataclass with a `name`: every field, also those with default values.

    `call` adds what only a call knows, such as the number of references.
    """
    options = {field.name: _like(field.default, getattr(metric, field.name)) for field in dataclasses.fields(metric)}
    items = [f"{name}:{format_value(value)}" for name, value in [*call.items(), *options.items()]]
    return "|".join([metric.name, *items, f"version:{__version__}"])


def _like(default: object, value: object) -> object:
    """The value as a number of the default's type, if both are equal: equal metrics have equal signatures."""
    if type(default) is float and type(value) is int:
        return float(value)
    return int(value) if type(default) is int and type(value) is float and value.is_integer() else value


def format_value(value: object) -> str:
    """Format the value of a field; an object is represented by the beginning of its fingerprint, and its dtype.

    In strings, the characters % + | are percent-encoded.
    """
    if hasattr(value, "fingerprint"):
        return ".".join(filter(None, [str(value.fingerprint)[:16], getattr(value, "dtype", "")]))
    if isinstance(value, tuple):
        return "+".join(map(format_value, value))
    if isinstance(value, str):
        return value.translate(_ESCAPED)
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)
