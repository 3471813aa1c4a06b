import itertools
import random

import pytest

from metrics_jax.meteor import alignment
from metrics_jax.meteor.alignment import Group, count_chunks, extend


def count_crossings(matches: dict[int, int]) -> int:
    pairs = itertools.combinations(matches.items(), 2)
    return sum((i - other_i) * (j - other_j) < 0 for (i, j), (other_i, other_j) in pairs)


def partners_of(group: Group, i: int) -> list[int]:
    return list(group.reference if group.partners is None else group.partners[i])


def every_extension(matches: dict[int, int], options: list[tuple[int, list[int]]]):
    if not options:
        yield matches
        return
    (i, partners), *rest = options
    yield from every_extension(matches, rest)
    for j in partners:
        if j not in matches.values():
            yield from every_extension(matches | {i: j}, rest)


def rank(matches: dict[int, int]) -> tuple[int, int, int]:
    return -len(matches), count_crossings(matches), count_chunks(matches)


def draw(rng: random.Random) -> tuple[dict[int, int], list[Group]]:
    """A small alignment, and groups of other positions."""
    hypothesis, reference = list(range(rng.randint(1, 8))), list(range(rng.randint(1, 8)))
    rng.shuffle(hypothesis)
    rng.shuffle(reference)
    initial = {
        hypothesis.pop(): reference.pop() for _ in range(min(len(hypothesis), len(reference), rng.randint(0, 4)))
    }
    groups = []
    number = rng.randint(1, 3)
    for index in range(number):
        words, others = sorted(hypothesis[index::number]), sorted(reference[index::number])
        if words and others:
            partners = {i: sorted(rng.sample(others, rng.randint(1, len(others)))) for i in words}
            groups.append(Group(words, others, rng.choice([None, partners])))
    return initial, groups


def best_rank(initial: dict[int, int], groups: list[Group]) -> tuple[int, int, int]:
    options = [(i, partners_of(group, i)) for group in groups for i in group.hypothesis]
    return min(map(rank, every_extension(initial, options)))


def is_valid(found: dict[int, int], initial: dict[int, int], groups: list[Group]) -> bool:
    kept = found.items() >= initial.items() and len(set(found.values())) == len(found)
    matches = {(i, j) for group in groups for i in group.hypothesis for j in partners_of(group, i)}
    return kept and found.items() - initial.items() <= matches


def test_alignments_are_optimal():
    for seed in range(400):
        initial, groups = draw(random.Random(seed))
        found = extend(initial, groups)
        assert is_valid(found, initial, groups), seed
        assert rank(found) == best_rank(initial, groups), seed


def test_the_second_search_improves_a_narrow_one(monkeypatch):
    missed = 0
    for seed in range(200):
        initial, groups = draw(random.Random(seed))
        with monkeypatch.context() as patch:
            patch.setattr(alignment, "_BEAM", 1)
            wide = extend(initial, groups)
            patch.setattr(alignment, "_STEPS", sum(group.steps for group in groups if not group.is_settled))
            narrow = extend(initial, groups)
        assert rank(wide) == best_rank(initial, groups) <= rank(narrow), seed
        assert is_valid(narrow, initial, groups), seed
        missed += rank(wide) < rank(narrow)
    assert missed


@pytest.mark.parametrize("steps", [0, 4, 30])
def test_with_too_few_steps_matches_are_valid_and_complete(steps, monkeypatch):
    monkeypatch.setattr(alignment, "_STEPS", steps)
    for seed in range(200):
        initial, groups = draw(random.Random(seed))
        found = extend(initial, groups)
        assert is_valid(found, initial, groups), seed
        for group in groups:
            if group.partners is None:
                matched = sum(i in found for i in group.hypothesis)
                assert matched == min(len(group.hypothesis), len(group.reference)), seed


def test_fewer_crossings_come_before_fewer_chunks():
    # A word occurs twice on the left: its first copy causes no crossing, its second one would save a chunk.
    assert extend({2: 1}, [Group([0, 3], [0])]) == {2: 1, 0: 0}
    # Without crossings, the number of chunks decides.
    assert extend({2: 1}, [Group([0, 1], [0])]) == {2: 1, 1: 0}


def test_crossings_with_earlier_stages_count():
    assert extend({1: 0, 2: 2}, [Group([3], [1, 3])]) == {1: 0, 2: 2, 3: 3}


def test_count_chunks():
    assert count_chunks({}) == 0
    assert count_chunks({0: 0, 1: 1, 2: 2}) == 1
    assert count_chunks({0: 0, 1: 1, 3: 2}) == 2
    assert count_chunks({0: 1, 1: 0}) == 2


def words_of(vocabulary: int, hypothesis: int, reference: int, seed: int) -> list[Group]:
    rng = random.Random(seed)
    left = [rng.randrange(vocabulary) for _ in range(hypothesis)]
    right = [rng.randrange(vocabulary) for _ in range(reference)]
    groups = []
    for word in range(vocabulary):
        positions = [[i for i, one in enumerate(text) if one == word] for text in (left, right)]
        if all(positions):
            groups.append(Group(*positions))
    return groups


@pytest.mark.parametrize(
    ("vocabulary", "hypothesis", "reference"),
    [(3, 150, 150), (3, 150, 140), (2, 20, 300), (1, 3000, 2000), (20, 400, 300)],
)
def test_long_texts_terminate_with_the_same_result(vocabulary, hypothesis, reference, monkeypatch):
    monkeypatch.setattr(alignment, "_STEPS", 2**17)
    groups = words_of(vocabulary, hypothesis, reference, 0)
    found = extend({}, groups)
    assert len(found) == sum(min(len(group.hypothesis), len(group.reference)) for group in groups)
    assert len(set(found.values())) == len(found)
    assert extend({}, groups) == found


def test_a_large_group_of_synonyms_terminates():
    words, others = list(range(0, 400, 2)), list(range(1, 400, 2))
    group = Group(words, others, {i: [j for j in others if abs(i - j) > 3] for i in words})
    found = extend({}, [group])
    assert len(set(found.values())) == len(found) > 190
