"""Batches: every pair once per epoch, few shapes, pure functions of their number, for any number of processes."""

import itertools

import numpy as np
import pytest
from orbax.checkpoint import v1 as ocp

from nmt_jax.data.batching.batches import Batches, choose_shapes, iterator
from nmt_jax.data.batching.row_slice import RowSlice
from nmt_jax.data.vocabulary.vocab import EOS, PAD
from nmt_jax.errors import UserError


class Toy:
    """A corpus in memory; all tokens of pair i are i + 10."""

    def __init__(self, size=500, max_length=40):
        random = np.random.default_rng(7)
        source = random.integers(2, max_length // 2, size)
        target = np.clip(source + random.integers(-3, 12, size), 2, max_length)
        self.lengths = np.stack([source, target], 1).astype(np.int32)
        self.max_length, self.name = max_length, "toy"

    def __len__(self):
        return len(self.lengths)

    def __getitems__(self, indices):
        return [tuple(np.array([i + 10] * (n - 1) + [EOS], np.int32) for n in self.lengths[i]) for i in indices]

    def sample(self, indices, alpha, seeds):
        """About twice as long, depending on the seeds."""
        return [
            tuple(
                np.array([i + 10] * (2 * n - 3 + int(seed) % 4) + [EOS])
                for n, seed in zip(self.lengths[i], row, strict=True)
            )
            for i, row in zip(indices, seeds, strict=True)
        ]


@pytest.fixture(scope="module")
def toy() -> Toy:
    return Toy()


def make(corpus, **changes) -> Batches:
    return Batches(corpus, **({"batch_tokens": 200, "num_buckets": 4, "share": RowSlice(4), "seed": 3} | changes))


def assert_equal(first, second):
    assert first.keys() == second.keys()
    for key in first:
        np.testing.assert_array_equal(first[key], second[key], strict=True)


def pairs_of(batch) -> list[int]:
    """The pairs in a batch; checks that its rows are complete."""
    found = []
    for source, target in zip(batch["source"], batch["target"], strict=True):
        if (source == PAD).all():
            assert (target == PAD).all()
            continue
        assert source[0] == target[0]
        found.append(int(source[0]) - 10)
    return found


def test_an_epoch_contains_every_pair_once(toy):
    batches = make(toy)
    for epoch in range(2):
        batches = make(toy, steps=3 * batches.batches_per_epoch)
        numbers = range(epoch * batches.batches_per_epoch, (epoch + 1) * batches.batches_per_epoch)
        found = []
        for n in numbers:
            batch = batches[n]
            indices = pairs_of(batch)
            found += indices
            for side, key in enumerate(("source", "target")):
                rows = batch[key][(batch["source"] != PAD).any(1)]
                np.testing.assert_array_equal((rows != PAD).sum(1), toy.lengths[indices, side])
                np.testing.assert_array_equal((rows == EOS).sum(1), 1)
        assert sorted(found) == list(range(500))


def test_shapes_are_few_and_within_the_budget(toy):
    batches = make(toy)
    seen = {
        (len(batch["source"]), batch["source"].shape[1], batch["target"].shape[1])
        for batch in map(batches.__getitem__, range(len(batches)))
    }
    assert seen == set(batches.shapes)
    assert 1 < len(seen) <= 4
    for rows, source, target in seen:
        assert rows % 4 == 0
        assert rows * target <= 200 or rows == 4
        assert (rows + 4) * target > 200
        assert source <= 40 >= target


def test_a_batch_depends_only_on_its_number(toy):
    forwards, backwards = make(toy, steps=1000), make(toy, steps=400)
    numbers = [0, 1, 57, 58, 399]
    ahead = {n: forwards[n] for n in numbers}
    for n in reversed(numbers):
        assert_equal(backwards[n], ahead[n])


def test_epochs_and_seeds_differ_in_order(toy):
    batches = make(toy, steps=1000)
    first, second = ([pairs_of(batches[start + n]) for n in range(5)] for start in (0, batches.batches_per_epoch))
    other = [pairs_of(make(toy, seed=4)[n]) for n in range(5)]
    assert first != second
    assert first != other


def test_the_orders_of_at_most_two_epochs_are_kept(toy):
    batches = make(toy, steps=1000)
    for n in range(0, 1000, 40):
        batches[n]
    assert batches._order.cache_info().currsize == 2


@pytest.mark.parametrize("process_count", [2, 4])
@pytest.mark.parametrize("sampling_alpha", [0.0, 0.5])
def test_the_rows_of_all_processes_make_up_the_batch(toy, process_count, sampling_alpha):
    whole = make(toy, sampling_alpha=sampling_alpha)
    shares = [
        make(toy, sampling_alpha=sampling_alpha, share=RowSlice(4, i, process_count)) for i in range(process_count)
    ]
    for n in range(len(whole)):
        parts = [share[n] for share in shares]
        assert_equal({key: np.concatenate([part[key] for part in parts]) for key in parts[0]}, whole[n])


def test_a_budget_below_the_longest_target_is_an_error(toy):
    longest = toy.lengths[:, 1].max()
    with pytest.raises(UserError, match=rf"batch_tokens = {longest - 1} is less than the {longest} tokens"):
        make(toy, batch_tokens=longest - 1)
    assert len(make(toy, batch_tokens=longest, share=RowSlice(1))) > 0


def test_one_pair():
    batches = Batches(Toy(size=1), batch_tokens=100, num_buckets=6)
    assert len(batches) == len(batches.shapes) == 1
    assert pairs_of(batches[0]) == [0]
    with pytest.raises(IndexError):
        batches[1]


def test_sampling_depends_only_on_the_number_and_covers_all_pairs(toy):
    first, second = (make(toy, sampling_alpha=0.5, steps=400) for _ in range(2))
    for n in (0, 13, 199):
        assert_equal(first[n], second[n])
    found = [index for n in range(first.batches_per_epoch) for index in pairs_of(first[n])]
    assert sorted(found) == list(range(500))
    best = make(toy, steps=200)
    sampled_tokens = sum((first[n]["target"] != PAD).sum() for n in range(first.batches_per_epoch))
    assert sampled_tokens > 1.2 * sum((best[n]["target"] != PAD).sum() for n in range(best.batches_per_epoch))
    # The same pair is segmented differently in the next epoch.
    lengths = [{}, {}]
    for epoch in range(2):
        for n in range(epoch * first.batches_per_epoch, (epoch + 1) * first.batches_per_epoch):
            lengths[epoch] |= dict(zip(pairs_of(first[n]), (first[n]["target"] != PAD).sum(1), strict=False))
    assert lengths[0] != lengths[1]


def test_padding_is_the_share_of_places_without_a_token(toy):
    batches = make(toy)
    whole = [batches[n] for n in range(len(batches))]
    assert list(batches.padding) == ["source", "target"]
    for key, share in batches.padding.items():
        empty = sum((batch[key] == PAD).sum() for batch in whole)
        assert share == pytest.approx(empty / sum(batch[key].size for batch in whole))


def padded_tokens(shapes, lengths) -> int:
    left, total = lengths, 0
    for rows, source, target in shapes:
        fits = (left[:, 0] <= source) & (left[:, 1] <= target)
        total += -(-fits.sum() // rows) * rows * (source + target)
        left = left[~fits]
    assert not len(left)
    return int(total)


@pytest.mark.parametrize("num_buckets", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_shapes_need_the_fewest_tokens_of_all_chains_of_boxes(num_buckets, seed):
    lengths = np.random.default_rng(seed).integers(1, [5, 6], (60, 2))
    histogram = np.zeros((8, 8), int)
    np.add.at(histogram, tuple(lengths.T), 1)
    shapes = choose_shapes(histogram, 24, num_buckets, 2)
    assert len(shapes) <= num_buckets
    outermost = tuple(lengths.max(0))
    boxes = list(itertools.product(range(1, outermost[0] + 1), range(1, outermost[1] + 1)))
    least = min(
        padded_tokens([(max(24 // t // 2, 1) * 2, s, t) for s, t in chain], lengths)
        for count in range(num_buckets)
        for inner in itertools.combinations(boxes, count)
        for chain in [[*inner, outermost]]
        if all(a <= c and b <= d for (a, b), (c, d) in itertools.pairwise(chain))
    )
    assert padded_tokens(shapes, lengths) == least


def test_long_sentences_are_bucketed_on_a_coarse_grid():
    corpus = Toy(size=300, max_length=1000)
    batches = make(corpus, batch_tokens=4000, num_buckets=6)
    assert sum(len(pairs_of(batches[n])) for n in range(len(batches))) == 300
    assert batches.shapes[-1][1:] == tuple(corpus.lengths.max(0))


def test_a_restored_iterator_continues_at_the_next_batch(toy):
    batches = make(toy, steps=60)
    first = iterator(batches)
    for n in range(3):
        assert_equal(next(first), batches[n])
    second = iterator(make(toy, steps=60), first.get_state())
    rest = list(second)
    assert len(rest) == 57
    for n, batch in enumerate(rest, start=3):
        assert_equal(batch, batches[n])
    assert_equal(next(first), batches[3])


def test_the_iterator_is_saved_in_an_orbax_checkpoint(toy, tmp_path):
    batches = make(toy, steps=60)
    saved = iterator(batches)
    for _ in range(5):
        next(saved)
    with ocp.training.Checkpointer(tmp_path) as checkpointer:
        checkpointer.save_checkpointables(5, {"data": saved})
        restored = iterator(batches)
        checkpointer.load_checkpointables(5, {"data": restored})
    assert_equal(next(restored), batches[5])
