"""Vocabularies: subwords, words, translation lexicons, character n-grams."""
