"""Metrics beside what people said: the scores of judged texts, and the table of coefficients."""
