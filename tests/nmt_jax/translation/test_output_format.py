import numpy as np

from nmt_jax.translation.output_format import between_words, links, pharaoh, word_numbers


def test_pieces_are_grouped_into_words():
    assert word_numbers(["▁the", "▁co", "at", ".", "</s>"]).tolist() == [0, 1, 1, 1, -1]
    assert word_numbers(["▁", "x", "▁", "▁y", "<s>"]).tolist() == [-1, 0, -1, 1, -1]
    assert word_numbers(["x", "y"]).tolist() == [0, 0]
    assert word_numbers([]).tolist() == []


def test_word_weights_are_means_over_target_and_sums_over_source_pieces():
    weights = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.0, 0.25, 0.75], [0.1, 0.2, 0.7]])
    found = between_words(weights, ["▁a", "b", "</s>"], ["▁x", "▁y", "z", "</s>"])
    np.testing.assert_allclose(found, [[0.75], [0.5]])


def test_links_by_maximum_or_threshold():
    weights = np.array([[0.6, 0.3, 0.1], [0.3, 0.3, 0.4]])
    assert links(weights) == [(0, 0), (2, 1)]
    assert links(weights, 0.3) == [(0, 0), (1, 0), (0, 1), (1, 1), (2, 1)]
    assert links(np.zeros((0, 3))) == links(np.zeros((2, 0))) == []
    assert pharaoh(links(weights, 0.3)) == "0-0 0-1 1-0 1-1 2-1"
