"""Metrics of predictions: classification, regression, entities, answers, perplexity."""
