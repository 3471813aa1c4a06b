"""Metrics of generated text, each equal to its reference program, with a signature on every score.

    from metrics_jax import BLEU
    BLEU()(["the cat sat"], ["the cat sat down"]).score

`load("chrf|word_order:2")` makes a metric from a name or a signature. The module of a metric is imported on first use.
"""

import importlib
from typing import Any

from metrics_jax.registry import REGISTRY, load, parse
from metrics_jax.signature import __version__

_MODULE_OF = {
    **{class_name: module for module, class_name in REGISTRY.values()},
    # What metrics take as options.
    "WordNet": "surface.wordnet",
    "Vectors": "embedding.vectors",
    "Idf": "embedding.idf",
    "Baseline": "embedding.baseline",
    "Encoder": "embedding.encoder",
}

__all__ = ["__version__", "load", "parse", *_MODULE_OF]


def __getattr__(name: str) -> Any:
    """Import a public class from its module on first use."""
    if name in _MODULE_OF:
        return getattr(importlib.import_module(f"metrics_jax.{_MODULE_OF[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
