"""Packing: every item once per epoch, rows that are nearly full, batches that depend on their number only."""

import gzip
import itertools

import numpy as np
import pytest

from nmt_jax.data.batching.batches import Batches, iterator
from nmt_jax.data.batching.packed_pairs import PackedPairs
from nmt_jax.data.batching.packing import make_plan, plan_rows, round_lengths
from nmt_jax.data.batching.row_slice import RowSlice
from nmt_jax.data.vocabulary.vocab import EOS, PAD
from nmt_jax.errors import UserError
from tests.nmt_jax.data.batching.test_batches import Toy, assert_equal


@pytest.fixture(scope="module")
def toy() -> Toy:
    return Toy()


def make(corpus, **changes) -> PackedPairs:
    return PackedPairs(corpus, **({"batch_tokens": 200, "share": RowSlice(4), "seed": 3} | changes))


def items_of(ids, numbers) -> list[np.ndarray]:
    """The items of one side of a row; checks that they are numbered in order, and that padding follows them."""
    count = int(numbers.max(initial=0))
    filled = np.count_nonzero(numbers)
    assert (np.diff(numbers[:filled]) >= 0).all()
    assert (numbers[filled:] == 0).all()
    assert (ids[filled:] == PAD).all()
    return [ids[numbers == number] for number in range(1, count + 1)]


def pairs_of(batch) -> list[int]:
    """The pairs in a batch of `Toy`; checks that they are complete."""
    found = []
    for row in range(len(batch["source"])):
        sides = [items_of(batch[name][row], batch[f"{name}_packing"][row]) for name in ("source", "target")]
        for source, target in zip(*sides, strict=True):
            assert source[-1] == target[-1] == EOS
            assert {*source[:-1], *target[:-1]} == {source[0]}
            found.append(int(source[0]) - 10)
    return found


def epoch_of(batches, epoch=0) -> list[int]:
    first = epoch * batches.batches_per_epoch
    return [index for n in range(first, first + batches.batches_per_epoch) for index in pairs_of(batches[n])]


@pytest.mark.parametrize("sampling_alpha", [0.0, 0.5])
def test_an_epoch_contains_every_pair_once(toy, sampling_alpha):
    batches = make(toy, sampling_alpha=sampling_alpha, steps=1000)
    epochs = [epoch_of(batches, epoch) for epoch in range(3)]
    for found in epochs:
        assert sorted(found) == list(range(len(toy)))
    assert epochs[0] != epochs[1]
    assert len({len(batch["target"]) for batch in map(batches.__getitem__, range(20))}) == 1


def test_other_pairs_share_a_row_in_the_next_epoch():
    batches = make(Toy(size=2000, max_length=16), steps=1000)

    def neighbours(epoch):
        rows = [
            pairs_of({name: array[row : row + 1] for name, array in batches[n].items()})
            for n in range(epoch * batches.batches_per_epoch, (epoch + 1) * batches.batches_per_epoch)
            for row in range(4)
        ]
        return {pair for row in rows for pair in itertools.combinations(sorted(row), 2)}

    first, second = neighbours(0), neighbours(1)
    assert len(first & second) < 0.2 * len(first)


def test_random_segmentations_are_used_where_they_fit(toy):
    batches, best = make(toy, sampling_alpha=0.5), make(toy)
    tokens = [sum((one[n]["target"] != PAD).sum() for n in range(len(one))) for one in (batches, best)]
    assert tokens[0] > 1.2 * tokens[1] == 1.2 * toy.lengths[:, 1].sum()


@pytest.mark.parametrize("process_count", [2, 4])
def test_the_rows_of_all_processes_make_up_the_batch(toy, process_count):
    whole = make(toy, sampling_alpha=0.5)
    shares = [make(toy, sampling_alpha=0.5, share=RowSlice(4, i, process_count)) for i in range(process_count)]
    for n in range(len(whole)):
        parts = [share[n] for share in shares]
        assert_equal({key: np.concatenate([part[key] for part in parts]) for key in parts[0]}, whole[n])


def test_a_restored_iterator_continues_at_the_next_batch(toy):
    batches = make(toy, steps=90)
    first = iterator(batches)
    for n in range(40):
        assert_equal(next(first), batches[n])
    rest = list(iterator(make(toy, steps=90), first.get_state()))
    assert len(rest) == 50
    for n, batch in enumerate(rest, start=40):
        assert_equal(batch, batches[n])


def test_padding_is_the_share_of_places_without_a_token(toy):
    batches = make(toy)
    whole = [batches[n] for n in range(len(batches))]
    for key, share in batches.padding.items():
        empty = sum((batch[key] == PAD).sum() for batch in whole)
        assert share == pytest.approx(empty / sum(batch[key].size for batch in whole))


def test_the_budget_counts_target_tokens(toy):
    batches = make(toy, batch_tokens=1000)
    ((rows, source, target),) = batches.shapes
    assert max(source, target) == toy.max_length
    assert rows % 4 == 0
    assert rows * target <= 1000 < (rows + 4) * target
    with pytest.raises(UserError, match=r"batch_tokens = 30 is less than the 40 tokens of a packed row"):
        make(toy, batch_tokens=30)


@pytest.mark.parametrize("size", [1, 2, 7])
def test_few_pairs(size):
    batches = make(Toy(size=size))
    assert sorted(epoch_of(batches)) == list(range(size))


@pytest.mark.parametrize("seed", range(20))
def test_planned_rows_hold_all_items(seed):
    random = np.random.default_rng(seed)
    sides = random.integers(1, 4)
    room = random.integers(5, 60, sides)
    lengths = np.unique(random.integers(1, room + 1, (random.integers(1, 40), sides)), axis=0)
    counts = random.integers(1, 50, len(lengths))
    patterns = plan_rows(lengths, counts, room)
    placed = np.zeros_like(counts)
    for kinds, rows in patterns:
        assert (lengths[list(kinds)].sum(axis=0) <= room).all()
        np.add.at(placed, list(kinds), rows)
    np.testing.assert_array_equal(placed, counts)


def test_rounded_lengths_are_few_and_hardly_longer():
    lengths = np.arange(1, 5000)
    found = round_lengths(lengths)
    np.testing.assert_array_equal(found[:64], lengths[:64])
    assert (found >= lengths).all()
    assert (found <= lengths * 33 / 32).all()
    assert len(np.unique(found)) < 64 + 32 * 7


def test_the_sides_of_a_row_are_in_proportion_to_the_tokens():
    def sides(lengths, most):
        return make_plan(np.array(lengths), most).sides

    assert sides([[10, 20], [20, 40]] * 9, 128) == (64, 128)
    assert sides([[10, 20], [20, 40]] * 9, 100) == (56, 100)  # of 20 + 20 + 10
    assert sides([[1], [7]], 60) == (60,)
    assert sides([[30, 5], [1, 70], [1, 70]], 70) == (32, 70)  # enough for the longest item


def test_hardly_any_padding_is_left_on_multi30k(shared):
    texts = []
    for language in ("en", "de"):
        with gzip.open(shared / "data" / "multi30k" / f"train.{language}.gz", "rt", encoding="utf-8") as file:
            texts.append([len(line.split()) + 1 for line in file])
    corpus = Toy()
    corpus.lengths, corpus.max_length = np.array(texts, np.int32).T, 128
    packed = PackedPairs(corpus, batch_tokens=4096, share=RowSlice(8))
    buckets = Batches(corpus, batch_tokens=4096, num_buckets=6, share=RowSlice(8))
    assert packed.padding["target"] < 0.05
    assert packed.padding["source"] < 0.05
    assert min(buckets.padding.values()) > 0.1
