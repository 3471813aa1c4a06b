"""Trained models written for other programs."""
