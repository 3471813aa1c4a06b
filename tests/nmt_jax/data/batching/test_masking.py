"""Statistics of masking, and its invariants."""

import dataclasses

import numpy as np
import pytest

from nmt_jax.data.batching.masking import LeftToRight, Masking

V, CLS, SEP, MASK = 50, 2, 3, 4
SPECIAL = np.arange(V) < 5
ROW = np.array([CLS, *range(5, 50), SEP, *range(5, 44), SEP], np.int32)  # 84 ordinary tokens


def masking(**changes):
    settings = {"share": 0.15, "mask": 0.8, "random": 0.1, "whole_words": False}
    starts = np.arange(V) % 3 == 2  # words of three tokens: 5 6 7, 8 9 10 ...
    return Masking(**{**settings, **changes}, mask_id=MASK, special=SPECIAL, starts=starts)


def within(count, total, share):
    """Within four standard deviations of a binomial distribution."""
    return abs(count - total * share) < 4 * np.sqrt(total * share * (1 - share)) + 1e-9


@pytest.mark.parametrize("mixture", [(0.8, 0.1), (1.0, 0.0), (0.0, 1.0), (0.3, 0.3)])
def test_statistics_match_the_settings(mixture):
    mask, random = mixture
    corrupt = masking(mask=mask, random=random)
    chosen = masked = kept = 0
    where = np.zeros(len(ROW), int)
    for seed in range(400):
        ids, positions, labels = corrupt(ROW, np.random.default_rng(seed))
        assert (labels == ROW[positions]).all()
        assert (np.delete(ids, positions) == np.delete(ROW, positions)).all()
        where[positions] += 1
        chosen += len(positions)
        masked += (ids[positions] == MASK).sum()
        kept += (ids[positions] == labels).sum()
    assert chosen == 400 * round(0.15 * 84)
    assert within(masked, chosen, mask)
    assert within(kept, chosen, 1 - mask - random + random / 45)  # a random token may be the original one
    ordinary = ~SPECIAL[ROW]
    assert (where[~ordinary] == 0).all()
    share = chosen / 400 / 84
    assert (abs(where[ordinary] - 400 * share) < 5 * np.sqrt(400 * share * (1 - share))).all()


def test_a_random_token_is_any_token_that_is_not_special():
    corrupt = masking(mask=0.0, random=1.0)
    drawn = [corrupt(ROW, np.random.default_rng(seed)) for seed in range(300)]
    pieces = np.concatenate([ids[positions] for ids, positions, _ in drawn])
    assert set(pieces) == set(range(5, V))


def test_the_result_depends_on_the_generator_only():
    one, same, other = (masking()(ROW, np.random.default_rng((7, epoch, 3))) for epoch in (0, 0, 1))
    for a, b in zip(one, same, strict=True):
        np.testing.assert_array_equal(a, b)
    assert one.positions.tolist() != other.positions.tolist()


def test_whole_words_are_chosen_together():
    corrupt = masking(whole_words=True)
    chosen = 0
    for seed in range(200):
        _, positions, labels = corrupt(ROW, np.random.default_rng(seed))
        assert list(positions) == sorted(positions)
        groups = labels.reshape(-1, 3)
        np.testing.assert_array_equal(groups, groups[:, :1] + np.arange(3))
        assert (groups[:, 0] % 3 == 2).all()
        chosen += len(positions)
    assert 11 * 200 < chosen <= 13 * 200  # at most the share, and less than one word below it


def test_a_word_ends_at_a_special_token():
    row = np.array([CLS, 5, 6, SEP, 7, 9, SEP], np.int32)  # 7 would continue a word that begins with 6
    for seed in range(50):
        _, positions, _ = masking(share=0.5, whole_words=True)(row, np.random.default_rng(seed))
        assert positions.tolist() in ([1, 2], [4, 5])


def test_at_least_one_token_is_chosen_unless_there_is_no_text():
    assert len(masking()(np.array([CLS, 9, SEP], np.int32), np.random.default_rng(0)).positions) == 1
    ids, positions, labels = masking()(np.array([CLS, 1, SEP], np.int32), np.random.default_rng(0))
    assert ids.tolist() == [CLS, 1, SEP]
    assert len(positions) == len(labels) == 0


@pytest.mark.parametrize("length", [1, 2, 7, 86])
@pytest.mark.parametrize("share", [0.15, 0.4, 1.0])
def test_the_number_of_predictions_is_bounded(length, share):
    corrupt = masking(share=share)
    row = np.full(length, 9, np.int32)
    assert len(corrupt(row, np.random.default_rng(0)).positions) <= corrupt.max_positions(length)


@pytest.mark.parametrize(
    "changes", [{"share": 0.0}, {"share": 1.1}, {"mask": -0.1}, {"random": -0.1}, {"mask": 0.95, "random": 0.1}]
)
def test_invalid_shares(changes):
    with pytest.raises(ValueError, match="must be"):
        masking(**changes)
    with pytest.raises(dataclasses.FrozenInstanceError):
        masking().share = 0.5


def test_left_to_right_predicts_every_next_token():
    ids, positions, labels = LeftToRight()(ROW, np.random.default_rng(0))
    np.testing.assert_array_equal(ids, ROW)
    np.testing.assert_array_equal(ROW[positions + 1], labels)
    assert len(labels) == LeftToRight().max_positions(len(ROW)) == len(ROW) - 1
