"""The coverage loss against its equations in NumPy, and what it does not depend on."""

import jax
import jax.numpy as jnp
import numpy as np

from nmt_jax.losses.coverage import coverage_loss

B, T, S = 2, 4, 3


def draws():
    attended = np.random.default_rng(0).dirichlet(np.ones(S), (B, T))
    return attended, np.array([[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0]])


def restated(attended, weights):
    total = 0.0
    for row in range(B):
        covered = np.zeros(S)
        for t in range(T):
            total += weights[row, t] * sum(min(a, c) for a, c in zip(attended[row, t], covered, strict=True))
            covered += attended[row, t]
    return total


def test_value_and_gradient_equal_the_equations():
    attended, weights = draws()
    value, slope = jax.value_and_grad(coverage_loss)(jnp.float32(attended), jnp.float32(weights))
    np.testing.assert_allclose(value, restated(attended, weights), rtol=1e-6)
    for place in np.ndindex(attended.shape):
        ends = []
        for step in (1e-6, -1e-6):
            moved = attended.copy()
            moved[place] += step
            ends.append(restated(moved, weights))
        np.testing.assert_allclose(slope[place], (ends[0] - ends[1]) / 2e-6, atol=1e-6)
    assert (slope[1, 2:] == 0).all()  # steps of padding


def test_attention_that_never_returns_costs_nothing_and_attention_that_stays_costs_one_a_step():
    moves = jnp.eye(S)[None]
    assert coverage_loss(moves, jnp.ones((1, S))) == 0
    stays = jnp.broadcast_to(jnp.eye(S)[:1], (1, T, S))
    assert coverage_loss(stays, jnp.ones((1, T))) == T - 1
