"""Extractive summarization."""
