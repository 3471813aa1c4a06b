"""Position embeddings."""

import jax
import numpy as np
import pytest

from nmt_jax.models.layers.embedding import Positions, sinusoids


def test_sinusoids_follow_section_3_5():
    table = sinusoids(7, 6)
    for position in range(7):
        for i in range(3):
            angle = position / 10000 ** (2 * i / 6)
            np.testing.assert_allclose(
                table[position, [i, 3 + i]], [np.sin(angle), np.cos(angle)], rtol=1e-6, atol=1e-7
            )


def test_too_long_a_sequence_for_learned_positions_is_an_error():
    with pytest.raises(ValueError, match="max_positions=4"):
        Positions("learned", 4, 8).init_with_output(jax.random.key(0), 5)
