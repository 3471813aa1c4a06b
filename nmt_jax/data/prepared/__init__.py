"""Encoded corpora, written once to disk and memory-mapped."""
