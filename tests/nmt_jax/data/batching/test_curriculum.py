"""Curricula: only easy enough examples in early batches, all of them later, and batches that depend on their number."""

import hashlib
import itertools
import math
from collections import Counter

import numpy as np
import pytest

from nmt_jax.data.batching.batches import Batches, iterator
from nmt_jax.data.batching.curriculum import Competence, CurriculumBatches
from nmt_jax.data.batching.packed_lines import PackedLines
from nmt_jax.data.batching.packed_pairs import PackedPairs
from nmt_jax.data.batching.row_slice import ALL, RowSlice
from nmt_jax.data.prepared.difficulty import of_texts
from nmt_jax.data.vocabulary.vocab import EOS
from tests.nmt_jax.data.batching.test_batches import Toy, assert_equal

STEPS = 60
KINDS = ("buckets", "packed", "lines")


@pytest.fixture(scope="module")
def toy() -> Toy:
    return Toy()


def text(size=300) -> np.ndarray:
    """Lines of tokens; all tokens of line i are i + 10."""
    lengths = np.random.default_rng(5).integers(1, 25, size)
    return np.concatenate([[i + 10] * n + [EOS] for i, n in enumerate(lengths)]).astype(np.int32)


def make(kind, toy, *, share=ALL, seed=3, steps=400, schedule="linear", measure="length", alpha=0.0):
    settings = {"batch_tokens": 200, "share": share, "seed": seed, "steps": steps}
    if kind == "buckets":
        batches = Batches(toy, num_buckets=4, sampling_alpha=alpha, **settings)
    elif kind == "packed":
        batches = PackedPairs(toy, sampling_alpha=alpha, **settings)
    else:
        batches = PackedLines(text(), block_length=20, **settings)
    difficulty = batches.difficulty(measure) if kind == "lines" else toy.lengths[:, 0]
    return CurriculumBatches(batches, difficulty, Competence(schedule, STEPS, 0.05))


def examples_of(batch) -> list[int]:
    """The examples in a batch, once for each time they occur."""
    array = batch.get("source", batch.get("labels"))
    packing = batch.get("source_packing", batch.get("packing", np.ones_like(array)))
    return [
        int(row[numbers == number][0]) - 10
        for row, numbers in zip(array, packing, strict=True)
        for number in range(1, numbers.max() + 1)
        if row[numbers == number][0] >= 10
    ]


@pytest.mark.parametrize("initial", [0.01, 0.2, 1.0])
def test_competence_is_the_published_equation(initial):
    linear, root = (Competence(schedule, 50, initial) for schedule in ("linear", "square_root"))
    for t in range(80):
        assert linear(t) == pytest.approx(min(1, t * (1 - initial) / 50 + initial), abs=1e-12)
        assert root(t) == pytest.approx(min(1, math.sqrt(t * (1 - initial**2) / 50 + initial**2)), abs=1e-12)
    assert linear(0) == pytest.approx(initial)
    assert linear(50) == root(50) == 1


@pytest.mark.parametrize("schedule", ["linear", "square_root"])
@pytest.mark.parametrize("kind", KINDS[:2])
def test_no_example_is_harder_than_the_competence(kind, schedule, toy):
    batches = make(kind, toy, schedule=schedule)
    ranks = np.empty(len(toy), int)
    ranks[batches.order] = np.arange(1, len(toy) + 1)
    assert (np.diff(toy.lengths[batches.order, 0]) >= 0).all()
    hardest = []
    for t in range(STEPS):
        found = examples_of(batches[t])
        assert found
        assert len(found) == len(set(found))
        assert max(ranks[found]) / len(toy) <= batches.competence(t)
        hardest.append(max(ranks[found]))
    assert max(hardest) > 0.9 * len(toy)  # the competence is made use of


def test_lines_are_as_hard_as_the_whole_line(toy):
    batches = make("lines", toy)
    lengths = np.diff(np.flatnonzero(text() == EOS), prepend=-1)
    limits = np.sort(lengths)
    parts = batches.batches.difficulty("length")
    assert len(parts) > len(lengths)  # some are longer than a row
    assert Counter(parts)[25] == 2 * Counter(lengths)[25] > 0
    for t in range(STEPS):
        share = np.mean(parts <= lengths[examples_of(batches[t])].max() - 1)
        assert share <= batches.competence(t)
    assert limits[-1] == 25


@pytest.mark.parametrize("kind", KINDS)
def test_epochs_of_all_examples_follow(kind, toy):
    batches = make(kind, toy)
    plain = batches.batches
    for n in range(plain.batches_per_epoch):
        assert_equal(batches[STEPS + n], plain[n])
    epoch = [examples_of(plain[n]) for n in range(plain.batches_per_epoch)]
    assert len(set(itertools.chain(*epoch))) == (300 if kind == "lines" else len(toy))
    assert len(batches) == 400
    assert (batches.shapes, batches.padding) == (plain.shapes, plain.padding)
    with pytest.raises(IndexError):
        batches[400]


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_depends_only_on_its_number(kind, toy):
    walked = make(kind, toy)
    walk = [walked[n] for n in range(STEPS + 5)]
    for n in (64, 59, 30, 1, 0):
        assert_equal(make(kind, toy, steps=70)[n], walk[n])
    assert examples_of(make(kind, toy, seed=4)[30]) != examples_of(walk[30])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [0, 30, STEPS])
def test_processes_build_the_rows_of_one_batch(kind, n, toy):
    whole = make(kind, toy, share=RowSlice(4))[n]
    parts = [make(kind, toy, share=RowSlice(4, index, 2))[n] for index in range(2)]
    assert_equal(whole, {name: np.concatenate([part[name] for part in parts]) for name in whole})


def test_an_iterator_resumes_in_the_curriculum_and_after_it(toy):
    batches = make("buckets", toy, steps=STEPS + 20)
    for stop in (20, STEPS + 3):
        first = iterator(batches)
        for _ in range(stop):
            next(first)
        resumed = iterator(make("buckets", toy, steps=STEPS + 20), first.get_state())
        for batch in itertools.islice(resumed, 5):
            assert_equal(batch, next(first))


@pytest.mark.parametrize("kind", KINDS[:2])
def test_examples_have_the_same_chance(kind, toy):
    batches = make(kind, toy).batches
    easy = np.flatnonzero(toy.lengths[:, 0] < 14)  # in several buckets
    draw = batches.drawing(easy)
    counts = Counter(itertools.chain.from_iterable(examples_of(draw(len(easy), n)) for n in range(400)))
    assert set(counts) == set(easy)
    drawn = np.array(list(counts.values()))
    assert drawn.std() / drawn.mean() < 1.3 / math.sqrt(drawn.mean())


def test_random_segmentations_differ_from_step_to_step(toy):
    draw = make("buckets", toy, alpha=0.1).batches.drawing(np.arange(1))
    assert_equal(draw(1, 0), draw(1, 0))
    lengths = {int((draw(1, n)["source"] != 0).sum()) for n in range(8)}
    assert len(lengths) > 1


def test_the_rarity_of_a_text_is_the_sum_over_its_words():
    ids, starts = np.array([4, 5, 3, 4, 3, 4, 4, 6, 3]), np.array([0, 3, 5])
    frequencies = {4: 4 / 9, 5: 1 / 9, 3: 3 / 9, 6: 1 / 9}
    lines = ([4, 5, 3], [4, 3], [4, 4, 6, 3])
    expected = [-sum(math.log(frequencies[word]) for word in line) for line in lines]
    np.testing.assert_allclose(of_texts(ids, starts, "rarity"), expected, rtol=1e-12)
    np.testing.assert_array_equal(of_texts(ids, starts, "length"), [3, 2, 4])


def test_batches_without_a_curriculum_are_what_they_were(toy):
    """The digests are of batches before there were curricula."""
    digests = []
    for kind in KINDS:
        batches, digest = make(kind, toy).batches, hashlib.sha256()
        for n in range(0, 400, 50):
            for name, array in sorted(batches[n].items()):
                digest.update(name.encode() + array.tobytes())
        digests.append(digest.hexdigest()[:12])
    assert digests == ["32a8a76f3c93", "ba2156c6d19c", "8ade94be4ee9"]
