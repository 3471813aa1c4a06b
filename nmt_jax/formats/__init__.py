"""Formats in which a trained model leaves: what other programs read, written into a folder."""
