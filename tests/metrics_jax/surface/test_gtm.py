"""GTM: worked examples, and a slow restatement of the greedy matching."""

import random

import numpy as np
import pytest

from metrics_jax import GTM, WordOverlap, parse
from metrics_jax.surface.gtm import runs
from tests.fixtures import texts


def restated_runs(hypothesis, reference):
    """In a grid of equal words, take the longest diagonal and cross out its rows and columns, until no cell is left."""
    grid = {(i, j) for i, word in enumerate(hypothesis) for j, other in enumerate(reference) if word == other}
    found = []
    while grid:
        lengths = {}
        for i, j in grid:
            length = 1
            while (i + length, j + length) in grid:
                length += 1
            lengths[i, j] = length
        i, j = min(grid, key=lambda cell: (-lengths[cell], cell))
        found.append((i, j, lengths[i, j]))
        across = range(lengths[i, j])
        grid -= {cell for cell in grid if cell[0] - i in across or cell[1] - j in across}
    return found


@pytest.mark.parametrize("seed", range(3))
def test_runs_equal_the_restated_matching(seed):
    draw = random.Random(seed)
    for _ in range(100):
        hypothesis, reference = (draw.choices("abc" if seed else "abcdefgh", k=draw.randrange(16)) for _ in range(2))
        assert runs(hypothesis, reference) == restated_runs(hypothesis, reference)


@pytest.mark.parametrize(
    ("exponent", "size"),
    [(1, 7), (2, (4**2 + 2**2 + 1**2) ** 0.5), (1.5, (4**1.5 + 2**1.5 + 1) ** (2 / 3)), (100, 4)],
)
def test_runs_of_four_two_and_one(exponent, size):
    hypothesis, reference = "e f x a b c d y g", "a b c d z e f g"
    assert runs(hypothesis.split(), reference.split()) == [(3, 0, 4), (0, 5, 2), (8, 7, 1)]
    result = GTM(exponent)([hypothesis], [reference])
    assert result.parts["match_size"] == pytest.approx(size)
    assert result.parts["precision"] == pytest.approx(size / 9)
    assert result.parts["recall"] == pytest.approx(size / 8)
    precision, recall = result.parts["precision"], result.parts["recall"]
    assert result.score == pytest.approx(2 * precision * recall / (precision + recall))


def test_no_word_is_matched_twice():
    # Three of five words are in the reference, which has `the` once and `cat` once.
    result = GTM()(["the the the cat sat"], ["the cat runs"])
    assert result.parts["match_size"] == 2
    assert result.score == pytest.approx(2 * 2 / (5 + 3))


def test_longer_runs_are_better():
    reference = "a b c d e f"
    for exponent in (1.5, 2.0):
        scores = GTM(exponent)(["a b c d e f", "d e f a b c", "e f c d a b", "f e d c b a"], [reference] * 4).segments
        assert scores[0] == 1
        assert (np.diff(scores) < 0).all()
    np.testing.assert_array_equal(GTM()(["a b c d e f", "f e d c b a"], [reference] * 2).segments, 1)


def test_greedy_matching_may_miss_the_best_one():
    # Runs of 3 and 3 would be better for exponents near 1, but the run of 4 leaves single words.
    assert [
        length
        for *_, length in runs(
            ["a", "b", "c", "d", "e", "f"], ["a", "b", "c", "x", "d", "e", "f", "y", "b", "c", "d", "e"]
        )
    ] == [4, 1, 1]


def test_exponent_1_counts_common_words():
    draw = random.Random(4)
    lines = [" ".join(draw.choices("abcd", k=draw.randrange(8))) for _ in range(40)]
    mine, others = GTM()(lines[:20], lines[20:]), WordOverlap()(lines[:20], lines[20:])
    np.testing.assert_allclose(mine.segments, others.segments, atol=1e-12)
    assert mine.score == pytest.approx(others.score)
    greedy = [
        sum(length for *_, length in runs(a.split(), b.split())) for a, b in zip(lines[:20], lines[20:], strict=True)
    ]
    assert GTM().statistics(lines[:20], lines[20:])[:, 0].tolist() == greedy


def test_references_sums_and_options():
    result = GTM(2.0)(["a b", "c d e"], [["b a", "a b x"], "c d e"])
    np.testing.assert_allclose(result.segments, [2 * 2 / 5, 1])
    assert result.score == pytest.approx(2 * 5 / (5 + 6))
    assert parse("gtm|lowercase:true|tokenize:13a")(["A b."], ["a b ."]).score == 1
    numbers = " ".join(map(str, range(2000)))
    assert GTM(100.0)([numbers], [numbers]).score == 1  # 2000^100 is not finite


@pytest.mark.parametrize("exponent", [1.0, 2.0])
def test_unusual_texts(exponent):
    pairs = [(first, second) for first in texts.ODD for second in texts.ODD]
    segments = GTM(exponent)(*zip(*pairs, strict=True)).segments
    assert ((segments >= 0) & (segments <= 1)).all()


@pytest.mark.parametrize("options", [{"exponent": 0.5}, {"exponent": float("nan")}, {"tokenize": "x"}])
def test_invalid_options(options):
    with pytest.raises(ValueError, match=f"^{next(iter(options))}="):
        GTM(**options)
