"""Data augmentation by changing words of the source: more training text from the same lines.

words, known_forms    words without punctuation, those that may be replaced, and the words of a text
noise                 dropout, swap, mask, text infilling, permutation
inflection, synonyms  WordNet synonyms in the form of the word that they replace
neighbours            words with similar vectors
target_side           the translation of a replaced word, by a lexicon and links
augmenter             the changed copies of each line
machine_pairs         pairs of real text and its translation: back-translation, forward translation
"""
