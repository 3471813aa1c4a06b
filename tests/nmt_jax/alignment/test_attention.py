"""Links from attention: between pieces and words, of a translator to given pairs."""

import numpy as np
import pytest

from nmt_jax.alignment.attention import AttentionAligner, attention_links, between_words, word_numbers
from nmt_jax.alignment.links import Alignment, format_links
from nmt_jax.alignment.sentence_pairs import SentencePairs
from nmt_jax.errors import UserError
from nmt_jax.training.trained import open_translator
from nmt_jax.translation.requests import Line
from nmt_jax.workdir import Workdir

PAIRS = SentencePairs(
    [["the", "old", "man", "sleeps", "."], [], ["a", "▁", "dog"], ["we", "do", "not", "know", "him", "."]],
    [["der", "alte", "Mann", "schläft", "."], ["ein"], ["▁▁", "Hund"], ["wir", "kennen", "ihn", "nicht", "."]],
)


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
    assert attention_links(weights) == [(0, 0), (2, 1)]
    assert attention_links(weights, 0.3) == [(0, 0), (1, 0), (0, 1), (1, 1), (2, 1)]
    assert attention_links(np.zeros((0, 3))) == attention_links(np.zeros((2, 0))) == []
    assert format_links(attention_links(weights, 0.3)) == "0-0 0-1 1-0 1-1 2-1"


@pytest.fixture(scope="module")
def opened(translator_workdir):
    return open_translator([Workdir(translator_workdir)])


def test_given_pairs_are_aligned_word_by_word(opened):
    """A pair with an empty side has no links; words that a vocabulary drops are counted."""
    translator, params = opened
    found = [*AttentionAligner(translator, params, PAIRS).align_lines(0, 4)]
    assert found[1] == Alignment([], [])
    for one, source, target in zip(found, *PAIRS, strict=True):
        if source:
            assert sorted(j for _, j in one.links) == [*range(len(target))]
            assert all(0 <= i < len(source) for i, _ in one.links)
            assert all(0 < p <= 1 for p in one.posteriors)
    line = Line("the old man sleeps .", translation="der alte Mann schläft .")
    scored = translator.score_given(params, [line], with_attention=True)[0][0].scored
    weights = between_words(scored.attention, scored.source_pieces, scored.pieces)
    assert found[0].links == sorted(attention_links(weights))
    assert found[0].posteriors == pytest.approx([weights[j, i] for i, j in found[0].links], abs=1e-6)


def test_neighbours_do_not_change_links(opened):
    translator, params = opened
    aligner = AttentionAligner(translator, params, PAIRS, threshold=0.1)
    whole = [*aligner.align_lines(0, 4)]
    assert any(len(one.links) > len(PAIRS.target[line]) for line, one in enumerate(whole))
    for line, one in enumerate(whole):
        (alone,) = aligner.align_lines(line, 1)
        assert alone.links == one.links
        assert alone.posteriors == pytest.approx(one.posteriors, abs=1e-6)


def test_a_model_that_cannot_align_is_an_error(opened, monkeypatch):
    translator, params = opened
    monkeypatch.setattr(translator.encoder, "num_sources", 2)
    with pytest.raises(UserError, match="reads 2 sources"):
        AttentionAligner(translator, params, PAIRS)
    monkeypatch.setattr(translator, "models", [type("Model", (), {"attention": "none"})])
    with pytest.raises(UserError, match="without attention"):
        AttentionAligner(translator, params, PAIRS)
