"""Vectors of sentences and paragraphs: the means of the last layer of a pretrained encoder."""

from collections.abc import Callable, Sequence

import numpy as np

Embed = Callable[[Sequence[str]], np.ndarray]  # N texts -> float[N, D]


def sentence_embedder(place: str) -> Embed:
    """Return a function that maps texts to vectors with the encoder of a folder, package or workdir.

    Of a text that is too long for the encoder, the beginning is read.
    """
    from metrics_jax.embedding.ruse import sentence_vectors
    from nmt_jax import platforms
    from nmt_jax.pretrained import load_encoder

    platforms.configure_compilation()
    encoder = load_encoder(place)

    def embed(texts: Sequence[str]) -> np.ndarray:
        return sentence_vectors(encoder, texts)[0] if texts else np.zeros((0, 1))

    return embed
