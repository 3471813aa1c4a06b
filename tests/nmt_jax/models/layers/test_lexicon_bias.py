"""The lexicon's bias against its equation in NumPy, float64, and the model that uses it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax.data.vocabulary.translation_lexicon import Lexicon
from nmt_jax.data.vocabulary.vocab import BOS, EOS, PAD
from nmt_jax.models.layers.lexicon_bias import lexicon_bias, lexicon_columns
from nmt_jax.models.rnn import Model
from tests.fixtures.parameters import draw_parameters

B, S, T, V = 2, 4, 5, 11
SOURCE = np.array([[4, 5, 4, EOS], [6, EOS, PAD, PAD]])
TARGETS = np.zeros((V, 2), np.int32)
PROBABILITIES = np.zeros((V, 2), np.float32)
TARGETS[4], PROBABILITIES[4] = (7, 8), (0.75, 0.25)
TARGETS[6], PROBABILITIES[6] = (9, 0), (0.5, 0.0)
LEXICON = Lexicon(TARGETS, PROBABILITIES, 3)


def restated(weights, epsilon):
    """log(sum_j a_j p(e | f_j) + epsilon)."""
    p = np.zeros((B, T, V))
    for b, t, j in np.ndindex(B, T, S):
        for e, probability in zip(TARGETS[SOURCE[b, j]], PROBABILITIES[SOURCE[b, j]], strict=True):
            p[b, t, e] += weights[b, t, j] * float(probability)
    return np.log(p + epsilon)


def test_forward_and_gradient_equal_the_equation():
    generator = np.random.default_rng(0)
    weights = generator.dirichlet(np.ones(S), size=(B, T))
    upstream = generator.normal(size=(B, T, V))

    @jax.jit
    def bias(weights, upstream):
        columns = lexicon_columns(LEXICON, jnp.asarray(SOURCE), V)
        found, back = jax.vjp(lambda weights: lexicon_bias(weights, columns, 0.1), weights)
        return found, back(upstream)[0]

    found, gradient = map(np.asarray, bias(np.float32(weights), np.float32(upstream)))
    np.testing.assert_allclose(found, restated(weights, 0.1), atol=1e-6)
    for place in np.ndindex(weights.shape):
        moved = np.zeros_like(weights)
        moved[place] = 1e-5
        ends = [(restated(weights + sign * moved, 0.1) * upstream).sum() for sign in (1, -1)]
        np.testing.assert_allclose(gradient[place], (ends[0] - ends[1]) / 2e-5, rtol=2e-6, atol=2e-6)


TINY = {"source_vocab_size": V, "target_vocab_size": V, "d_embedding": 6, "d_hidden": 8, "d_attention": 5}
TRANSLATION = np.array([[7, 8, 9, 4, EOS], [9, EOS, PAD, PAD, PAD]])


@pytest.mark.parametrize("fields", [{"copying": "pointer"}, {"decoder": "bahdanau"}])
def test_decoding_step_by_step_equals_the_full_pass(fields):
    model = Model(**TINY, lexicon=LEXICON, **fields)
    variables = draw_parameters(model.init, SOURCE, TRANSLATION)

    @jax.jit
    def call(variables):
        logits, out = model.apply(variables, SOURCE, TRANSLATION)
        return jax.nn.softmax(logits), out

    @jax.jit
    def start(variables):
        encoded = model.apply(variables, jnp.asarray(SOURCE), method="encode")
        return model.apply(variables, encoded, SOURCE, 2, T, method="init_cache")

    @jax.jit
    def step(variables, words, cache):
        logits, cache = model.apply(variables, words, cache, method="decode_step")
        return jax.nn.softmax(logits), cache

    p, out = call(variables)
    assert "output_kernel" not in out  # the loss would take the product of the two for the logits
    cache = start(variables)
    inputs = np.pad(TRANSLATION[:, :-1], ((0, 0), (1, 0)), constant_values=BOS)
    for t in range(T):
        found, cache = step(variables, np.repeat(inputs[:, t], 2), cache)
        np.testing.assert_allclose(found, np.repeat(np.asarray(p)[:, t], 2, axis=0), atol=2e-6)


def test_it_adds_to_the_logits_what_the_attention_looks_up():
    plain = Model(**TINY)
    variables = draw_parameters(plain.init, SOURCE, TRANSLATION)
    logits, out = jax.tree.map(np.asarray, jax.jit(plain.apply)(variables, SOURCE, TRANSLATION))
    biased, _ = jax.jit(Model(**TINY, lexicon=LEXICON, lexicon_epsilon=0.01).apply)(variables, SOURCE, TRANSLATION)
    expected = restated(np.float64(out["cross"][0][:, 0]), 0.01)
    np.testing.assert_allclose(np.asarray(biased) - logits, expected, atol=5e-6)
    assert expected.max() - expected.min() > 3


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"attention": "none"}, "copying and lexicon need attention"),
        ({"lexicon_epsilon": 0.0}, "lexicon_epsilon=0.0 must be positive"),
        ({"num_sources": 2}, "supports one source only"),
    ],
)
def test_what_cannot_be_meant_is_named(fields, line):
    with pytest.raises(ValueError, match=line):
        Model(**TINY, lexicon=LEXICON, **fields)
