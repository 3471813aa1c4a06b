"""Metrics of surface text (n-gram overlap, edit distances, ROUGE), and the tokenizers and stemmers they share."""
