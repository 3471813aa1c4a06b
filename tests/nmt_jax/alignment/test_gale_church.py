"""Sentence alignment by length: the cost, the best of all alignments, planted beads on text of the grammar."""

import math
from collections.abc import Iterator

import numpy as np
import pytest

from benchmarks.sentence_alignment import measured, plant
from nmt_jax.alignment.gale_church import Bead, align
from nmt_jax.data import grammar

TABLE_5 = {(1, 1): 0.89, (1, 0): 0.0099, (0, 1): 0.0099, (2, 1): 0.089, (1, 2): 0.089, (2, 2): 0.011}


def slow_cost(source: list[int], target: list[int], c: float = 1.0, variance: float = 6.8) -> float:
    """The cost of a bead, from the lengths of its sentences, in plain arithmetic."""
    one, other = sum(source), sum(target)
    delta = (other - c * one) / math.sqrt(variance * (one + other / c) / 2)
    both_tails = math.erfc(abs(delta) / math.sqrt(2))  # 2 (1 - Phi(|delta|))
    return -math.log(TABLE_5[len(source), len(target)]) - math.log(both_tails)


def all_alignments(source: list[int], target: list[int]) -> Iterator[list[tuple[list[int], list[int]]]]:
    if not source and not target:
        yield []
    for a, b in TABLE_5:
        if a <= len(source) and b <= len(target):
            for rest in all_alignments(source[a:], target[b:]):
                yield [(source[:a], target[:b]), *rest]


def lengths(beads: list[Bead], source: list[int], target: list[int]) -> list[tuple[list[int], list[int]]]:
    """The lengths of the sentences of each bead."""
    return [(source[slice(*bead.source)], target[slice(*bead.target)]) for bead in beads]


def draw(random: np.random.Generator, count: int, most: int = 200) -> list[int]:
    return random.integers(1, most, count).tolist()


@pytest.mark.parametrize("options", [{}, {"characters": 1.7, "variance": 12.0}])
def test_the_best_of_all_alignments_is_found(options):
    random, found = np.random.default_rng(0), set()
    arguments = tuple({"characters": 1.0, "variance": 6.8, **options}.values())
    for _ in range(60):
        source, target = draw(random, random.integers(0, 5)), draw(random, random.integers(0, 5))
        beads = align(source, target, **options)
        some = lengths(beads, source, target)
        best = min(all_alignments(source, target), key=lambda one: sum(slow_cost(*bead, *arguments) for bead in one))
        assert some == best
        assert [bead.cost for bead in beads] == pytest.approx([slow_cost(*bead, *arguments) for bead in some])
        found |= {(len(one), len(other)) for one, other in some}
    assert found == set(TABLE_5)  # beads of every shape are among the best


def test_costs_of_very_different_lengths_are_finite():
    (bead,) = align([100_000], [1])[:1]
    assert bead.source == (0, 1)
    assert 1000 < bead.cost < math.inf


@pytest.mark.parametrize("missing", [slice(0, 60), slice(100, 160), slice(140, 200)])
def test_the_band_grows_until_it_holds_the_best_path(missing):
    random = np.random.default_rng(1)
    source = draw(random, 200)
    target = [max(1, length + int(random.normal(0, 0.1 * length))) for length in source]
    del target[missing]
    whole = align(source, target, half_width=1000)
    assert align(source, target, half_width=4) == whole


def test_both_directions_agree():
    random = np.random.default_rng(2)
    source, target = draw(random, 120, 80), draw(random, 100, 80)
    forward = align(source, target)
    backward = [Bead(bead.target, bead.source, bead.cost) for bead in align(target, source)]
    assert sum(bead.cost for bead in forward) == pytest.approx(sum(bead.cost for bead in backward))


def test_every_sentence_is_in_one_bead():
    random = np.random.default_rng(3)
    beads = align(draw(random, 70), draw(random, 90))
    for side, count in ((0, 70), (1, 90)):
        spans = [bead[side] for bead in beads]
        assert [number for start, stop in spans for number in range(start, stop)] == list(range(count))
    assert align([], []) == []


def test_planted_merges_are_recovered():
    result = measured([plant(list(grammar.pairs("train", 400)), merge=0.05, omit=0.0)])
    assert result["2-1"]["planted"] + result["1-2"]["planted"] > 30
    for shape in ("all", "1-1"):
        assert min(result[shape]["precision"], result[shape]["recall"]) > 0.98
    for shape in ("2-1", "1-2"):
        assert result[shape]["precision"] > 0.98
        assert result[shape]["recall"] > 0.9


def test_alignment_recovers_after_an_omission():
    """As in the paper, the omitted sentence itself is joined to a neighbour: a bead of one side costs much."""
    result = measured([plant(list(grammar.pairs("train", 400)), merge=0.05, omit=0.01)])
    assert result["1-0"]["planted"] + result["0-1"]["planted"] > 2
    assert min(result["all"]["precision"], result["all"]["recall"]) > 0.95
