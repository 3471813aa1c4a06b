import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import linprog

from metrics_jax.embedding.exact_transport import assignment, exact, relaxed
from metrics_jax.embedding.transport import solve
from tests.fixtures import golden
from tests.fixtures.problems import problems, word_like


def linear_program(a, b, cost):
    """The optimal cost from a general linear programming solver."""
    n, m = cost.shape
    sums = np.concatenate([np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))])
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    return linprog(cost.ravel(), A_eq=sums, b_eq=np.concatenate([a, b]), method="highs", options=tight).fun


def test_golden_values(shared):
    given_problems = golden.read(shared, "wmd_sms")
    (case,) = [case for case in given_problems["cases"] if case["id"] == "emd-raw"]
    arrays = [
        tuple(np.array(one[key]) for key in ("a", "b", "cost"))
        for one in given_problems["inputs"]["transport"]["problems"]
    ]
    np.testing.assert_allclose([exact(*one).value for one in arrays], case["expected"], rtol=1e-9)
    np.testing.assert_allclose(solve(arrays)[0], case["expected"], rtol=1e-9)


@given(problems())
@settings(max_examples=60, deadline=None)
def test_the_exact_cost_equals_that_of_linear_programming(problem):
    a, b, cost = problem
    solution = exact(*problem)
    assert solution.value == pytest.approx(linear_program(*problem), abs=1e-8)
    np.testing.assert_allclose(solution.plan.sum(axis=1), a, atol=1e-12)
    np.testing.assert_allclose(solution.plan.sum(axis=0), b, atol=1e-12)
    assert (solution.plan >= 0).all()
    assert solution.value == (solution.plan * cost).sum()
    assert solution.gap == 0


@given(problems())
@settings(max_examples=60, deadline=None)
def test_bounds_symmetry_and_scaling(problem):
    a, b, cost = problem
    value = exact(*problem).value
    left, right = relaxed(*problem)
    assert max(left, right) <= value + 1e-12
    assert exact(b, a, cost.T).value == pytest.approx(value, abs=1e-12)
    assert relaxed(b, a, cost.T) == pytest.approx((right, left))
    assert exact(3 * a, b / 7, cost).value == pytest.approx(value, abs=1e-12)


@given(problems())
@settings(max_examples=40, deadline=None)
def test_points_of_weight_0_change_nothing(problem):
    a, b, cost = problem
    wide_a, wide_b = np.insert(a, 2, 0.0), np.append(b, [0.0, 0.0])
    wide = np.full((len(wide_a), len(wide_b)), np.nan)
    wide[np.ix_([0, 1, *range(3, len(wide_a))], range(len(b)))] = cost
    solution = exact(wide_a, wide_b, wide)
    assert solution.value == pytest.approx(exact(*problem).value, abs=1e-12)
    assert not solution.plan[2].any()
    assert not solution.plan[:, len(b) :].any()
    np.testing.assert_allclose(relaxed(wide_a, wide_b, wide), relaxed(*problem), atol=1e-12)
    assert assignment(wide_a, wide_b, wide).sum() == min((a > 0).sum(), (b > 0).sum())


def test_the_relaxed_bounds_by_hand():
    cost = np.array([[0.0, 2.0], [3.0, 5.0]])
    left, right = relaxed(np.array([0.25, 0.75]), np.array([0.5, 0.5]), cost)
    assert (left, right) == (0.75 * 3, 0.5 * 2)


def test_a_batch_equals_single_problems():
    a, b, cost = word_like(150)  # more problems than one thread solves at a time
    together = exact(a, b, cost)
    alone = [exact(*one) for one in zip(a, b, cost, strict=True)]
    np.testing.assert_array_equal(together.value, [one.value for one in alone])
    np.testing.assert_array_equal(together.plan, [one.plan for one in alone])
    np.testing.assert_array_equal(exact(a, b, cost, threads=1).plan, together.plan)
    shaped = exact(a.reshape(3, 50, 25), b.reshape(3, 50, 25), cost.reshape(3, 50, 25, 25))
    np.testing.assert_array_equal(shaped.value.ravel(), together.value)


def test_problems_of_any_sizes():
    generator = np.random.default_rng(1)
    sizes = [(1, 1), (3, 8), (12, 4), (7, 3), (0, 5), (11, 12), (2, 0)]
    some = [(generator.random(n), generator.random(m), generator.random((n, m))) for n, m in sizes]
    value, lower = solve(some)
    np.testing.assert_allclose(value, [exact(*one).value for one in some], rtol=1e-12)
    np.testing.assert_array_equal(value, lower)
    approximate, at_least = solve(some, "sinkhorn")
    assert (at_least <= value).all()
    assert (np.abs(approximate - value) <= approximate - at_least).all()
    np.testing.assert_allclose(solve(some[::-1], "sinkhorn")[0][::-1], approximate, atol=1e-6)
    with pytest.raises(ValueError, match="'emd' is none of exact, sinkhorn"):
        solve(some, "emd")


def test_empty_problems():
    none, some, cost = np.zeros(3), np.ones(2), np.ones((3, 2))
    for solution in (exact(none, some, cost), exact(none, np.zeros(2), cost), exact(none[:0], some, cost[:0])):
        assert solution.value == 0
        assert not solution.plan.any()
    assert relaxed(none, some, cost) == (0, 0)


def test_the_assignment_is_optimal():
    generator = np.random.default_rng(2)
    for n, m in ((4, 4), (3, 5), (5, 2)):
        cost = generator.random((n, m))
        pairs = assignment(np.ones(n), np.ones(m), cost)
        assert pairs.sum() == min(n, m)
        assert max(pairs.sum(axis=0).max(), pairs.sum(axis=1).max()) == 1
        wide = cost if n <= m else cost.T
        least = min(
            wide[range(len(wide)), order].sum() for order in itertools.permutations(range(max(n, m)), min(n, m))
        )
        assert cost[pairs].sum() == pytest.approx(least)
        if n == m:  # equal weights move as a whole
            assert exact(np.ones(n), np.ones(m), cost).value == pytest.approx(least / n)


@pytest.mark.parametrize(
    ("a", "b", "cost", "line"),
    [
        ([1.0], [1.0, 1.0], [[1.0]], r"do not match weights of shapes \(1,\) and \(2,\)"),
        ([1.0, -0.1], [1.0], [[1.0], [1.0]], "not negative"),
        ([np.nan], [1.0], [[1.0]], "finite"),
        ([1.0], [1.0], [[np.inf]], "costs must be finite"),
    ],
)
def test_invalid_problems_raise_errors(a, b, cost, line):
    for solver in (exact, relaxed, assignment):
        with pytest.raises(ValueError, match=line):
            solver(np.array(a), np.array(b), np.array(cost))
