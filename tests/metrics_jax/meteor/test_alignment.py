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
    """A small alignment, and groups of the other positions."""
    hypothesis, reference = list(range(rng.randint(1, 8))), list(range(rng.randint(1, 8)))
    rng.shuffle(hypothesis)
    rng.shuffle(reference)
    given = {hypothesis.pop(): reference.pop() for _ in range(min(len(hypothesis), len(reference), rng.randint(0, 4)))}
    groups = []
    number = rng.randint(1, 3)
    for index in range(number):
        own, others = sorted(hypothesis[index::number]), sorted(reference[index::number])
        if own and others:
            partners = {i: sorted(rng.sample(others, rng.randint(1, len(others)))) for i in own}
            groups.append(Group(own, others, rng.choice([None, partners])))
    return given, groups


def best_rank(given: dict[int, int], groups: list[Group]) -> tuple[int, int, int]:
    options = [(i, partners_of(group, i)) for group in groups for i in group.hypothesis]
    return min(map(rank, every_extension(given, options)))


def is_valid(found: dict[int, int], given: dict[int, int], groups: list[Group]) -> bool:
    kept = found.items() >= given.items() and len(set(found.values())) == len(found)
    matches = {(i, j) for group in groups for i in group.hypothesis for j in partners_of(group, i)}
    return kept and found.items() - given.items() <= matches


def test_no_alignment_has_more_matches_or_fewer_crossings_or_fewer_chunks():
    for seed in range(400):
        given, groups = draw(random.Random(seed))
        found = extend(given, groups)
        assert is_valid(found, given, groups), seed
        assert rank(found) == best_rank(given, groups), seed


def test_a_second_search_finds_what_a_narrow_one_missed(monkeypatch):
    missed = 0
    for seed in range(200):
        given, groups = draw(random.Random(seed))
        with monkeypatch.context() as patch:
            patch.setattr(alignment, "_BEAM", 1)
            wide = extend(given, groups)
            patch.setattr(alignment, "_STEPS", sum(group.steps for group in groups if not group.is_settled))
            narrow = extend(given, groups)
        assert rank(wide) == best_rank(given, groups) <= rank(narrow), seed
        assert is_valid(narrow, given, groups), seed
        missed += rank(wide) < rank(narrow)
    assert missed


@pytest.mark.parametrize("steps", [0, 4, 30])
def test_with_too_few_steps_matches_are_still_one_to_one_and_as_many_where_all_words_match(steps, monkeypatch):
    monkeypatch.setattr(alignment, "_STEPS", steps)
    for seed in range(200):
        given, groups = draw(random.Random(seed))
        found = extend(given, groups)
        assert is_valid(found, given, groups), seed
        for group in groups:
            if group.partners is None:
                matched = sum(i in found for i in group.hypothesis)
                assert matched == min(len(group.hypothesis), len(group.reference)), seed


def test_fewer_crossings_come_before_fewer_chunks():
    # One word twice on the left: its first copy crosses nothing, its second one would make one chunk with the rest.
    assert extend({2: 1}, [Group([0, 3], [0])]) == {2: 1, 0: 0}
    # Without a crossing either way, the chunk decides.
    assert extend({2: 1}, [Group([0, 1], [0])]) == {2: 1, 1: 0}


def test_matches_of_earlier_stages_count_as_crossed():
    assert extend({1: 0, 2: 2}, [Group([3], [1, 3])]) == {1: 0, 2: 2, 3: 3}


def test_chunks():
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
        places = [[i for i, one in enumerate(text) if one == word] for text in (left, right)]
        if all(places):
            groups.append(Group(*places))
    return groups


@pytest.mark.parametrize(
    ("vocabulary", "hypothesis", "reference"),
    [(3, 150, 150), (3, 150, 140), (2, 20, 300), (1, 3000, 2000), (20, 400, 300)],
)
def test_monstrous_texts_come_to_an_end_and_always_to_the_same(vocabulary, hypothesis, reference):
    groups = words_of(vocabulary, hypothesis, reference, 0)
    found = extend({}, groups)
    assert len(found) == sum(min(len(group.hypothesis), len(group.reference)) for group in groups)
    assert len(set(found.values())) == len(found)
    assert extend({}, groups) == found


def test_a_monstrous_group_of_synonyms_comes_to_an_end():
    words, others = list(range(0, 400, 2)), list(range(1, 400, 2))
    group = Group(words, others, {i: [j for j in others if abs(i - j) > 3] for i in words})
    found = extend({}, [group])
    assert len(set(found.values())) == len(found) > 190
