"""Checkpoints of training runs."""
