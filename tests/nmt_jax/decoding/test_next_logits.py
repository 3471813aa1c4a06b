"""Logits that are not finite: whatever decodes, the scores of their sentence say so, and those of others are theirs."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax.decoding.beam_search import SearchRequest
from nmt_jax.decoding.method import Search, StepModel
from nmt_jax.decoding.next_logits import ensemble, predict, token_log_probs
from nmt_jax.decoding.sampling import Sampling

V, T, BOS, EOS, PAD = 70, 4, 2, 3, 0  # more pieces than a block of `top_k`
METHODS = {
    "greedy": Search(beam_size=1),
    "beam": Search(beam_size=3, n_best=3),
    "rules": Search(beam_size=2, n_best=2, no_repeat_ngram_size=2, length_penalty=0.6),
    "groups": Search(beam_size=4, num_groups=2, n_best=4),
    "samples": Sampling(num_samples=2, top_p=0.9),
    "the best piece": Sampling(temperature=0.0),
    "different samples": Sampling(num_samples=3, replacement=False),
}


def make_step(value, when):
    """A model of two sentences; in the second, one logit of step `when` is `value`."""
    table = jnp.asarray(np.random.default_rng(0).normal(size=(2, V)), jnp.float32).at[:, EOS].set(-9.0)

    def step(tokens, cache):
        sentence, position = cache
        logits = jnp.roll(table, position, axis=1)[sentence]
        broken = (jnp.repeat(sentence, len(tokens) // len(sentence)) == 1) & (position == when)
        logits = jnp.repeat(logits, len(tokens) // len(sentence), axis=0)
        logits = logits.at[:, 66].set(jnp.where(broken, value, logits[:, 66]))
        return predict(logits, (PAD, BOS)), (sentence, position + 1)

    return step, (jnp.arange(2), jnp.int32(0))


@functools.partial(jax.jit, static_argnames="method")
def decode(method, value, when):
    step, cache = make_step(value, when)
    model = StepModel(ensemble([step]), (cache,), T, BOS, EOS)
    return method.run(model, SearchRequest(jnp.full(2, T), None), jnp.arange(2, dtype=jnp.uint32))


@pytest.mark.slow
@pytest.mark.parametrize(("when", "value"), [(0, np.inf), (2, np.nan)])
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_scores_of_a_sentence_without_a_distribution_are_not_numbers(method, when, value):
    tokens, scores = decode(method, value, when)
    expected, finite = decode(method, 0.0, when)
    assert np.isnan(scores[1]).all()
    assert np.isfinite(finite).all()
    np.testing.assert_array_equal(tokens[0], expected[0])
    np.testing.assert_array_equal(scores[0], finite[0])


def test_an_ensemble_with_one_broken_model():
    steps, caches = zip(*(make_step(value, 0) for value in (np.inf, 0.0)), strict=True)
    following, _ = jax.jit(ensemble(steps))(jnp.full(2, BOS), caches)
    assert np.isfinite(following.log_probs[0]).all()
    assert np.isnan(following.log_probs[1]).all()


def test_given_texts():
    step, cache = make_step(np.inf, 1)
    log_probs, _ = token_log_probs(step, cache, jnp.array([[5, 6, 3, 0], [5, 6, 3, 0]]), start=BOS)
    np.testing.assert_array_equal(np.isnan(log_probs), [[False] * 4, [False, True, False, False]])
