"""Batches of NumPy arrays, each a pure function of its number."""
