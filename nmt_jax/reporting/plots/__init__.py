"""Plots: each module draws one kind."""
