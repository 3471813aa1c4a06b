"""Word vectors: loss and gradient against the equations, written out pair by pair in 64 bits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax.losses.sampled import negative_sampling
from nmt_jax.models.word_vectors import Model, inner_products

WINDOW, LENGTH, WORDS, NEGATIVES = 3, 5, 12, 4
SUBWORDS = (np.array([1, 1, 3, 7, 7, 7], np.int32), np.array([0, 4, 4, 2, 3, 3], np.int32))
ROWS = jnp.array([[0, 0, 1, 2, 3, 4, 0, 5, 3, 3, 0], [9, 8, 7, 7, 1, 2, 11, 10, 0, 0, 0]])
WEIGHTS = jnp.array([[1.0, 1, 0, 1, 1], [1, 1, 1, 1, 0]]) * (ROWS[:, WINDOW:-WINDOW] != 0)
DRAWN = jnp.array([[1, 1, 6], [2, 7, 5]])


def model(**changes) -> Model:
    return Model(**({"vocab_size": WORDS, "d_model": 4, "window": WINDOW} | changes))


def params(net: Model):
    """Parameters of all tables, none of them zero."""
    shapes = jax.eval_shape(lambda: net.init(jax.random.key(0), ROWS, WEIGHTS, DRAWN, SUBWORDS))["params"]
    random = np.random.default_rng(0)
    return jax.tree.map(lambda leaf: jnp.array(random.standard_normal(leaf.shape), jnp.float32), shapes)


def log_sigmoid(x: float) -> float:
    return float(-np.logaddexp(0, -x))


def read(tables, word: int) -> np.ndarray:
    """Bojanowski et al. (2017): the word's vector and those of its n-grams, as the mean of the program."""
    own = [tables["words"][word]]
    if "buckets" in tables:
        own += [tables["buckets"][bucket] for place, bucket in zip(*SUBWORDS, strict=True) if place == word]
    return np.mean(own, axis=0)


def context(row: np.ndarray, centre: int, reach: int) -> list[int]:
    """The words at most `reach` away, up to the end of the text."""
    found = []
    for step in (-1, 1):
        for distance in range(1, reach + 1):
            place = centre + step * distance
            if row[place] == 0:
                break
            found.append(int(row[place]))
    return found


def skip_gram_by_hand(tables) -> float:
    """Mikolov et al. (2013b), eq. 4, of every pair, averaged over the reach that word2vec draws for each centre."""
    total = 0.0
    for row, weights, drawn in zip(np.asarray(ROWS), np.asarray(WEIGHTS), np.asarray(DRAWN), strict=True):
        for t in np.flatnonzero(weights):
            centre = read(tables, row[WINDOW + t])
            for reach in range(1, WINDOW + 1):
                for word in context(row, WINDOW + t, reach):
                    pair = log_sigmoid(centre @ tables["predicted"][word])
                    others = np.mean([log_sigmoid(-centre @ tables["predicted"][n]) for n in drawn])
                    total -= (pair + NEGATIVES * others) / WINDOW
    return total


def cbow_by_hand(tables) -> float:
    """Mikolov et al. (2013a), section 3.1, with negative sampling; a word at distance d weighs (W - d + 1) / W."""
    total = 0.0
    for row, weights, drawn in zip(np.asarray(ROWS), np.asarray(WEIGHTS), np.asarray(DRAWN), strict=True):
        for t in np.flatnonzero(weights):
            words = [word for reach in range(1, WINDOW + 1) for word in context(row, WINDOW + t, reach)]
            if not words:
                continue
            mean = np.mean([read(tables, word) for word in words], axis=0)
            total -= log_sigmoid(mean @ tables["predicted"][row[WINDOW + t]])
            total -= NEGATIVES * np.mean([log_sigmoid(-mean @ tables["predicted"][n]) for n in drawn])
    return total


@pytest.mark.parametrize("num_buckets", [0, 5])
@pytest.mark.parametrize(("algorithm", "by_hand"), [("skip_gram", skip_gram_by_hand), ("cbow", cbow_by_hand)])
def test_loss_and_gradient_are_those_of_the_equations(algorithm, by_hand, num_buckets):
    net = model(algorithm=algorithm, num_buckets=num_buckets)
    tables = params(net)

    @jax.jit
    def loss(tables):
        return negative_sampling(*net.apply({"params": tables}, ROWS, WEIGHTS, DRAWN, SUBWORDS), NEGATIVES)

    precise = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), tables)
    assert float(loss(tables)) == pytest.approx(by_hand(precise), rel=1e-5)
    gradient, small = jax.grad(loss)(tables), 1e-5
    for name, table in precise.items():
        expected = np.zeros_like(table)
        for place in np.ndindex(table.shape):
            before = table[place]
            table[place] = before + small
            above = by_hand(precise)
            table[place] = before - small
            expected[place] = (above - by_hand(precise)) / (2 * small)
            table[place] = before
        np.testing.assert_allclose(gradient[name], expected, rtol=1e-4, atol=1e-4, err_msg=name)


def test_what_has_no_weight_teaches_nothing():
    net = model()
    tables = params(net)
    apply = jax.jit(lambda *batch: net.apply({"params": tables}, *batch))
    scores, pairs = apply(ROWS, WEIGHTS, DRAWN)
    assert scores.shape == (2, LENGTH, LENGTH + 2 * WINDOW + 3)
    assert (np.asarray(pairs)[np.asarray(WEIGHTS) == 0] == 0).all()
    assert float(negative_sampling(scores, pairs * 0, NEGATIVES)) == 0
    alone, _ = apply(ROWS[:1], WEIGHTS[:1], DRAWN[:1])
    np.testing.assert_allclose(alone[0], scores[0], rtol=1e-6)  # whatever stands in the other rows


def test_vectors_are_the_mean_of_a_word_and_its_n_grams():
    net = model(num_buckets=5)
    tables = params(net)
    vectors = net.apply({"params": tables}, SUBWORDS, method="vectors")
    for word in range(WORDS):
        np.testing.assert_allclose(vectors[word], read(jax.tree.map(np.asarray, tables), word), rtol=1e-6)
    np.testing.assert_array_equal(model().apply({"params": tables}, method="vectors"), tables["words"])


def test_inner_products_and_their_gradient_are_those_of_einsum():
    x, y, g = (jax.random.normal(jax.random.key(i), shape) for i, shape in enumerate([(2, 3, 4), (2, 5, 4), (2, 3, 5)]))
    ours, ours_back = jax.vjp(inner_products, x, y)
    theirs, theirs_back = jax.vjp(lambda x, y: jnp.einsum("btd,bsd->bts", x, y), x, y)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    for a, b in zip(ours_back(g), theirs_back(g), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"algorithm": "glove"}, "algorithm='glove': use one of skip_gram, cbow"),
        ({"window": 0}, "window=0 must be at least 1"),
        ({"num_buckets": -1}, "num_buckets=-1 must not be negative"),
        ({"max_n": 2}, "max_n=2 must be at least min_n=3"),
    ],
)
def test_hyperparameters_that_cannot_be_meant(changes, line):
    with pytest.raises(ValueError, match=line):
        model(**changes)
