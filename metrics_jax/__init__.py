"""Metrics of generated text, each equal to its reference program, with a signature on every number.

    from metrics_jax import BLEU
    BLEU()(["the cat sat"], ["the cat sat down"]).score

A metric's room is imported when the metric is first asked for; `parse("chrf|word_order:2")` makes one of a signature.
"""

import importlib
from typing import Any

from metrics_jax.registry import REGISTRY, parse
from metrics_jax.version import __version__

_MODULE_OF = {kind: module for module, kind in REGISTRY.values()} | {
    "WordNet": "surface.synonyms",
    "Vectors": "embedding.vectors",
    "Idf": "embedding.idf",
}
_MODULE_OF |= {"Baseline": "embedding.baseline", "Encoder": "embedding.encoder"}

__all__ = ["__version__", "parse", *_MODULE_OF]


def __getattr__(name: str) -> Any:
    """A metric's class, or what it is handed, from its room."""
    if name in _MODULE_OF:
        return getattr(importlib.import_module(f"metrics_jax.{_MODULE_OF[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
