"""A metric as one line, `name|option:value|...|version:x`: every option that changes the number."""

import dataclasses
from typing import Any

from metrics_jax.version import __version__


def sign(metric: Any, **call: object) -> str:
    """The signature of a frozen dataclass with a `name`: every field, defaults too; `call` adds what a call knows."""
    items = [f"{name}:{show_value(value)}" for name, value in call.items()]
    items += [f"{field.name}:{show_value(getattr(metric, field.name))}" for field in dataclasses.fields(metric)]
    return "|".join([metric.name, *items, f"version:{__version__}"])


def show_value(value: object) -> str:
    """A field's value without `|` and `:`; an object is shown by the beginning of its fingerprint, and its dtype."""
    if hasattr(value, "fingerprint"):
        return ".".join(filter(None, [str(value.fingerprint)[:16], getattr(value, "dtype", "")]))
    if isinstance(value, tuple):
        return "+".join(map(show_value, value))
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)
