"""Corpora, vocabularies and batches."""
