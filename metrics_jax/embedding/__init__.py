"""Metrics over embeddings: the encoder interface, optimal transport, BERTScore and its relatives."""
