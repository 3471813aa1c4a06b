import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax.decoding.beam import beam_search, length_penalty

V, T, BOS, EOS = 4, 4, 2, 3


def markov(seed, batch_size):
    """A language model whose next token hangs on the last two, one a sentence: log-probabilities float[B, V, V, V]."""
    return np.asarray(
        jax.nn.log_softmax(2 * np.random.default_rng(seed).normal(size=(batch_size, V, V, V))), np.float32
    )


def make_step(table):
    def step(tokens, cache):
        previous, sentence = cache["previous"], jnp.repeat(jnp.arange(len(table)), tokens.shape[0] // len(table))
        return jnp.asarray(table)[sentence, previous, tokens], {"previous": tokens, "shared": cache["shared"]}

    return step


def search(table, beam_size, alpha=0.0, limits=None, n_best=None, max_length=T):
    batch_size = len(table)
    cache = {"previous": jnp.full(batch_size * beam_size, BOS), "shared": jnp.zeros((batch_size, 2))}
    limits = jnp.full(batch_size, max_length) if limits is None else jnp.asarray(limits)
    tokens, scores = jax.jit(
        lambda cache, limits: beam_search(
            make_step(table),
            cache,
            beam_size=beam_size,
            n_best=n_best or beam_size,
            max_length=max_length,
            limits=limits,
            length_penalty_alpha=alpha,
            bos=BOS,
            eos=EOS,
        )
    )(cache, limits)
    return np.asarray(tokens), np.asarray(scores)


def log_probability(table, tokens):
    history = (BOS, BOS, *tokens)
    return sum(float(table[history[i], history[i + 1], history[i + 2]]) for i in range(len(tokens)))


def enumerate_all(table, alpha, length=T):
    """Every translation that ends within `length`, best first, by definition."""
    found = []
    for n in range(length):
        for words in itertools.product([t for t in range(V) if t != EOS], repeat=n):
            tokens = (*words, EOS)
            found.append((log_probability(table, tokens) / float(length_penalty(n + 1, alpha)), tokens))
    return sorted(found, reverse=True)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.5])
def test_a_full_beam_finds_what_enumeration_finds(alpha):
    table = markov(0, 3)
    tokens, scores = search(table, V**T, alpha, n_best=5)
    for b in range(3):
        expected = enumerate_all(table[b], alpha)[:5]
        np.testing.assert_allclose(scores[b], [score for score, _ in expected], rtol=1e-5)
        assert [tuple(row[: row.tolist().index(EOS) + 1]) for row in tokens[b]] == [t for _, t in expected]


@pytest.mark.parametrize("beam_size", [1, 2, 5])
def test_scores_are_the_log_probabilities_of_the_tokens(beam_size):
    table = markov(1, 2)
    tokens, scores = search(table, beam_size, 0.6)
    for b, k in itertools.product(range(2), range(beam_size)):
        row = tokens[b, k].tolist()
        ended = EOS in row
        words = row[: row.index(EOS) + 1] if ended else row
        penalty = float(length_penalty(len(words), 0.6))
        np.testing.assert_allclose(scores[b, k], log_probability(table[b], words) / penalty, rtol=1e-5)
        assert row[len(words) :] == [0] * (T - len(words))


def test_beam_of_one_is_greedy():
    table = markov(2, 4)
    tokens, _ = search(table, 1, max_length=6)
    for b in range(4):
        history = [BOS, BOS]
        while len(history) < 8 and history[-1] != EOS:
            history.append(int(table[b, history[-2], history[-1]].argmax()))
        # Of a prefix's two best tokens one may be the end, and ending may beat going on.
        row = tokens[b, 0].tolist()
        ended = row[: row.index(EOS) + 1] if EOS in row else row
        assert log_probability(table[b], ended) >= log_probability(table[b], history[2:]) - 1e-5


def test_a_hypothesis_that_never_ends_is_returned_whole():
    table = np.full((1, V, V, V), -1.0, np.float32)
    table[..., EOS] = -1e9
    table[..., 1] = -0.1
    tokens, scores = search(table, 2)
    assert tokens[0, 0].tolist() == [1] * T
    np.testing.assert_allclose(scores[0, 0], -0.1 * T, rtol=1e-5)


def test_a_sentence_never_depends_on_its_neighbours_or_on_the_room_left():
    table = markov(3, 3)
    limits = [2, 4, 3]
    tokens, scores = search(table, 3, 0.6, limits)
    for b, limit in enumerate(limits):
        alone, score = search(table[b : b + 1], 3, 0.6, [limit], max_length=limit)
        np.testing.assert_array_equal(tokens[b][:, :limit], alone[0])
        assert (tokens[b][:, limit:] == 0).all()
        np.testing.assert_allclose(scores[b], score[0], rtol=1e-6)


def test_stopping_early_loses_nothing():
    """The n best are the same whether the search stops for one or for all of its results."""
    table = markov(4, 5)
    for alpha in (0.0, 1.0):
        all_tokens, _ = search(table, 4, alpha, max_length=8)
        best, _ = search(table, 4, alpha, n_best=1, max_length=8)
        np.testing.assert_array_equal(best[:, 0], all_tokens[:, 0])
