import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics_jax.embedding.exact_transport import exact
from metrics_jax.embedding.sinkhorn import sinkhorn
from tests.fixtures import golden
from tests.fixtures.problems import problems, word_like


def test_equals_the_entropic_plans_of_pot(shared):
    read = golden.read(shared, "wmd_sms")
    (case,) = [case for case in read["cases"] if case["id"] == "sinkhorn-raw"]
    given_problems = read["inputs"]["transport"]["problems"]
    a, b, cost = np.zeros((8, 20)), np.zeros((8, 20)), np.zeros((8, 20, 20))
    for k, one in enumerate(given_problems):
        n, m = np.shape(one["cost"])
        a[k, :n], b[k, :m], cost[k, :n, :m] = one["a"], one["b"], one["cost"]
    independent = np.einsum("kn,knm,km->k", a, cost, b)
    solver = jax.vmap(lambda a, b, cost, epsilon: sinkhorn(a, b, cost, epsilon=epsilon, num_iters=1000, rounded=False))
    for precise, tolerance in ((False, 3e-6), (True, 1e-9)):
        with jax.enable_x64(precise):
            for row in case["expected"]:
                solution = solver(a, b, cost, row["reg"] / independent)
                assert solution.value.dtype == (np.float64 if precise else np.float32)
                np.testing.assert_allclose(solution.value, row["value"], rtol=tolerance)


@pytest.mark.slow
@given(problems(), st.sampled_from([1, 20, 200]), st.sampled_from([0.1, 0.005]), st.sampled_from([1.0, 1.8, 1.95]))
@settings(max_examples=60, deadline=None)
def test_the_gap_bounds_the_error(problem, num_iters, epsilon, relaxation):
    a, b, cost = (array.astype(np.float32) for array in problem)
    solution = sinkhorn(a, b, cost, num_iters=num_iters, epsilon=epsilon, relaxation=relaxation)
    least = exact(a, b, cost).value
    value, lower, gap = (float(one) for one in (solution.value, solution.lower, solution.gap))
    assert lower <= least
    assert abs(value - least) <= gap
    assert np.isfinite(gap)
    tolerance = 1e-5
    np.testing.assert_allclose(solution.plan.sum(axis=1), a / a.sum(), atol=tolerance)
    np.testing.assert_allclose(solution.plan.sum(axis=0), b / b.sum(), atol=tolerance)
    assert (solution.plan >= 0).all()


def test_the_gap_allows_for_rounding_errors():
    generator = np.random.default_rng(4)
    a, b = np.ones((500, 1), np.float32), generator.dirichlet(np.ones(25), 500).astype(np.float32)
    cost = generator.random((500, 1, 25)).astype(np.float32)  # there is one plan, and its cost is the dual's value
    solution, least = sinkhorn(a, b, cost), exact(a, b, cost).value
    assert (np.asarray(solution.lower, np.float64) <= least).all()
    assert (np.abs(solution.value - least) <= solution.gap).all()
    assert (solution.gap < 1e-3).all()


def test_the_defaults_are_accurate_and_relaxation_helps():
    a, b, cost = word_like(64)
    least, independent = exact(a, b, cost).value, np.einsum("kn,knm,km->k", a, cost, b)
    error = (np.asarray(sinkhorn(a, b, cost).value) - least) / independent
    plain = (np.asarray(sinkhorn(a, b, cost, relaxation=1.0).value) - least) / independent
    assert error.mean() < 0.002
    assert error.max() < 0.01
    assert error.mean() < plain.mean() / 1.5


@given(problems())
@settings(max_examples=30, deadline=None)
def test_points_of_weight_0_change_nothing(problem):
    a, b, cost = problem
    wide = np.full((7, 8), np.nan)
    wide[:6, :6] = cost
    solution = sinkhorn(np.append(a, 0.0), np.append(b, [0.0, 0.0]), wide)
    expected = sinkhorn(*problem)
    for found, reference in ((solution.value, expected.value), (solution.lower, expected.lower)):
        assert float(found) == pytest.approx(float(reference), abs=1e-4 * (1 + cost.max()))
    assert not np.asarray(solution.plan[6]).any()
    assert not np.asarray(solution.plan[:, 6:]).any()


def test_batches_and_symmetry():
    problem = word_like(5)
    together = sinkhorn(*problem)
    for mapped in (jax.vmap(sinkhorn)(*problem), jax.jit(sinkhorn)(*problem)):
        np.testing.assert_allclose(mapped.value, together.value, rtol=1e-5)
    for k in range(5):
        alone = sinkhorn(*(array[k] for array in problem))
        np.testing.assert_allclose(alone.value, together.value[k], rtol=1e-5)
    a, b, cost = problem
    mirrored = sinkhorn(b, a, np.swapaxes(cost, 1, 2))
    assert (np.abs(mirrored.value - together.value) <= np.maximum(mirrored.gap, together.gap)).all()


def test_empty_problems_and_zero_costs():
    a = np.array([[0.0, 0.0], [0.5, 0.5], [0.5, 0.5]])
    b = np.array([[0.5, 0.5], [0.0, 0.0], [1.0, 0.0]])
    cost = np.ones((3, 2, 2)) * np.array([1.0, 1.0, 0.0])[:, None, None]

    def total(a, b, cost):
        return sinkhorn(a, b, cost).value.sum()

    solution = sinkhorn(a, b, cost)
    np.testing.assert_allclose(solution.value, 0, atol=1e-7)
    assert not np.asarray(solution.plan[:2]).any()
    gradients = jax.grad(total, argnums=(0, 1, 2))(a, b, cost)
    assert all(np.isfinite(gradient).all() for gradient in gradients)


@pytest.mark.parametrize("rounded", [True, False])
def test_gradients_equal_finite_differences(rounded):
    generator = np.random.default_rng(3)
    with jax.enable_x64(True):
        a, b = generator.dirichlet(np.ones(4)), np.append(generator.dirichlet(np.ones(4)), 0.0)
        cost = generator.random((4, 5))

        def value(a, b, cost):
            return sinkhorn(a, b, cost, epsilon=0.05, num_iters=40, rounded=rounded).value

        gradients = jax.grad(value, argnums=(0, 1, 2))(a, b, cost)
        assert not np.asarray(gradients[2][:, 4]).any()
        step = 1e-6
        for place, gradient in enumerate(gradients):
            way = generator.normal(size=gradient.shape) * (np.arange(gradient.shape[-1]) < 4)
            ends = []
            for sign in (1, -1):
                arguments = [a, b, cost]
                arguments[place] = arguments[place] + sign * step * way
                ends.append(float(value(*arguments)))
            assert float(jnp.vdot(gradient, way)) == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-5)
