"""Metrics that compare embeddings of words, tokens or sentences."""
