"""Sweeps: their points and runs, training of several runs at a time, and results."""
