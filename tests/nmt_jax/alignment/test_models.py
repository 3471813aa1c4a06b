"""Posteriors and updates of the models against slow restatements of their equations."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax.alignment.diagonal import Diagonal
from nmt_jax.alignment.hmm import HMM, Jumps
from nmt_jax.alignment.ibm1 import IBM1, Lexical

NULL = 0.1
LENGTHS = ((3, 4), (2, 3), (4, 1))  # source, target
S, T = 5, 6  # padded


@pytest.fixture(scope="module")
def lexical():
    rng = np.random.default_rng(0)
    source, target = (np.arange(size) < np.array(LENGTHS)[:, side, None] for side, size in ((0, S), (1, T)))
    words = rng.uniform(0.05, 1, (len(LENGTHS), T, S)) * source[:, None, :] * target[:, :, None]
    null = rng.uniform(0.05, 1, (len(LENGTHS), T)) * target
    return Lexical(jnp.float32(words), jnp.float32(null), jnp.asarray(source), jnp.asarray(target))


def diagonal_prior(i, j, size, other, tension):
    weights = [math.exp(-tension * abs((k + 1) / size - (j + 1) / other)) for k in range(size)]
    return (1 - NULL) * weights[i] / sum(weights)


def jump_prior(parameters, before, i, size, uniform):
    """p(i | before) of a sentence of `size` words; before: None at its beginning."""
    if before is None:
        weights = parameters.first[:size]
    else:
        middle = len(parameters.first) - 1
        weights = [parameters.between[k - before + middle] for k in range(size)]
    return (1 - uniform) * weights[i] / sum(weights) + uniform / size


def enumerate_hmm(model, parameters, words, null):
    """All alignments of a sentence with their probabilities: for each word a position, and whether it is of NULL."""
    size = words.shape[1]
    for path in itertools.product(itertools.product(range(size), (False, True)), repeat=len(words)):
        probability, before = 1.0, None
        for j, (i, is_null) in enumerate(path):
            jump = jump_prior(parameters, before, i, size, model.uniform)
            if not is_null:
                probability *= (1 - NULL) * jump * words[j, i]
            elif before is None:  # the position from which the next jump is made
                probability *= NULL * jump * null[j]
            else:
                probability *= NULL * (i == before) * null[j]
            before = i
        yield path, probability


def independent_posteriors(prior, words, null, null_prior):
    joint = np.array([[prior(i, j) * words[j, i] for i in range(words.shape[1])] for j in range(len(words))])
    total = joint.sum(1) + null_prior * null
    return joint / total[:, None], np.log(total).sum()


def cut(lexical, row):
    size, length = LENGTHS[row]
    return np.asarray(lexical.words, np.float64)[row, :length, :size], np.asarray(lexical.null, np.float64)[
        row, :length
    ]


def check(found, lexical, expected):
    """Compare with the posteriors and log-likelihoods of all sentences; padding must have no links."""
    for row, (links, _) in enumerate(expected):
        size, length = LENGTHS[row]
        np.testing.assert_allclose(found.links[row, :length, :size], links, atol=1e-6)
        assert not found.links[row, length:].any()
        assert not found.links[row, :, size:].any()
    np.testing.assert_allclose(found.links.sum(-1) + found.null, np.asarray(lexical.target, float), atol=1e-6)
    np.testing.assert_allclose(found.log_likelihood, sum(value for _, value in expected), rtol=1e-5)


def test_ibm1(lexical):
    found = IBM1().expectations((), lexical)
    expected = []
    for row, (size, _) in enumerate(LENGTHS):
        words, null = cut(lexical, row)
        expected.append(independent_posteriors(lambda i, j, size=size: 1 / (size + 1), words, null, 1 / (size + 1)))
    check(found, lexical, expected)


def test_diagonal(lexical):
    model = Diagonal(NULL, fit_tension=True)

    def expected(tension):
        return [
            independent_posteriors(
                lambda i, j, row=row: diagonal_prior(i, j, *LENGTHS[row], tension), *cut(lexical, row), NULL
            )
            for row in range(len(LENGTHS))
        ]

    found = model.expectations(jnp.float32(4.0), lexical)
    check(found, lexical, expected(4.0))
    # The gradient is that of the log-likelihood.
    slope = (sum(value for _, value in expected(4.01)) - sum(value for _, value in expected(3.99))) / 0.02
    np.testing.assert_allclose(found.statistics.gradient, slope, rtol=1e-3)
    assert found.statistics.curvature > 0
    moved = model.update(jnp.float32(4.0), found.statistics)
    assert (moved - 4.0) * slope > 0
    assert Diagonal(NULL).update(jnp.float32(4.0), found.statistics) == 4.0


def parameters_of(size):
    rng = np.random.default_rng(1)
    return Jumps(jnp.float32(rng.uniform(0.1, 2, 2 * size - 1)), jnp.float32(rng.uniform(0.1, 2, size)))


@pytest.mark.slow
def test_hmm_against_enumeration(lexical):
    model, parameters = HMM(NULL), parameters_of(7)
    found = model.expectations(parameters, lexical)
    plain = jax.tree.map(lambda array: np.asarray(array, np.float64), parameters)
    expected, between = [], np.zeros(13)
    for row, (size, length) in enumerate(LENGTHS):
        links, total = np.zeros((length, size)), 0.0
        counts = np.zeros(13)
        for path, probability in enumerate_hmm(model, plain, *cut(lexical, row)):
            total += probability
            for j, (i, is_null) in enumerate(path):
                if not is_null:
                    links[j, i] += probability
                if j and not is_null:
                    before = path[j - 1][0]
                    uniform = model.uniform / size / jump_prior(plain, before, i, size, model.uniform)
                    counts[i - before + 6] += probability * (1 - uniform)
        expected.append((links / total, math.log(total)))
        between += counts / total
    check(found, lexical, expected)
    np.testing.assert_allclose(found.statistics.counts.between, between, atol=1e-5)


def test_an_update_of_the_jumps_raises_the_likelihood(lexical):
    model, parameters = HMM(NULL), parameters_of(5)
    values = []
    for _ in range(6):
        found = model.expectations(parameters, lexical)
        values.append(float(found.log_likelihood))
        parameters = model.update(parameters, found.statistics)
    assert all(later > before for before, later in itertools.pairwise(values))


@pytest.mark.parametrize("model", [IBM1(), Diagonal(NULL), HMM(NULL)])
def test_padding_has_no_influence(model, lexical):
    more = Lexical(
        jnp.pad(lexical.words, ((0, 1), (0, 2), (0, 3))),
        jnp.pad(lexical.null, ((0, 1), (0, 2))),
        jnp.pad(lexical.source, ((0, 1), (0, 3))),
        jnp.pad(lexical.target, ((0, 1), (0, 2))),
    )
    parameters = model.initial(9)
    one, other = model.expectations(parameters, lexical), model.expectations(parameters, more)
    np.testing.assert_allclose(other.links[:-1, :T, :S], one.links, atol=1e-6)
    assert not other.links[-1].any()
    for a, b in zip(jax.tree.leaves(one.statistics), jax.tree.leaves(other.statistics), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
