"""Both classifiers: their equations in float64, and what padding, order and neighbours change, or do not."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax.models import han, sentence_classifier
from tests.fixtures.parameters import draw_parameters
from tests.nmt_jax.models.layers.test_pooling import restated as pooled

SIZES = {"vocab_size": 30, "num_classes": 3, "d_embedding": 6, "d_hidden": 8, "d_attention": 5, "dropout": 0.4}
MODELS = [han.Model, sentence_classifier.Model]
# Rows: a document of full and shorter sentences, one with an empty sentence in the middle, one of one word, nothing.
WORDS = np.array(
    [
        [[4, 5, 6, 7], [8, 9, 0, 0], [10, 11, 12, 0]],
        [[13, 14, 0, 0], [0, 0, 0, 0], [15, 16, 17, 18]],
        [[19, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]],
        [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]],
    ],
    np.int32,
)


@functools.cache
def initialised(module):
    return draw_parameters(module.init, WORDS)["params"]


def make(model, **changes):
    """-> the model and parameters, none of them zero."""
    module = model(**(SIZES | changes))
    return module, jax.tree.map(np.array, initialised(module.clone(word_dropout=0.0)))


@functools.cache
def compiled(module):
    apply = jax.jit(lambda params, words: module.apply({"params": params}, words))
    return lambda params, words: jax.device_get(apply(params, words))


def gru(params, x):
    """All states of x float64[T, D]: Cho et al. (2014), the reset gate applied after the product."""
    weight, bias = (np.asarray(params["input"][name], np.float64) for name in ("kernel", "bias"))
    recurrent, recurrent_bias = (np.asarray(params[name], np.float64) for name in ("kernel", "bias"))
    h, states = np.zeros(recurrent.shape[0]), []
    for row in x:
        r_x, z_x, n_x = np.split(row @ weight + bias, 3)
        r_h, z_h, n_h = np.split(h @ recurrent + recurrent_bias, 3)
        r, z = 1 / (1 + np.exp(-(r_x + r_h))), 1 / (1 + np.exp(-(z_x + z_h)))
        h = (1 - z) * np.tanh(n_x + r * n_h) + z * h
        states.append(h)
    return np.array(states)


def encoded(params, x):
    """x float64[T, D] -> vector, weights: eq. 1 to 7 of Yang et al. (2016)."""
    cells = params["states"]
    forwards, backwards = gru(cells["layers_0_0"], x), gru(cells["layers_0_1"], x[::-1])[::-1]
    vectors, weights = pooled(
        params["pooling"], np.concatenate([forwards, backwards], 1)[None], np.ones((1, len(x)), bool)
    )
    return vectors[0], weights[0]


def output(params, v):
    return v @ np.asarray(params["output"]["kernel"], np.float64) + np.asarray(params["output"]["bias"], np.float64)


def look_up(params, words):
    return np.asarray(params["embedding"]["table"], np.float64)[words] * SIZES["d_embedding"] ** 0.5


def test_the_hierarchical_network_is_its_equations():
    module, params = make(han.Model)
    logits, out = compiled(module)(params, WORDS)
    for row, document in enumerate(WORDS[:3]):
        filled = [number for number, sentence in enumerate(document) if sentence.any()]
        found = [encoded(params["word_encoder"], look_up(params, document[n][document[n] != 0])) for n in filled]
        v, sentence_weights = encoded(params["sentence_encoder"], np.array([vector for vector, _ in found]))
        np.testing.assert_allclose(logits[row], output(params, v), atol=1e-6, rtol=1e-6)
        np.testing.assert_allclose(out["sentence_weights"][row, filled], sentence_weights, atol=1e-6)
        for number, (_, weights) in zip(filled, found, strict=True):
            np.testing.assert_allclose(out["word_weights"][row][number][: len(weights)], weights, atol=1e-6)


def test_the_sentence_classifier_is_its_equations():
    module, params = make(sentence_classifier.Model)
    logits, out = compiled(module)(params, WORDS)
    for row, document in enumerate(WORDS[:3]):
        v, weights = encoded(params["word_encoder"], look_up(params, document[document != 0]))
        np.testing.assert_allclose(logits[row], output(params, v), atol=1e-6, rtol=1e-6)
        both = out["word_weights"][row] * out["sentence_weights"][row][:, None]
        np.testing.assert_allclose(both[document != 0], weights, atol=1e-6)


@pytest.mark.parametrize("model", MODELS)
def test_weights_sum_to_one_where_there_are_words_and_are_exactly_zero_elsewhere(model):
    module, params = make(model)
    _, out = compiled(module)(params, WORDS)
    words, sentences = out["word_weights"], out["sentence_weights"]
    assert words.dtype == sentences.dtype == np.float32
    real = WORDS != 0
    assert (words[~real] == 0).all()
    assert (sentences[~real.any(-1)] == 0).all()
    assert (words[real] > 0).all()
    np.testing.assert_allclose(words.sum(-1), real.any(-1), atol=1e-6)
    np.testing.assert_allclose(sentences.sum(-1), real.any((-1, -2)), atol=1e-6)


@pytest.mark.parametrize("model", MODELS)
def test_padding_and_neighbours_change_nothing(model):
    module, params = make(model)
    logits, _ = compiled(module)(params, WORDS)
    wider, _ = compiled(module)(params, np.pad(WORDS, ((0, 2), (0, 3), (0, 5))))
    np.testing.assert_allclose(wider[:4], logits, atol=1e-6)
    for row in range(4):
        alone, _ = compiled(module)(params, np.where(np.arange(4)[:, None, None] == row, WORDS, 0))
        np.testing.assert_allclose(alone[row], logits[row], atol=1e-6)
    backwards, _ = compiled(module)(params, WORDS[::-1])
    np.testing.assert_allclose(backwards[::-1], logits, atol=1e-6)
    # An empty sentence in the middle is no sentence.
    later, _ = compiled(module)(params, WORDS[:, [0, 2, 1]])
    np.testing.assert_allclose(later[1], logits[1], atol=1e-6)


@pytest.mark.parametrize("model", MODELS)
def test_a_document_of_nothing_has_the_bias_and_finite_gradients(model):
    module, params = make(model)
    logits, _ = compiled(module)(params, WORDS)
    np.testing.assert_allclose(logits[3], params["output"]["bias"], atol=1e-6)

    def loss(params):
        return jnp.sum(module.apply({"params": params}, WORDS, True, rngs={"dropout": jax.random.key(0)})[0] ** 2)

    gradients = jax.jit(jax.grad(loss))(params)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradients))
    assert (np.asarray(gradients["embedding"]["table"])[0] == 0).all()  # padding is never learnt


@pytest.mark.parametrize("model", MODELS)
def test_the_order_of_words_and_of_sentences_matters(model):
    module, params = make(model)
    logits, _ = compiled(module)(params, WORDS)
    for changed in (WORDS[:, :, [1, 0, 2, 3]], WORDS[:, [2, 1, 0]]):
        other, _ = compiled(module)(params, changed)
        assert np.abs(other[0] - logits[0]).max() > 1e-3


def test_sentences_are_pooled_without_regard_to_order_where_nothing_recurs():
    """Only the recurrent layers know of order: without their influence the hierarchy is a bag of bags."""
    module, params = make(han.Model)
    for cell in params["sentence_encoder"]["states"].values():
        cell["kernel"][:] = 0.0
        size = cell["bias"].shape[0] // 3
        cell["input"]["bias"][size : 2 * size] = -50.0  # the update gate forgets
    logits, out = compiled(module)(params, WORDS)
    turned, turned_out = compiled(module)(params, WORDS[:, ::-1])
    np.testing.assert_allclose(turned, logits, atol=1e-6)
    np.testing.assert_allclose(turned_out["sentence_weights"][:, ::-1], out["sentence_weights"], atol=1e-6)


def test_bfloat16_is_near():
    module, params = make(han.Model)
    exact, _ = compiled(module)(params, WORDS)
    near, _ = compiled(module.clone(dtype="bfloat16"))(params, WORDS)
    assert near.dtype == np.float32
    assert 0 < np.abs(near - exact).max() < 0.2


@pytest.mark.parametrize("changes", [{}, {"dropout": 0.0, "word_dropout": 0.5}])
def test_dropout_falls_on_training_alone(changes):
    module, params = make(sentence_classifier.Model, **changes)
    train = jax.jit(lambda key: module.apply({"params": params}, WORDS, True, rngs={"dropout": key})[0])
    first, second = (np.asarray(train(jax.random.key(seed))) for seed in (0, 1))
    exact, _ = compiled(module.clone(word_dropout=0.0))(params, WORDS)
    assert np.abs(first - second).max() > 1e-3
    assert np.abs(first - exact)[:3].max() > 1e-3


def test_a_word_is_dropped_from_all_of_a_document():
    module, params = make(sentence_classifier.Model, word_dropout=0.5)
    words = np.random.default_rng(0).integers(4, 12, (6, 40))
    embed = jax.jit(functools.partial(module.apply, method="embed", train=True))
    x = np.asarray(embed({"params": params}, words, rngs={"dropout": jax.random.key(0)}))
    plain = look_up(params, words)
    fates = [
        {(word, bool(np.any(vector))) for word, vector in zip(*row, strict=True)} for row in zip(words, x, strict=True)
    ]
    assert all(len(fate) == len(set(row)) for fate, row in zip(fates, words.tolist(), strict=True))
    assert len(set(map(frozenset, fates))) > 1
    np.testing.assert_allclose(x[x != 0], 2 * plain[x != 0], rtol=1e-6)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"d_hidden": 7}, "d_hidden=7 must be even"),
        ({"cell": "gruu"}, "cell='gruu': use one of lstm, gru, rnn"),
        ({"dropout": 1.0}, r"dropout=1.0 must be in \[0, 1\)"),
        ({"d_attention": 0}, "d_attention=0 must be at least 1"),
    ],
)
def test_hyperparameters_that_cannot_be_meant(model, changes, words):
    with pytest.raises(ValueError, match=words):
        model(**(SIZES | changes))
