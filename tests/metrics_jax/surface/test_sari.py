"""SARI against the authors' script and the metric of Hugging Face, and its sources.

The values were computed with the functions of both programs (cocoxu/simplification at 0210f15, huggingface/evaluate at
68a4b0d), which give 26.827824 and 26.953602 for the example in their documentation. On 3,000 random texts, the largest
difference from either was 2e-14.
"""

import numpy as np
import pytest

from metrics_jax import BLEU, SARI, load
from metrics_jax.api import check_texts

BOATS = "the small boats were finally leaving the old harbour ."
SOURCES = [
    *[BOATS] * 3,
    "the old boat lies on the quiet shore of the lake",
    "Two girls fly a red kite, a red kite!",
    "a man reads",
    "a dog runs",
]
HYPOTHESES = [
    "the small boats you then go in .",
    "the boats were finally leaving the port .",
    "the small boats were leaving the old port .",
    "the old boat is on the shore",
    "two girls fly a red kite a red kite",
    "",
    "a dog runs",
]
LEFT = [
    "the small boats left the old harbour .",
    "the boats were leaving the port .",
    "boats were leaving the old port at last .",
]
REFERENCES = [
    *[LEFT] * 3,
    ["an old boat lies on the shore", "the boat is old"],
    ["two girls are flying a red kite on the shore ."],
    ["a man reads a book", "he reads"],
    ["a dog runs", "the dog is running fast", "a dog runs"],
]
XU = [0.33756983756983755, 0.4311956440245914, 0.5638972425518932, 0.4851815907522428]
XU += [0.49267676767676766, 0.09722222222222221, 0.20624999999999996]
EVALUATE = [0.3378242874210616, 0.44260944196289015, 0.5687568047744628, 0.4870438589188589]
EVALUATE += [0.4608744082428293, 0.2638888888888889, 0.6229166666666667]


@pytest.mark.parametrize(("spec", "expected"), [("sari", XU), ("sari|variant:tensor2tensor|tokenize:13a", EVALUATE)])
def test_golden_values(spec, expected):
    result = load(spec)(HYPOTHESES, REFERENCES, SOURCES)
    np.testing.assert_allclose(result.segments, 100 * np.array(expected), rtol=0, atol=1e-9)
    assert result.score == pytest.approx(100 * np.mean(expected), abs=1e-9)
    assert np.mean(list(result.parts.values())) == pytest.approx(result.score, abs=1e-9)
    assert load(result.signature)(HYPOTHESES, REFERENCES, SOURCES).score == result.score


def test_a_segment_depends_on_its_source_only():
    metric, grouped = SARI(), check_texts(HYPOTHESES, REFERENCES)
    alone = [metric([h], [r], [s]).score for h, r, s in zip(HYPOTHESES, grouped, SOURCES, strict=True)]
    np.testing.assert_array_equal(metric(HYPOTHESES, REFERENCES, SOURCES).segments, alone)
    other = metric(HYPOTHESES, REFERENCES, ["another text", *SOURCES[1:]]).segments
    assert other[0] != alone[0]
    np.testing.assert_array_equal(other[1:], alone[1:])


def test_every_pair_has_the_source_of_its_hypothesis():
    metric, references = SARI(), LEFT[:2]
    table = metric.pairwise(HYPOTHESES[:3], references, SOURCES[2:5])
    indexed = metric.index_texts([*HYPOTHESES[:3], *references], [*SOURCES[2:5], "", ""])
    expected = [
        [metric([h], [r], [s]).score for r in references] for h, s in zip(HYPOTHESES[:3], SOURCES[2:5], strict=True)
    ]
    np.testing.assert_array_equal(table, expected)
    np.testing.assert_array_equal(indexed.pairwise(np.arange(3), np.array([3, 4])), expected)


def test_sources_are_neither_missing_nor_ignored():
    with pytest.raises(ValueError, match="sari needs sources="):
        SARI()(HYPOTHESES, REFERENCES)
    with pytest.raises(ValueError, match="sari needs sources="):
        SARI().statistics(HYPOTHESES, REFERENCES)
    with pytest.raises(ValueError, match="bleu does not read sources"):
        BLEU()(HYPOTHESES, REFERENCES, SOURCES)
    with pytest.raises(ValueError, match="7 hypotheses but 6 sources"):
        SARI()(HYPOTHESES, REFERENCES, SOURCES[1:])
    with pytest.raises(TypeError, match="one per segment"):
        SARI()(HYPOTHESES, REFERENCES, "abcdefg")
