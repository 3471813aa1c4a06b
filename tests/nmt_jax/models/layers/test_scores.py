"""Each score function against its equation in NumPy, float64: forward by definition, gradient by finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax.models.layers.scores import SCORES, make_score

B, Q, S, D, E, A = 2, 2, 3, 4, 5, 3  # E: width of the keys


def restated(name: str, p: dict, query: np.ndarray, key: np.ndarray, covered: float, position: int) -> float:
    """e(s, h) of one query and the key of a position, of which this much is covered."""
    if name == "dot":
        return query @ key
    if name == "scaled_dot":
        return query @ key / np.sqrt(len(query))
    if name == "general":
        return query @ (p["weight"]["kernel"].T @ key)
    if name == "reduced_rank":
        return (p["query"]["kernel"].T @ query) @ (p["key"]["kernel"].T @ key)
    if name == "additive":
        w = p.get("coverage_vector", np.zeros(A))
        return p["vector"] @ np.tanh(p["query"]["kernel"].T @ query + p["key"]["kernel"].T @ key + w * covered)
    if name == "location":
        return (p["weight"]["kernel"].T @ query)[position]
    w1 = np.concatenate([p["query"]["kernel"], p["key"]["kernel"]]).T
    return p["vector"] @ np.tanh(w1 @ np.concatenate([query, key]) + p["key"]["bias"])


@pytest.mark.parametrize(("name", "coverage"), [*((name, False) for name in SCORES), ("additive", True)])
def test_forward_and_gradient_equal_the_equation(name, coverage):
    width = D if name in ("dot", "scaled_dot") else E
    generator = np.random.default_rng(0)
    query, keys = generator.normal(size=(B, Q, D)), generator.normal(size=(B, S, width))
    weights = generator.normal(size=(B, Q, S))
    covered = generator.uniform(0, 2, size=(B, Q, S))
    module = make_score(name, D, A, coverage=coverage)

    def scores(module, query, keys, covered):
        return module(query, module.prepare(keys), *([covered] if coverage else []))

    variables = module.init(jax.random.key(1), *map(jnp.asarray, (query, keys, covered)), method=scores)
    params = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), dict(variables).get("params", {}))
    if name == "concat":
        params["key"]["bias"] = generator.normal(size=A)
    if coverage:
        assert (params["coverage_vector"] == 0).all()  # at first the scores are those without coverage
        params["coverage_vector"] = generator.normal(size=A)

    def by_definition(inputs):
        params, query, keys, covered = inputs
        places = np.ndindex(B, Q, S)
        found = [restated(name, params, query[b, q], keys[b, s], covered[b, q, s], s) for b, q, s in places]
        return np.reshape(found, (B, Q, S))

    def by_module(inputs):
        params, *given = inputs
        return module.apply({"params": params}, *given, method=scores)

    inputs = (params, query, keys, covered)
    small = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), inputs)
    np.testing.assert_allclose(by_module(small), by_definition(inputs), atol=1e-6)

    gradient = jax.grad(lambda inputs: (by_module(inputs) * weights.astype(np.float32)).sum())(small)
    leaves, tree = jax.tree.flatten(inputs)
    for number, leaf in enumerate(leaves):
        differences = np.zeros_like(leaf)
        for place in np.ndindex(leaf.shape):
            ends = []
            for step in (1e-5, -1e-5):
                moved = leaf.copy()
                moved[place] += step
                changed = jax.tree.unflatten(tree, [*leaves[:number], moved, *leaves[number + 1 :]])
                ends.append((by_definition(changed) * weights).sum())
            differences[place] = (ends[0] - ends[1]) / 2e-5
        np.testing.assert_allclose(jax.tree.leaves(gradient)[number], differences, rtol=2e-6, atol=2e-6)


def test_dot_needs_one_width():
    with pytest.raises(ValueError, match="use score='general'"):
        make_score("dot", D, A).apply({}, jnp.ones((1, 1, 4)), jnp.ones((1, 2, 5)))


def test_location_does_not_attend_to_positions_it_has_no_score_for():
    module = make_score("location", D, A)
    query, keys = jnp.ones((1, 1, D)), jnp.ones((1, A + 2, E))
    scores, _ = module.init_with_output(jax.random.key(0), query, keys)
    weights = jax.nn.softmax(scores)
    assert (weights[..., :A] > 0).all()
    assert (weights[..., A:] == 0).all()


def test_an_unknown_score_is_named():
    with pytest.raises(ValueError, match="score='cosine': use one of dot, scaled_dot"):
        make_score("cosine", D, A)
