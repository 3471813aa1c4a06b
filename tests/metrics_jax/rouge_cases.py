"""What both ROUGEs are asked: pairs worked out by hand."""

import numpy as np

FOUND = "the cat was found under the bed", "the cat was under the bed"
LIN = "police killed the gunman"  # Lin (2004), 3.1
FOX = "The quick brown fox jumped over the lazy dog"
BY_HAND = [  # variant, hypothesis, reference, precision, recall, F1
    ("2", *FOUND, 4 / 6, 4 / 5, 8 / 11),
    ("3", *FOUND, 2 / 5, 2 / 4, 4 / 9),
    ("2", "police kill the gunman", LIN, 1 / 3, 1 / 3, 1 / 3),
    ("L", "police kill the gunman", LIN, 3 / 4, 3 / 4, 3 / 4),
    ("2", "the gunman kill police", LIN, 1 / 3, 1 / 3, 1 / 3),
    ("L", "the gunman kill police", LIN, 2 / 4, 2 / 4, 2 / 4),
    ("2", "the gunman police killed", LIN, 2 / 3, 2 / 3, 2 / 3),
    ("L", "the gunman police killed", LIN, 2 / 4, 2 / 4, 2 / 4),
    ("L", "The cat and the dog", "The cat is on the mat", 3 / 5, 3 / 6, 6 / 11),
    ("L", "The quick brown dog jumped over the lazy fox", FOX, 7 / 9, 7 / 9, 7 / 9),
]


def row(metric, hypothesis: str, *references: str) -> np.ndarray:
    """Precision, recall, F of one segment."""
    return metric.statistics([hypothesis], [references])[0, :3]
