"""Plots, tables and HTML reports of runs, sweeps, translations and scores."""
