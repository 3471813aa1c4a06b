"""Metrics of text generation, with a signature on every number."""

__version__ = "0.1.0"
