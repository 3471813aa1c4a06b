"""Attention over an image: one panel per word, bright where the model looks."""

import numpy as np
import pytest

from nmt_jax.data.readers.images import Picture
from nmt_jax.reporting.plots.overlays import draw_overlays, place_weights

COLUMNS, START, WORDS = 4, 3, ["▁a", "▁red", "▁star", "</s>"]
PICTURE = Picture(np.full((8, 8, 3), 200, np.uint8), COLUMNS, START)


@pytest.fixture
def weights():
    """Attention of two layers to three words and an image; word t looks at patch 3 t in the layer that is drawn."""
    cross = np.full((2, 1, len(WORDS), START + COLUMNS**2), 1e-3, np.float32)
    for number in range(len(WORDS)):
        cross[0, 0, number, START + 3 * number] = 1.0
    return {"cross": cross, "target_pieces": WORDS, "pictures": [PICTURE]}


def test_each_word_has_a_panel_that_is_bright_where_it_looks(weights):
    image, *panels = draw_overlays(weights).axes
    assert len(image.images) == 1
    assert len(panels) == len(WORDS)
    for number, panel in enumerate(panels):
        shade = panel.images[1].get_array()[..., 3]
        assert shade.shape == (COLUMNS, COLUMNS)
        assert np.argmin(shade) == 3 * number
    labels = [text.get_text() for text in draw_overlays(weights).texts]
    assert labels[1:] == ["image", "a", "red", "star", "</s>"]


def test_the_drawn_weights_are_those_of_the_last_layer_but_one(weights):
    expected = weights["cross"][0].mean(axis=0)[:, START:].reshape(-1, COLUMNS, COLUMNS)
    np.testing.assert_array_equal(place_weights(weights, PICTURE), expected)
    one = weights | {"cross": weights["cross"][:1]}
    np.testing.assert_array_equal(place_weights(one, PICTURE), expected)
