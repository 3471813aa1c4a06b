"""CharacTER against the package cer and a slow restatement of the authors' script."""

import random

import numpy as np
import pytest

from metrics_jax import CharacTER, parse
from metrics_jax.surface.character import shift, shift_cost
from tests.fixtures import texts

# By cer 1.2.0.
PAIRS = [
    ("yesterday she sold the old house", "she sold the old house yesterday", 0.28125),
    (
        "in the garden the children planted tall trees",
        "the children planted a tall tree in the garden",
        0.2148148148148148,
    ),
    ("bread fresh and butter", "fresh bread and butter", 0.22727272727272727),
    ("no", "a completely different sentence", 1.0),
    ("he reads reads the paper and then he sleeps", "then he sleeps and he reads the newspaper", 0.36046511627906974),
]


def distance(first, second):
    row = list(range(len(second) + 1))
    for i, item in enumerate(first, 1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(second, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (item != other))
    return row[-1]


def restated_shift(words, reference):
    """Every run of equal words in another place, moved there: the best, and among equals the last in the alphabet."""
    while True:
        moved = []
        for i in range(len(words)):
            for j in range(len(reference)):
                length = 0
                while words[i + length : i + length + 1] == reference[j + length : j + length + 1] != []:
                    length += 1
                if length and i != j:
                    rest = words[:i] + words[i + length :]
                    text = rest[:j] + words[i : i + length] + rest[j:]
                    moved.append((-distance(text, reference), text))
        if not moved or -max(moved)[0] >= distance(words, reference):
            return words
        words = max(moved)[1]


def test_golden_values():
    hypotheses, references, expected = zip(*PAIRS, strict=True)
    result = CharacTER()(hypotheses, references)
    np.testing.assert_allclose(result.segments, expected, rtol=0, atol=1e-12)
    assert result.score == pytest.approx(np.mean(expected))


def test_shifts_equal_the_restated_search():
    draw = random.Random(2)
    for _ in range(300):
        hypothesis, reference = (
            [draw.choice(["a", "b", "cc", "d", "e"]) for _ in range(draw.randrange(10))] for _ in range(2)
        )
        words = shift(hypothesis, reference)
        assert words == restated_shift(hypothesis, reference)
        cost, edits = shift_cost(hypothesis, words), distance(" ".join(words), " ".join(reference))
        metric = CharacTER(capped=False)
        result = metric([" ".join(hypothesis)], [" ".join(reference)])
        assert result.parts == {"num_edits": edits, "shift_cost": cost, "sys_len": len(" ".join(words))}
        if words:
            assert result.score == (edits + cost) / len(" ".join(words))
            assert CharacTER()([" ".join(hypothesis)], [" ".join(reference)]).score == min(result.score, 1)


def test_texts_of_different_lengths_have_no_beam():
    # Tercom's beam of 25 words around the diagonal hides equal words, and other shifts seem to be better.
    draw = random.Random(6)
    for _ in range(12):
        reference = [f"w{draw.randrange(30)}" for _ in range(55)]
        hypothesis = [word for word in reference[:20] if draw.random() < 0.8]
        assert shift(hypothesis, reference) == restated_shift(hypothesis, reference)


def test_cost_of_shifts():
    assert shift_cost(["a", "bb", "ccc", "d"], ["d", "a", "bb", "ccc"]) == 2  # one block of 1, 2 and 3 characters
    assert shift_cost(["a", "bb", "ccc", "d"], ["ccc", "d", "a", "bb"]) == 1.5
    assert shift_cost(["a", "bb"], ["a", "bb"]) == 0


def test_empty_texts_and_options():
    result = CharacTER()(["", "", "a b", "A"], ["", "a", " ", "a"])
    assert result.segments.tolist() == [0, 1, 1, 1]
    assert parse("character|lowercase:true")(["A"], ["a"]).score == 0
    assert parse("character|capped:false")(["a"], ["xyz w"]).score == 5
    assert CharacTER()(["a  b"], [["x y z", "a\tb"]]).score == 0  # the best reference


def test_unusual_texts():
    pairs = [(first, second) for first in texts.ODD for second in texts.ODD]
    segments = CharacTER()(*zip(*pairs, strict=True)).segments
    assert ((segments >= 0) & (segments <= 1)).all()
