"""Metrics of predictions: classification, correlation, entities, answers, perplexity."""
