import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax.decoding.sample import sample

V, T, BOS, EOS = 4, 3, 2, 3


@pytest.fixture(scope="module")
def table() -> np.ndarray:
    """A language model whose next token hangs on the last two: log-probabilities float32[V, V, V]; 0 is never said."""
    logits = np.random.default_rng(0).normal(size=(V, V, V))
    logits[..., 0] = -1e9
    return np.asarray(jax.nn.log_softmax(logits), np.float32)


@pytest.fixture(scope="module")
def draw(table):
    """Runs the sampler: temperature, given int[B, T], limits int[B], keys [B] -> tokens."""

    def step(tokens, cache):
        return jnp.asarray(table)[cache, tokens], tokens

    @jax.jit
    def run(temperature, given, limits, keys):
        cache = jnp.full(given.shape[0], BOS)
        return sample(step, cache, given, limits, keys, temperature, start=BOS, eos=EOS)

    def call(count, temperature=1.0, given=None, limits=None, seed=0):
        given = np.zeros((count, T), np.int32) if given is None else np.asarray(given, np.int32)
        limits = np.full(count, T) if limits is None else np.asarray(limits)
        return np.asarray(run(temperature, given, limits, jax.random.split(jax.random.key(seed), count)))

    return call


def probabilities(table, temperature):
    """Every text of at most T tokens that ends, or is cut at T, and its probability."""
    found = {}
    for length in range(1, T + 1):
        for tokens in itertools.product(range(1, V), repeat=length):
            if EOS in tokens[:-1] or (length < T and tokens[-1] != EOS):
                continue
            history, p = (BOS, BOS, *tokens), 1.0
            for i, token in enumerate(tokens):
                row = np.exp(table[history[i], history[i + 1]].astype(float) / temperature)
                p *= row[token] / row.sum()
            found[(*tokens, *[0] * (T - length))] = p
    return found


@pytest.mark.parametrize("temperature", [1.0, 0.5, 2.0])
def test_texts_come_as_often_as_they_are_probable(table, draw, temperature):
    count = 20_000
    texts, counts = np.unique(draw(count, temperature), axis=0, return_counts=True)
    observed = dict(zip(map(tuple, texts.tolist()), counts.tolist(), strict=True))
    expected = {text: count * p for text, p in probabilities(table, temperature).items()}
    assert sum(expected.values()) == pytest.approx(count)
    assert set(observed) <= set(expected)
    common = [text for text, number in expected.items() if number >= 5]
    chi_square = sum((observed.get(text, 0) - expected[text]) ** 2 / expected[text] for text in common)
    freedom = len(common) - 1
    assert freedom > 10
    assert chi_square < freedom + 4 * (2 * freedom) ** 0.5  # mean and deviation of chi-square


def test_without_temperature_the_most_probable_token_is_taken(table, draw):
    text, last = [], (BOS, BOS)
    while len(text) < T and EOS not in text:
        text.append(int(table[last].argmax()))
        last = (last[1], text[-1])
    expected = text + [0] * (T - len(text))
    assert (draw(5, temperature=0.0) == expected).all()


def test_a_row_hangs_on_its_own_key_beginning_and_limit(draw):
    given = np.array([[0, 0, 0], [1, 0, 0], [2, 1, 0], [0, 0, 0], [1, EOS, 0]])
    limits = np.array([3, 3, 3, 1, 3])
    together = draw(5, given=given, limits=limits)
    again = draw(5, given=given[[0, 1, 2, 0, 0]], limits=[3, 3, 3, 3, 3])
    np.testing.assert_array_equal(together[:3], again[:3])
    assert (together[given > 0] == given[given > 0]).all()
    assert together[3, 0] > 0
    assert (together[3, 1:] == 0).all()
    assert together[4].tolist() == [1, EOS, 0]


def test_other_keys_draw_other_texts(draw):
    np.testing.assert_array_equal(draw(50), draw(50))
    assert (draw(50) != draw(50, seed=1)).any()


def test_nothing_is_drawn_where_the_limit_is_nothing(draw):
    assert (draw(3, limits=[0, 0, 0]) == 0).all()
