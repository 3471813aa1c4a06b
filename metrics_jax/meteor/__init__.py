"""The METEOR metrics, with their aligners, stemmers and tables."""
