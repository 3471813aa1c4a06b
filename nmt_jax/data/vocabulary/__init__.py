"""Vocabularies: subwords, words, lexicons, character n-grams."""
