"""Batches: each a pure function of its number."""
