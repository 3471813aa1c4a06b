"""Attention RNNs, Transformers and pretraining in JAX: from raw text to a trained, decoded, scored model."""

__version__ = "0.1.0"
