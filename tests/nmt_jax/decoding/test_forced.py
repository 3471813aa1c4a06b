import jax.numpy as jnp
import numpy as np

from nmt_jax.decoding.next_logits import token_log_probs
from tests.fixtures.markov import BOS, EOS, T, log_probability, make, make_cache, make_step


def test_each_token_has_its_log_probability_and_padding_none():
    table, given = make(0, 3), [(1, 2, EOS), (EOS,), (2, 2, 1, EOS)]
    rows = jnp.array([[*text, *[0] * (T - len(text))] for text in given])
    log_probs, weights = token_log_probs(make_step(table), make_cache(table, 1), rows, start=BOS)
    assert weights.shape == (3, T, 0)
    for b, text in enumerate(given):
        expected = [
            log_probability(table[b], text[: i + 1]) - log_probability(table[b], text[:i]) for i in range(len(text))
        ]
        np.testing.assert_allclose(log_probs[b, : len(text)], expected, atol=1e-5)
        assert (log_probs[b, len(text) :] == 0).all()


def test_attention_is_that_of_each_step():
    table = make(1, 2)
    step = make_step(table)

    def watched(tokens, cache):
        log_probs, new = step(tokens, cache[0])
        return log_probs, (new, jnp.stack([tokens, tokens + 1], axis=-1) * 1.0)

    cache = (make_cache(table, 1), jnp.zeros((2, 2)))
    given = jnp.array([[1, EOS, 0, 0], [2, 1, 1, EOS]])
    _, weights = token_log_probs(watched, cache, given, start=BOS, attention=lambda cache: cache[1])
    before = np.array([[BOS, 1, EOS, 0], [BOS, 2, 1, 1]])
    np.testing.assert_array_equal(weights, np.stack([before, before + 1], axis=-1))
