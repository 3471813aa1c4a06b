"""The version that signatures name."""

__version__ = "0.1.0"
