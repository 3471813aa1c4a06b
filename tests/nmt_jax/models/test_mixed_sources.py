"""A text and an image as the sources of one model: padding, cached steps, attention to both, and their order."""

import functools

import jax
import numpy as np
import pytest

from nmt_jax.data.vocabulary.vocab import EOS, PAD
from nmt_jax.models import rnn, transformer
from nmt_jax.models.layers.features import Features, Mixed, batch_source
from nmt_jax.models.layers.transformer_layers import COMBINATIONS
from tests.fixtures.decoding_steps import stepwise_logits
from tests.fixtures.parameters import draw_parameters

B, COLUMNS, S, K, V = 2, 2, 5, 2, 11
CELLS = COLUMNS**2
RANDOM = np.random.default_rng(0)
WORDS = np.array([[4, 5, EOS, PAD, PAD], [6, 7, 8, 9, EOS]])
IMAGES = Features(RANDOM.normal(size=(B, S, 48)).astype(np.float32), np.array([CELLS, CELLS]))
SOURCE = Mixed((WORDS, IMAGES))
TARGET = np.array([[5, 6, 7, EOS], [4, 10, EOS, PAD]])
SIZES = {"source_vocab_size": V, "target_vocab_size": V, "num_sources": 2, "source_columns": (0, COLUMNS)}
TRANSFORMER = {"num_encoder_layers": 1, "num_decoder_layers": 1, "d_model": 8, "d_ff": 12, "num_heads": 2}
RNN = {"d_embedding": 6, "d_hidden": 8, "cell": "gru"}
CONVOLUTION = {"image_encoder": "convolution", "convolution_width": 4}
MODELS = {
    "transformer": lambda: transformer.Model(**SIZES, **TRANSFORMER, **CONVOLUTION),
    "patches": lambda: transformer.Model(**SIZES, **TRANSFORMER, positions="learned"),
    "rnn": lambda: rnn.Model(**SIZES, **RNN, **CONVOLUTION, input_feeding=False),
    "rnn flat": lambda: rnn.Model(**SIZES, **RNN, combination="flat", input_feeding=False),  # patches through a GRU
}
MODELS |= {
    combination: functools.partial(transformer.Model, **SIZES, **TRANSFORMER, combination=combination)
    for combination in COMBINATIONS[1:]
}


@functools.cache
def make(name):
    """A model, its parameters, and its compiled call."""
    model = MODELS[name]()
    variables = draw_parameters(model.init, SOURCE, TARGET)
    apply = jax.jit(lambda source: model.apply(variables, source, TARGET))
    return model, variables, lambda source: jax.device_get(apply(source))


@pytest.mark.parametrize("name", MODELS)
def test_padding_has_no_influence_and_both_sources_have(name):
    _, _, apply = make(name)
    logits = apply(SOURCE)[0]
    assert np.isfinite(logits).all()
    filled = IMAGES.rows.copy()
    filled[:, CELLS:] = 50.0
    np.testing.assert_array_equal(apply(Mixed((WORDS, Features(filled, IMAGES.lengths))))[0], logits)
    changed = WORDS.copy()
    changed[0, 0] = 8
    assert np.abs(apply(Mixed((changed, IMAGES)))[0] - logits)[0].max() > 1e-4
    filled[0, 1] = -filled[0, 1]
    assert np.abs(apply(Mixed((WORDS, Features(filled, IMAGES.lengths))))[0] - logits)[0].max() > 1e-4


@pytest.mark.parametrize("name", MODELS)
def test_the_places_of_the_sources_follow_each_other_in_attention(name):
    model, _, apply = make(name)
    weights = apply(SOURCE)[1]["cross"][0]
    if isinstance(model, transformer.Model):
        assert weights.shape == (B, 2, TARGET.shape[1], 2 * S)
        weights = weights.reshape(B, 2, TARGET.shape[1], 2, S).swapaxes(2, 3)  # [B, H, N, T, S]
        assert (weights[0, :, 0, :, 3:] == 0).all()
        assert (weights[:, :, 1, :, CELLS:] == 0).all()
    else:
        assert weights.shape == (B, 2, TARGET.shape[1], S)
        assert (weights[0, 0, :, 3:] == 0).all()
        assert (weights[:, 1, :, CELLS:] == 0).all()


@pytest.mark.parametrize("name", MODELS)
def test_decoding_step_by_step_equals_the_full_pass(name):
    model, variables, apply = make(name)
    found = stepwise_logits(model, variables, SOURCE, TARGET, K)
    np.testing.assert_allclose(found, np.repeat(apply(SOURCE)[0], K, axis=0), atol=3e-6)


def test_two_texts_are_read_by_the_transformer():
    model = transformer.Model(V, V, num_sources=2, **TRANSFORMER)
    texts = np.stack([WORDS, WORDS[:, ::-1].copy()], axis=1)
    texts[:, 1] = [[4, EOS, PAD, PAD, PAD], [5, 6, EOS, PAD, PAD]]
    variables = draw_parameters(model.init, texts, TARGET)
    apply = jax.jit(lambda source: model.apply(variables, source, TARGET)[0])
    logits = apply(texts)
    assert np.abs(apply(texts[:, ::-1]) - logits).max() > 1e-3  # the order of the sources is known
    longer = np.pad(texts, ((0, 0), (0, 0), (0, 2)), constant_values=PAD)
    np.testing.assert_allclose(apply(longer), logits, atol=2e-6)
    with pytest.raises(ValueError, match="num_sources=2, but the batch has 1 per sentence"):
        model.apply(variables, WORDS, TARGET)


def test_a_batch_says_which_of_its_sources_have_rows():
    batch = {"source0": WORDS, "source1": IMAGES.rows, "source1_lengths": IMAGES.lengths, "target": TARGET}
    source = batch_source(batch)
    assert isinstance(source, Mixed)
    assert source.parts[0] is WORDS
    assert source.parts[1].lengths is IMAGES.lengths
    assert source.shape == (B, 2, S)
    assert len(source) == B
