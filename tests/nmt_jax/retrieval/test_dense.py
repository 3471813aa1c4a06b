"""Dense retrieval ranks by cosine, whatever the lengths of the vectors."""

import numpy as np

from nmt_jax.retrieval.dense import Dense

VECTORS = {"east": (3.0, 0.0), "north": (0.0, 0.5), "north-east": (7.0, 7.0), "nothing": (0.0, 0.0)}


def embed(texts):
    return np.array([VECTORS[text] for text in texts])


def test_scores_are_cosines():
    ranker = Dense(list(VECTORS), embed)
    np.testing.assert_allclose(ranker.scores("east"), [1, 0, np.sqrt(0.5), 0], atol=1e-12)
    np.testing.assert_allclose(ranker.scores("nothing"), 0)
