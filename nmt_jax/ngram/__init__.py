"""N-gram language models: interpolated modified Kneser-Ney estimates, ARPA and memory-mapped files, queries.

vocabulary      words and their numbers; a text as a stream of numbers
trie            the n-grams of a model in sorted arrays, and their numbers
counts          occurrences of the n-grams of a text, and adjusted counts
kneser_ney      discounts and probabilities
model           probabilities of lines, and of one more word after a state
arpa, binary    the two file formats;  files: chooses between them
"""
