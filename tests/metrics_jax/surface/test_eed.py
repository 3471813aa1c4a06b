"""EED against torchmetrics, which has the authors' program, and against a slow restatement of its recursion."""

import random

import numpy as np
import pytest

from metrics_jax import EED, parse
from tests.fixtures import texts

# By torchmetrics 1.9.0.
PAIRS = [
    (
        "the ship, they say, left the harbour at 5.30.",
        ["they say the ship left the harbour at 5.30.", "the ship left"],
        0.20303605313092976,
    ),
    ("Mr. Brown sold sold sold it!", ["It was sold by Mr. Brown."], 0.5260115606936416),
    ("", ["a word"], 0.801980198019802),
    ("no reference", [""], 1.0),
    ("exactly equal", ["exactly equal"], 0.0196078431372549),
]


def restated(metric, hypothesis, reference):
    """The table by its definition: cost[i, j] of the first i and j characters."""
    places = range(len(hypothesis) + 1)
    cost = {(i, 0): float(i > 0) for i in places}
    visits = [0] * len(places)
    for j, character in enumerate(reference, start=1):
        cost[0, j] = cost[0, j - 1] + 1
        for i in places[1:]:
            replaced = cost[i - 1, j - 1] + (hypothesis[i - 1] != character)
            cost[i, j] = min(replaced, cost[i - 1, j] + metric.deletion, cost[i, j - 1] + metric.insertion)
        cheapest = min(places, key=lambda i: cost[i, j])
        visits[cheapest] += 1
        if character == " ":
            jump = cost[cheapest, j] + metric.alpha
            cost |= {(i, j): min(cost[i, j], jump) for i in places}
    coverage = metric.rho * sum(abs(count - 1) for count in visits)
    return min(1, (cost[len(hypothesis), len(reference)] + coverage) / (len(reference) + coverage))


def test_golden_values():
    hypotheses, references, expected = zip(*PAIRS, strict=True)
    result = EED()(hypotheses, references)
    np.testing.assert_allclose(result.segments, expected, rtol=0, atol=1e-12)
    assert result.score == pytest.approx(np.mean(expected))
    japanese = EED("ja")(["ｘ東京へ行く 1"], ["東京に行く1"])
    assert japanese.score == pytest.approx(0.49333333333333335, abs=1e-12)


@pytest.mark.parametrize(
    "options", ["", "|alpha:0.5|rho:0.1|deletion:0.3|insertion:0.7", "|insertion:3.0", "|language:ja"]
)
def test_recursion(options, monkeypatch):
    metric, draw = parse(f"eed{options}"), random.Random(3)
    pairs = [["".join(draw.choices("abc  ", k=draw.randrange(1, 14))) for _ in range(2)] for _ in range(60)]
    hypotheses, references = zip(*pairs, strict=True)
    expected = [restated(metric, *map(metric.characters, pair)) for pair in pairs]
    whole = metric(hypotheses, references)
    np.testing.assert_allclose(whole.segments, expected, rtol=0, atol=1e-12)
    monkeypatch.setattr("metrics_jax.surface.eed._BLOCK", 20)
    np.testing.assert_array_equal(metric(hypotheses, references).segments, whole.segments)


def test_rounding_decides_which_position_is_the_cheapest():
    # 0.2 + 0.2 + 0.2 is a little more than 0.6.
    metric = EED(deletion=0.2, insertion=0.6)
    for pair in (("abcabcabca", "cabcab aab"), ("aaabbbccc abc", "abc cba abc")):
        assert metric(*([text] for text in pair)).score == restated(metric, *map(metric.characters, pair))


@pytest.mark.parametrize(
    ("text", "characters"),
    [
        ("Yes, it costs 3 . 50, or 4.5 !\n", " Yes , it costs 3.50 , or 4 .5 ! "),
        ("Mr. Bell\tand Dr. Hill", " Mr. Bell and Dr. Hill "),
        ("Mr Bell", " Mr.ell "),
        ("e. g. in the U. S.", " e.g. in the U.S. "),
    ],
)
def test_english(text, characters):
    assert EED().characters(text) == characters


def test_parts_and_best_reference():
    result = EED(rho=0.0)(["ab"], [["xyzw", "ab", "abc"]])
    assert result.parts == {"distance": 0, "coverage": 0, "ref_length": 4}
    assert result.score == 0
    assert EED("ja", rho=0.0)(["", "a"], ["", ""]).segments.tolist() == [0, 1]


def test_unusual_texts():
    pairs = [(first, second) for first in texts.ODD for second in texts.ODD]
    segments = EED("ja")(*zip(*pairs, strict=True)).segments
    assert ((segments >= 0) & (segments <= 1)).all()


@pytest.mark.parametrize("options", [{"language": "de"}, {"alpha": -1.0}, {"rho": float("nan")}, {"deletion": 1e9}])
def test_invalid_options(options):
    with pytest.raises(ValueError, match=f"^{next(iter(options))}="):
        EED(**options)
