"""What an address of the JSON interface is: its fields, and the two steps from a body to an answer."""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nmt_jax.schema.key import Key
from nmt_jax.serving.models import Models

MOST_LINES = 200  # of a request that a model computes

MODEL = Key("", "Name of a model, as in /api/models; by default the first.")


@dataclass(frozen=True, eq=False)
class Endpoint:
    """An address that takes a JSON object and returns JSON.

    path: the address. purpose: one line for its description. fields: of the body; required: those that must be there.
    example: a body. parse: from the fields (None where absent) to a call and its items; raises UserError if they are
    invalid. compute: the result of each item; requests with equal calls are computed together. answer: from the call
    and the results to JSON. most_lines: of a field. stream: the answer in parts, for requests with "stream": true; the
    last part is what `answer` returns.
    """

    path: str
    purpose: str
    fields: Mapping[str, Key]
    required: tuple[str, ...]
    example: Mapping[str, Any]
    parse: Callable[[Models, Mapping[str, Any]], tuple[Hashable, list[Any]]]
    compute: Callable[[Models, Any, Sequence[Any]], Iterable[Any]]
    answer: Callable[[Any, Sequence[Any]], Any] = lambda call, results: results[0]
    most_lines: int = MOST_LINES
    stream: Callable[[Models, Any, Sequence[Any]], Iterator[Any]] | None = None


def finite(value: Any) -> Any:
    """Return a value for JSON with None for numbers that JSON cannot express."""
    if isinstance(value, dict):
        return {name: finite(one) for name, one in value.items()}
    if isinstance(value, list):
        return [finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
