"""Signatures: a metric with all its options in one line, `name|option:value|...|version:x`."""

import dataclasses
from typing import Any

__version__ = "0.1.0"


def sign(metric: Any, **call: object) -> str:
    """The signature of a metric, a frozen dataclass with a `name`: every field, also those with default values.

    `call` adds what only a call knows, such as the number of references.
    """
    options = {field.name: getattr(metric, field.name) for field in dataclasses.fields(metric)}
    items = [f"{name}:{format_value(value)}" for name, value in [*call.items(), *options.items()]]
    return "|".join([metric.name, *items, f"version:{__version__}"])


def format_value(value: object) -> str:
    """Format the value of a field; an object is represented by the beginning of its fingerprint, and its dtype."""
    if hasattr(value, "fingerprint"):
        return ".".join(filter(None, [str(value.fingerprint)[:16], getattr(value, "dtype", "")]))
    if isinstance(value, tuple):
        return "+".join(map(format_value, value))
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)
