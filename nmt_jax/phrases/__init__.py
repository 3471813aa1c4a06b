"""Phrase-based translation (Koehn, Och and Marcu, 2003; Koehn, 2004).

tokens           words and punctuation of a line, and back
extraction       phrase pairs that are consistent with a word alignment
lexical          lexical weights of phrase pairs
reordering       orientations of phrases, and their probabilities
phrase_table     probabilities of phrase pairs in sorted arrays
options          the translation options of a batch of sentences
future_cost      the best score of what is left to translate
stack_decoder    beam search over coverages, in arrays
lattice          n-best translations of the search graph
features         the log-linear model: names and weights
tuning           weights by pairwise ranked optimization
model            the files of a trained model, and translation of lines
building         from parallel text to a phrase table and a language model
"""
