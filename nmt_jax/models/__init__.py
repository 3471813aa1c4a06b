"""Linen modules: hyperparameters plus pure `apply`; no config, no input or output."""
