"""CIDEr and CIDEr-D against the authors' programs and a slow restatement of the equations.

The values of CIDEr-D are by pycocoevalcap 1.2; those of CIDEr by the same program without clipping and length penalty,
which is how the authors' first program (vrama91/cider) differs from it.
"""

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings

from metrics_jax import CIDEr, parse
from metrics_jax.surface.cider import DocumentFrequencies
from tests.fixtures import texts

HYPOTHESES = ["the old boat lies on the quiet shore", "two girls fly a red kite a red kite", "", "a dog runs"]
REFERENCES = [
    ["an old boat lies on the shore", "the boat is old"],
    ["two girls are flying a red kite on the shore"],
    ["a man reads"],
    ["a dog runs", "the dog is running fast", "a dog runs"],
]


@pytest.mark.parametrize(
    ("options", "score", "segments"),
    [
        ("", 2.7906990787108388, [3.6119215169810754, 2.246961148148912, 0.0, 5.303913649713367]),
        ("|sigma:2", 2.4960394035544073, [2.778624963527243, 2.0106691787180044, 0.0, 5.194863471972382]),
        ("|variant:cider", 3.2172343772648944, [3.8372989017939414, 3.710363056142291, 0.0, 5.321275551123344]),
    ],
)
def test_golden_values(options, score, segments):
    result = parse(f"cider{options}")(HYPOTHESES, REFERENCES)
    np.testing.assert_allclose(result.segments, segments, rtol=0, atol=1e-9)
    assert result.score == pytest.approx(score, abs=1e-9)
    assert result.parts["similarity"].mean() == pytest.approx(score, abs=1e-9)


def restated(metric, hypotheses, references):
    """The equations of the paper, with a full vector over all n-grams of the corpus."""

    def count(ngram, text):
        words = text.split()
        return sum(tuple(words[i : i + len(ngram)]) == ngram for i in range(len(words)))

    every = [*hypotheses, *(text for group in references for text in group)]
    total = np.zeros(len(hypotheses))
    for n in range(1, metric.max_ngram_order + 1):
        ngrams = sorted({tuple(text.split()[i : i + n]) for text in every for i in range(len(text.split()) - n + 1)})
        present = [sum(any(count(ngram, text) for text in group) for group in references) for ngram in ngrams]
        idf = np.array([math.log(len(references) / max(number, 1)) for number in present])
        for k, (hypothesis, group) in enumerate(zip(hypotheses, references, strict=True)):
            g = idf * [count(ngram, hypothesis) for ngram in ngrams]
            for reference in group:
                s = idf * [count(ngram, reference) for ngram in ngrams]
                clipped, penalty = g, 1.0
                if metric.variant == "cider-d":
                    bigrams = [max(len(text.split()) - 1, 0) for text in (hypothesis, reference)]
                    clipped = np.minimum(g, s)
                    penalty = math.exp(-((bigrams[0] - bigrams[1]) ** 2) / 2 / metric.sigma**2)
                norms = np.linalg.norm(g) * np.linalg.norm(s)
                total[k] += 10 * penalty * (clipped @ s) / norms / len(group) if norms else 0
    return total / metric.max_ngram_order


@pytest.mark.parametrize("options", ["", "|variant:cider", "|max_ngram_order:2|sigma:1.5"])
def test_equations(options):
    metric, draw = parse(f"cider{options}"), random.Random(1)

    def some(most):
        return " ".join(draw.choice("abcd") for _ in range(draw.randrange(most)))

    for size in (1, 2, 5):
        hypotheses, references = [some(9) for _ in range(size)], [[some(9), some(5)] for _ in range(size)]
        result = metric(hypotheses, references)
        np.testing.assert_allclose(result.segments, restated(metric, hypotheses, references), atol=1e-12)
        assert result.score == pytest.approx(result.segments.mean())


def test_fixed_frequencies_make_segments_independent():
    metric = CIDEr().fitted(REFERENCES)
    both = metric(HYPOTHESES, REFERENCES)
    np.testing.assert_array_equal(both.segments, CIDEr()(HYPOTHESES, REFERENCES).segments)
    alone = [metric([h], [r]).score for h, r in zip(HYPOTHESES, REFERENCES, strict=True)]
    np.testing.assert_array_equal(both.segments, alone)
    assert parse(both.signature, frequencies=metric.frequencies) == metric
    with pytest.raises(ValueError, match="pass the same one as frequencies="):
        parse(both.signature)


def test_frequencies():
    found = DocumentFrequencies.fit([[[("a",), ("a",)], [("a",), ("b",)]], [[("a",)]]])
    assert found == DocumentFrequencies({("a",): 2, ("b",): 1}, 2)
    assert [found.idf((word,)) for word in "abc"] == [0, math.log(2), math.log(2)]
    assert found.fingerprint != DocumentFrequencies(found.counts, 3).fingerprint


@pytest.mark.parametrize("variant", ["cider", "cider-d"])
@settings(max_examples=25, deadline=None)
@given(texts.segments(texts.lines))
def test_range_and_order_of_references(variant, pairs):
    hypotheses, references = zip(*pairs, strict=True)
    metric = CIDEr(variant).fitted([*references, ["some other text"]])
    result = metric(hypotheses, references)
    assert ((result.segments >= 0) & (result.segments <= 10 + 1e-9)).all()
    assert all(segment == 0 for text, segment in zip(hypotheses, result.segments, strict=True) if not text.split())
    backwards = metric(hypotheses, [group[::-1] for group in references])
    np.testing.assert_allclose(backwards.segments, result.segments, atol=1e-12)


def test_identical_texts_and_extremes():
    lines = ["a b c d", "e f g h i", "j k l m"]
    assert CIDEr()(lines, lines).score == pytest.approx(10)
    assert CIDEr()(["a b"], ["a b"]).score == 0  # every n-gram is in all documents
    assert CIDEr()(["x"] * 3, lines).score == 0
    assert CIDEr(lowercase=True, tokenize="13a")(["A B c d."] * 2, ["a b c d .", "x"]).segments[0] == pytest.approx(10)


@pytest.mark.parametrize("options", [{"variant": "c"}, {"max_ngram_order": 0}, {"sigma": 0.0}, {"tokenize": "x"}])
def test_invalid_options(options):
    with pytest.raises(ValueError, match=f"^{next(iter(options))}="):
        CIDEr(**options)


def test_fitting_needs_references():
    for references, error, words in (([], ValueError, "no segments"), ("ab", TypeError, "not a single string")):
        with pytest.raises(error, match=words):
            CIDEr().fitted(references)
