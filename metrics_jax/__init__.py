"""Metrics of generated text, each equal to its reference program, with a signature on every number.

    from metrics_jax import BLEU
    BLEU()(["the cat sat"], ["the cat sat down"]).score

A metric's room is imported when the metric is first asked for; `parse("chrf|word_order:2")` makes one of a signature.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

from metrics_jax.signature import ROOMS, parse

_ROOM_OF = {kind: room for room, kind in ROOMS.values()} | {
    "WordNet": "surface.synonyms",
    "Vectors": "embedding.vectors",
    "Idf": "embedding.idf",
}
_ROOM_OF |= {"Baseline": "embedding.baseline", "Encoder": "embedding.encoder"}

__all__ = ["__version__", "parse", *_ROOM_OF]


def __getattr__(name: str) -> Any:
    """A metric's class, or what it is handed, from its room."""
    if name in _ROOM_OF:
        return getattr(importlib.import_module(f"metrics_jax.{_ROOM_OF[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
