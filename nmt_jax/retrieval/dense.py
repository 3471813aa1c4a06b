"""Dense retrieval: the relevance of texts to a query by the cosine of their vectors."""

from collections.abc import Sequence

import numpy as np

from nmt_jax.pretrained.sentence_vectors import Embed


class Dense:
    """Scores N texts by the cosine of their vectors and that of a query, from -1 to 1 (Karpukhin et al., 2020)."""

    def __init__(self, texts: Sequence[str], embed: Embed):
        """embed: as `sentence_embedder` returns it; the texts are encoded once."""
        self.size, self._embed = len(texts), embed
        self._vectors = _normalized(embed(texts))

    def scores(self, query: str) -> np.ndarray:
        """Returns the score of each text, float[N]."""
        return np.asarray(self._vectors @ _normalized(self._embed([query]))[0])


def _normalized(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-30)
