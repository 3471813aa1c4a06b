"""The pointer sentinel mixture against its equations, written out word by word in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from nmt_jax.models.layers.pointer_sentinel import PointerSentinel

B, T, S, D, V = 2, 3, 5, 4, 7


@pytest.fixture(scope="module")
def case():
    """Parameters and inputs; words repeat, and step t of row b sees all but its last b words."""
    random = np.random.default_rng(0)
    inputs = {
        "logits": random.normal(size=(B, T, V)),
        "hidden": random.normal(size=(B, T, D)),
        "states": random.normal(size=(B, S, D)),
        "words": np.array([[1, 4, 1, 6, 4], [2, 2, 2, 5, 5]]),
        "visible": np.broadcast_to(np.arange(S) < S - np.arange(B)[:, None, None], (B, T, S)),
    }
    params = {
        "query": {"kernel": random.normal(size=(D, D)), "bias": random.normal(size=D)},
        "sentinel": random.normal(size=D),
    }
    return params, inputs


@jax.jit
def apply(params, inputs):
    return PointerSentinel(D).apply({"params": params}, **inputs)


def by_definition(params, inputs):
    """p(w) of every step, one word after the other."""
    p = np.zeros((B, T, V))
    for b in range(B):
        for t in range(T):
            q = np.tanh(inputs["hidden"][b, t] @ params["query"]["kernel"] + params["query"]["bias"])
            seen = [i for i in range(S) if inputs["visible"][b, t, i]]
            z = [*(q @ inputs["states"][b, i] for i in seen), q @ params["sentinel"]]
            e = np.exp(np.array(z) / D**0.5)
            *a, g = e / e.sum()
            softmax = np.exp(inputs["logits"][b, t]) / np.exp(inputs["logits"][b, t]).sum()
            for word in range(V):
                pointer = sum(a_i for a_i, i in zip(a, seen, strict=True) if inputs["words"][b, i] == word) / (1 - g)
                p[b, t, word] = g * softmax[word] + (1 - g) * pointer
    return p


def test_it_is_the_mixture_of_the_equations(case):
    params, inputs = case
    log_p, out = jax.tree.map(np.asarray, apply(params, inputs))
    expected = by_definition(params, inputs)
    np.testing.assert_allclose(np.exp(log_p), expected, rtol=2e-5)
    np.testing.assert_allclose(np.exp(log_p).sum(-1), 1, rtol=1e-5)
    np.testing.assert_allclose(out["gate"] + out["pointer"].sum(-1), 1, rtol=1e-6)
    assert (out["pointer"][~inputs["visible"]] == 0).all()


def test_its_gradient_is_that_of_the_equations(case):
    params, inputs = case
    word = np.array([[1, 3, 4], [2, 0, 5]])[..., None]  # in the window and not

    def loss(params, inputs, function):
        return np.take_along_axis(function(params, inputs), word, -1).sum()

    def log_p(params, logits, hidden, states):
        changed = {**inputs, "logits": logits, "hidden": hidden, "states": states}
        return jnp.take_along_axis(apply(params, changed)[0], word, -1).sum()

    names = ("logits", "hidden", "states")
    d_params, *d_inputs = jax.jit(jax.grad(log_p, argnums=(0, 1, 2, 3)))(params, *(inputs[name] for name in names))
    step = 1e-5
    plain = {name: np.array(value, np.float64 if name in names else None) for name, value in inputs.items()}

    def slope(array, index):
        values = []
        for sign in (1, -1):
            array[index] += sign * step
            values.append(loss(params, plain, lambda *case: np.log(by_definition(*case))))
            array[index] -= sign * step
        return (values[0] - values[1]) / (2 * step)

    checked = [*zip(d_inputs, (plain[name] for name in names), strict=True)]
    checked += [(d_params["sentinel"], params["sentinel"]), (d_params["query"]["kernel"], params["query"]["kernel"])]
    for gradient, array in checked:
        expected = np.array([slope(array, index) for index in np.ndindex(array.shape)]).reshape(array.shape)
        np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-5)


def test_without_anything_to_point_at_it_is_the_softmax(case):
    params, inputs = case
    log_p, out = apply(params, {**inputs, "visible": np.zeros((B, T, S), bool)})
    np.testing.assert_allclose(log_p, scipy.special.log_softmax(inputs["logits"], axis=-1), rtol=1e-5)
    np.testing.assert_allclose(out["gate"], 1)


def test_a_pointer_that_is_sure_leaves_the_softmax_its_gradient(case):
    params, inputs = case
    sure = {**inputs, "states": 1000 * inputs["states"]}  # exp(-100) and less is left to the gate

    @jax.jit
    @jax.value_and_grad
    def log_p(logits):
        return apply(params, {**sure, "logits": logits})[0][0, 0, 3]  # a word of no window

    value, gradient = log_p(inputs["logits"])
    assert np.isfinite(value)
    softmax = scipy.special.softmax(inputs["logits"][0, 0])
    assert np.asarray(gradient)[0, 0, 3] == pytest.approx(1 - softmax[3], rel=1e-3)
