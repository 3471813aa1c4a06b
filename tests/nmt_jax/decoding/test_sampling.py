import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax.decoding.sampling import Sampling, sample
from nmt_jax.decoding.stochastic_beam import stochastic_beam_search
from tests.fixtures.markov import certain

V, T, BOS, EOS = 4, 3, 2, 3


@pytest.fixture(scope="module")
def table() -> np.ndarray:
    """A language model of order 2: log-probabilities float32[V, V, V]; token 0 is impossible."""
    logits = np.random.default_rng(0).normal(size=(V, V, V))
    logits[..., 0] = -1e9
    return np.asarray(jax.nn.log_softmax(logits), np.float32)


@pytest.fixture(scope="module")
def draw(table):
    """Calls `sample` with B rows, given int[B, T], limits int[B] and options of `Sampling`; returns the tokens."""

    def step(tokens, cache):
        return certain(jnp.asarray(table)[cache, tokens]), tokens

    @functools.partial(jax.jit, static_argnames="sampling")
    def run(given, limits, keys, sampling):
        cache = jnp.full(given.shape[0], BOS)
        return sample(step, cache, given, limits, keys, sampling, start=BOS, eos=EOS)

    def call(count, given=None, limits=None, seed=0, log_probs=False, **options):
        given = np.zeros((count, T), np.int32) if given is None else np.asarray(given, np.int32)
        limits = np.full(count, T) if limits is None else np.asarray(limits)
        found = run(given, limits, jax.random.split(jax.random.key(seed), count), sampling=Sampling(**options))
        return tuple(map(np.asarray, found)) if log_probs else np.asarray(found[0])

    return call


def probabilities(table, temperature=1.0, keep=lambda p: p > 0):
    """The probability of every text that ends, or is cut off at T tokens, if only tokens with `keep(p)` are drawn."""
    found = {}
    for length in range(1, T + 1):
        for tokens in itertools.product(range(1, V), repeat=length):
            if EOS in tokens[:-1] or (length < T and tokens[-1] != EOS):
                continue
            history, probability = (BOS, BOS, *tokens), 1.0
            for i, token in enumerate(tokens):
                row = np.exp(table[history[i], history[i + 1]].astype(float) / temperature)
                row = np.where(keep(row / row.sum()), row, 0)
                probability *= row[token] / row.sum()
            if probability:
                found[(*tokens, *[0] * (T - length))] = probability
    return found


def assert_distributed_as(rows, expected):
    """Chi-square test: rows int[N, T] are distributed as `expected`, and no other text occurs."""
    texts, counts = np.unique(rows, axis=0, return_counts=True)
    observed = dict(zip(map(tuple, texts.tolist()), counts.tolist(), strict=True))
    expected = {text: len(rows) * p for text, p in expected.items()}
    assert sum(expected.values()) == pytest.approx(len(rows))
    assert set(observed) <= set(expected)
    common = [text for text, number in expected.items() if number >= 5]
    chi_square = sum((observed.get(text, 0) - expected[text]) ** 2 / expected[text] for text in common)
    freedom = len(common) - 1
    assert freedom > 2
    assert chi_square < freedom + 4 * (2 * freedom) ** 0.5  # mean and deviation of chi-square


def nucleus(p):
    order = np.argsort(-p)
    kept = np.zeros(len(p), bool)
    kept[order[: np.searchsorted(np.cumsum(p[order]), 0.7) + 1]] = True
    return kept


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "keep"),
    [
        ({"temperature": 1.0}, lambda p: p > 0),
        ({"temperature": 0.5}, lambda p: p > 0),
        ({"temperature": 2.0}, lambda p: p > 0),
        ({"top_k": 2}, lambda p: p >= np.sort(p)[-2]),
        ({"top_p": 0.7}, nucleus),
        ({"top_p": 0.7, "temperature": 1.5}, nucleus),
        ({"epsilon": 0.2}, lambda p: (p >= 0.2) | (p == p.max())),
    ],
    ids=["plain", "colder", "warmer", "top_k", "top_p", "top_p of warmer", "epsilon"],
)
def test_texts_have_the_frequency_of_their_probability(table, draw, options, keep):
    rows = draw(20_000, **options)
    assert_distributed_as(rows, probabilities(table, options.get("temperature", 1.0), keep))


def test_log_probabilities_are_those_of_the_model(table, draw):
    rows, log_probs = draw(50, log_probs=True, top_k=2, temperature=0.7)
    exact = probabilities(table)
    np.testing.assert_allclose(np.exp(log_probs), [exact[tuple(row.tolist())] for row in rows], rtol=1e-5)


def test_without_temperature_the_most_probable_token_is_taken(table, draw):
    text, last = [], (BOS, BOS)
    while len(text) < T and EOS not in text:
        text.append(int(table[last].argmax()))
        last = (last[1], text[-1])
    expected = text + [0] * (T - len(text))
    assert (draw(5, temperature=0.0) == expected).all()


def test_a_row_depends_only_on_its_key_beginning_and_limit(draw):
    given = np.array([[0, 0, 0], [1, 0, 0], [2, 1, 0], [0, 0, 0], [1, EOS, 0]])
    limits = np.array([3, 3, 3, 1, 3])
    together = draw(5, given=given, limits=limits)
    again = draw(5, given=given[[0, 1, 2, 0, 0]], limits=[3, 3, 3, 3, 3])
    np.testing.assert_array_equal(together[:3], again[:3])
    assert (together[given > 0] == given[given > 0]).all()
    assert together[3, 0] > 0
    assert (together[3, 1:] == 0).all()
    assert together[4].tolist() == [1, EOS, 0]


def test_different_keys_draw_different_texts(draw):
    np.testing.assert_array_equal(draw(50), draw(50))
    assert (draw(50) != draw(50, seed=1)).any()


def test_a_limit_of_zero_draws_nothing(draw):
    assert (draw(3, limits=[0, 0, 0]) == 0).all()


@pytest.fixture(scope="module")
def draw_different(table):
    """Calls the stochastic beam search with `count` sentences; returns tokens and log-probabilities."""

    def step(tokens, cache):
        return certain(jnp.asarray(table)[cache, tokens]), tokens

    @functools.partial(jax.jit, static_argnums=(1,))
    def run(keys, num_samples, given):
        count = len(keys)
        cache = jnp.full(count * num_samples, BOS)
        limits = jnp.full(count, T)
        return stochastic_beam_search(step, cache, given, limits, keys, num_samples=num_samples, start=BOS, eos=EOS)

    def call(count, num_samples, begin=()):
        given = jnp.broadcast_to(jnp.array([*begin, *[0] * (T - len(begin))]), (count, T))
        return tuple(map(np.asarray, run(jax.random.split(jax.random.key(1), count), num_samples, given)))

    return call


def test_without_replacement_the_second_text_is_a_sample_of_the_rest(table, draw_different):
    rows, log_probs = draw_different(20_000, 2)
    exact = probabilities(table)
    assert_distributed_as(rows[:, 0], exact)
    pairs = {}
    for first, p in exact.items():
        for second, q in exact.items():
            if first != second:
                pairs[(*first, *second)] = p * q / (1 - p)
    assert_distributed_as(rows.reshape(len(rows), -1), pairs)
    expected = [[exact[tuple(text.tolist())] for text in row] for row in rows[:20]]
    np.testing.assert_allclose(np.exp(log_probs[:20]), expected, rtol=1e-5)


def test_without_replacement_all_texts_are_different_and_enough_samples_find_all(table, draw_different):
    exact = probabilities(table)
    rows, log_probs = draw_different(3, len(exact) + 2)
    for texts, values in zip(rows, log_probs, strict=True):
        real = {tuple(text.tolist()) for text, value in zip(texts, values, strict=True) if value > -1e8}
        assert real == set(exact)
    (begun,), _ = draw_different(1, 3, begin=(1,))
    assert (begun[:, 0] == 1).all()
    assert len({tuple(text.tolist()) for text in begun}) == 3


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"top_p": 0.0}, "top_p=0.0"),
        ({"top_p": 1.5}, "top_p=1.5"),
        ({"top_k": -1}, "top_k=-1"),
        ({"epsilon": 1.0}, "epsilon=1.0"),
        ({"temperature": -1.0}, "temperature=-1.0"),
        ({"num_samples": 0}, "num_samples=0"),
        ({"replacement": False, "top_k": 3}, "without replacement excludes"),
    ],
)
def test_invalid_options_are_errors(options, line):
    with pytest.raises(ValueError, match=line):
        Sampling(**options)
