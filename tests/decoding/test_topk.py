import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt_jax.decoding.topk import top_k


@pytest.mark.parametrize("length", [5, 64, 999, 4096])
@pytest.mark.parametrize("k", [1, 5, 10])
def test_same_values_and_indices_as_lax(length, k):
    k = min(k, length)
    x = jnp.asarray(np.random.default_rng(length).normal(size=(3, length)), jnp.float32)
    for ours, theirs in zip(top_k(x, k), jax.lax.top_k(x, k), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=40, max_size=40), st.integers(1, 6))
def test_of_equal_values_the_first_wins(values, k):
    x = jnp.asarray([values], jnp.float32)
    for ours, theirs in zip(top_k(x, k, block=4), jax.lax.top_k(x, k), strict=True):
        np.testing.assert_array_equal(ours, theirs)
