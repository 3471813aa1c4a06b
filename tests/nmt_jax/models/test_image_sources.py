"""Images as the source of both models, by convolutions: padding, cached steps, and Xu et al. (2015) in NumPy."""

import functools

import jax
import numpy as np
import pytest

from nmt_jax.data.vocabulary.vocab import BOS, EOS, PAD
from nmt_jax.models import rnn, transformer
from nmt_jax.models.layers.features import Features, grid_sinusoids
from tests.fixtures.decoding_steps import stepwise_logits
from tests.fixtures.parameters import draw_parameters

B, COLUMNS, PATCH, K, V = 2, 3, 4, 2, 11
CELLS = COLUMNS**2
SIZES = {"source_vocab_size": V, "target_vocab_size": V, "source_columns": (COLUMNS,)}
SIZES |= {"image_encoder": "convolution", "convolution_width": 4}
TRANSFORMER = {"num_encoder_layers": 1, "num_decoder_layers": 1, "d_model": 8, "d_ff": 12, "num_heads": 2}
SOFT = {"d_embedding": 6, "d_hidden": 8, "d_attention": 5, "decoder": "bahdanau", "score": "additive"}
SOFT |= {"bridge": "mean", "context_gate": True}
RANDOM = np.random.default_rng(0)
# Two rows of padding, as in a longer bucket; the second image lacks its last patch.
IMAGES = Features(RANDOM.normal(size=(B, CELLS + 2, 3 * PATCH**2)).astype(np.float32), np.array([CELLS, CELLS - 1]))
TARGET = np.array([[5, 6, 7, EOS], [4, 10, EOS, PAD]])
MODELS = {
    "transformer": lambda: transformer.Model(**SIZES, **TRANSFORMER),
    "soft": lambda: rnn.Model(**SIZES, **SOFT),
    "luong": lambda: rnn.Model(**SIZES, d_embedding=6, d_hidden=8, context_gate=True, input_feeding=False),
}


@functools.cache
def make(name):
    """A model, its parameters, and its compiled call."""
    model = MODELS[name]()
    variables = draw_parameters(model.init, IMAGES, TARGET)
    apply = jax.jit(lambda source: model.apply(variables, source, TARGET))
    return model, variables, lambda source: jax.device_get(apply(source))


@pytest.mark.parametrize("name", MODELS)
def test_padding_has_no_influence(name):
    _, _, apply = make(name)
    logits, out = apply(IMAGES)
    assert (out["cross"][0][0, ..., CELLS:] == 0).all()
    filled = IMAGES.rows.copy()
    filled[0, CELLS:], filled[1, CELLS - 1 :] = 50.0, 50.0
    np.testing.assert_array_equal(apply(Features(filled, IMAGES.lengths))[0], logits)
    short = apply(Features(IMAGES.rows[:, :CELLS], IMAGES.lengths))[0]
    np.testing.assert_allclose(short, logits, atol=2e-6)
    assert np.abs(apply(Features(IMAGES.rows, IMAGES.lengths - 1))[0] - logits).min(axis=(1, 2)).max() > 0


@pytest.mark.parametrize("name", MODELS)
def test_decoding_step_by_step_equals_the_full_pass(name):
    model, variables, apply = make(name)
    found = stepwise_logits(model, variables, IMAGES, TARGET, K)
    np.testing.assert_allclose(found, np.repeat(apply(IMAGES)[0], K, axis=0), atol=3e-6)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_the_soft_attention_of_xu_et_al_in_numpy():
    """Section 3.1 and 4.2: c_0 and h_0 from the mean of the cells, then one step of attention, gate and LSTM."""
    model, variables, apply = make("soft")
    params = jax.tree.map(np.float64, variables["params"]["decoder_layers"])
    encoded = jax.device_get(model.apply(variables, IMAGES, method="encode"))
    a = encoded["memory"]["values"][:, :CELLS].astype(np.float64)  # the annotation vectors a_i
    real = np.arange(CELLS) < IMAGES.lengths[:, None]
    mean = np.stack([a[row][real[row]].mean(axis=0) for row in range(B)])
    h, c = (np.tanh(mean @ params[f"bridges_0_{n}"]["kernel"] + params[f"bridges_0_{n}"]["bias"]) for n in (0, 1))
    np.testing.assert_allclose(encoded["start"].states[0][0][:, 0], h, atol=1e-5)
    np.testing.assert_allclose(encoded["start"].states[0][1][:, 0], c, atol=1e-5)
    # Equations 4 and 5: e_ti = f_att(a_i, h_{t-1}), alpha_t = softmax(e_t).
    score = params["attend"]["score_function"]
    hidden = np.tanh((h @ score["query"]["kernel"])[:, None] + a @ score["key"]["kernel"])
    e = np.where(real, hidden @ score["vector"], -np.inf)
    alpha = np.exp(e) / np.exp(e).sum(axis=1, keepdims=True)
    # Section 4.2.1: z_t = beta_t sum_i alpha_ti a_i with beta_t = sigmoid(f_beta(h_{t-1})).
    beta = sigmoid(h @ params["gate"]["kernel"] + params["gate"]["bias"])
    z = beta * np.einsum("bs,bsd->bd", alpha, a)
    # Equations 1 to 3: an LSTM that reads the last word and z_t.
    table = np.float64(variables["params"]["target_embedding"]["table"])
    y = np.tile(table[BOS] * 6**0.5, (B, 1))
    cell = params["cells_0"]
    gates = np.concatenate([y, z], axis=1) @ cell["input"]["kernel"] + cell["input"]["bias"]
    i, f, o, g = np.split(gates + h @ cell["kernel"] + cell["bias"], 4, axis=1)
    c = sigmoid(f + 1) * c + sigmoid(i) * np.tanh(g)
    h = sigmoid(o) * np.tanh(c)
    # The deep output reads h_t, the last word and z_t (equation 7, with maxout as in Bahdanau et al., 2015).
    wide = np.concatenate([h, y, z], axis=1) @ params["output"]["kernel"] + params["output"]["bias"]
    readout = wide.reshape(B, -1, 2).max(axis=-1)
    logits, out = apply(IMAGES)
    np.testing.assert_allclose(out["cross"][0][:, 0, 0, :CELLS], alpha, atol=1e-5)
    expected = readout @ np.float64(variables["params"]["output_table"]["table"]).T
    np.testing.assert_allclose(logits[:, 0], expected, atol=1e-4)


def test_cells_have_places():
    """Equal patches everywhere but at the border have states that differ by the embeddings of their places."""
    model, variables, _ = make("soft")
    flat = Features(np.full((1, CELLS, 3 * PATCH**2), 0.5, np.float32), np.array([CELLS]))
    states = model.apply(variables, flat, method="encode")["memory"]["values"][0]
    cells = model.apply(variables, flat, method=lambda model, source: model._embed_source(source, 0))[0]
    np.testing.assert_allclose(states, cells, atol=1e-6)
    bare = model.apply(
        variables, flat, method=lambda model, source: model.convolutions[0](source.rows, np.ones((1, CELLS), bool))
    )[0]
    np.testing.assert_allclose(cells - bare, grid_sinusoids(CELLS, COLUMNS, 8), atol=1e-5)


def test_images_have_no_last_state_to_copy():
    with pytest.raises(ValueError, match="bridge='copy' copies the last state of an encoder, which images lack"):
        rnn.Model(**SIZES, **SOFT | {"bridge": "copy"})
