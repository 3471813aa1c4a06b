"""Retrieval: the texts of a collection that are relevant to a query.

bm25     by the words that they share
dense    by the cosine of their vectors
ranking  the texts with the highest scores
"""
