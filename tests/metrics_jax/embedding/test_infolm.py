import numpy as np
import pytest

from metrics_jax import InfoLM
from metrics_jax.embedding.infolm import MaskedEncoder


def tokenize(texts):
    """A token per character."""
    ids = np.array([[ord(character) for character in text.ljust(8)] for text in texts])
    mask = np.arange(8) < np.array([[len(text)] for text in texts])
    return ids, mask, np.zeros(mask.shape, bool)


def test_long_texts_are_an_error_in_pairwise_comparison_too():
    metric = InfoLM(MaskedEncoder(tokenize, lambda *_: None, 0, 4, "f"), idf="uniform", long="error")
    with pytest.raises(ValueError, match="a text has 5 tokens, but the encoder reads at most 4"):
        metric.pairwise(["a", "abcde"], ["a"])
