import functools

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt_jax.decoding.next_logits import IMPOSSIBLE, predict
from nmt_jax.decoding.topk import top_k


@functools.partial(jax.jit, static_argnums=2)
def compiled(x, offsets, k):
    return top_k(x, offsets, k), expected(x, offsets, k)


def expected(x, offsets, k):
    sums = x + offsets[..., None]
    return jax.lax.top_k(sums.reshape(len(sums), -1), k)


@pytest.mark.parametrize("length", [5, 64, 999, 4096])
@pytest.mark.parametrize(("beam_size", "k"), [(1, 1), (3, 5), (5, 10)])
def test_same_values_and_indices_as_lax(length, beam_size, k):
    generator = np.random.default_rng(length)
    x = generator.normal(size=(3, beam_size, length)).astype(np.float32)
    offsets = generator.normal(size=(3, beam_size)).astype(np.float32)
    for ours, theirs in zip(*compiled(x, offsets, k), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=400, max_size=400), st.integers(1, 3))
def test_of_equal_values_the_first_wins(values, k):
    x = np.array(values, np.float32).reshape(1, 2, 200)
    offsets = np.array([[0.0, 1.0]], np.float32)
    for ours, theirs in zip(*compiled(x, offsets, k), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_of_equal_values_the_first_wins_though_a_later_block_has_the_largest():
    x = np.zeros((1, 1, 200), np.float32)
    x[0, 0, [5, 70, 71]] = 1, 2, 1
    np.testing.assert_array_equal(compiled(x, np.zeros((1, 1), np.float32), 2)[0][1], [[70, 5]])


def test_probabilities_are_those_of_softmax_and_some_pieces_are_never_said():
    logits = np.float32(np.random.default_rng(0).normal(size=(4, 130)) * 10)
    logits[:, 1] = 90.0
    found = np.asarray(jax.jit(lambda logits: predict(logits, (0, 1)).log_probs)(logits))
    exact = np.asarray(jax.nn.log_softmax(logits))
    np.testing.assert_allclose(found[:, 2:], exact[:, 2:], rtol=1e-5)
    assert (found[:, :2] < IMPOSSIBLE / 2).all()
