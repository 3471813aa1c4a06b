"""Products of 8 bits: exact where the numbers are, close elsewhere, and independent of other rows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax.data.vocabulary.vocab import BOS, EOS, PAD
from nmt_jax.models.layers.quantization import Quantized, QuantizedTable, quantize, quantize_parameters
from nmt_jax.models.layers.quantization import quantized_product as product
from nmt_jax.models.transformer import Model
from tests.fixtures.parameters import draw_parameters

SOURCE = jnp.array([[4, 5, 6, 7, EOS], [8, 9, EOS, PAD, PAD]])
TARGET = jnp.array([[5, 6, 7, 8, 9, EOS], [4, 10, EOS, PAD, PAD, PAD]])
KINDS = (Quantized, QuantizedTable)
SIZES = {"source_vocab_size": 11, "target_vocab_size": 11, "num_encoder_layers": 2, "num_decoder_layers": 2}
SIZES |= {"d_model": 32, "d_ff": 64, "num_heads": 2}


def make(**fields):
    model = Model(**SIZES | fields)
    params = draw_parameters(model.init, SOURCE, TARGET, stddev=0.15)["params"]
    return model, params, quantize_parameters(params)


def test_a_product_of_small_integers_is_exact():
    rng = np.random.default_rng(0)
    x, w = rng.integers(-127, 128, (4, 6)), rng.integers(-127, 128, (6, 5))
    x[:, 0], w[0] = 127, -127  # the largest of each row and column, so that all scales are 1 and 3
    found = product(jnp.asarray(x, jnp.float32), quantize(jnp.asarray(3.0 * w), axis=0))
    np.testing.assert_allclose(found, 3.0 * (x @ w), rtol=1e-6)


def test_the_error_of_a_product_is_that_of_rounding():
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(7, 3, 64)).astype(np.float32), rng.normal(size=(64, 48)).astype(np.float32)
    kernel = quantize(jnp.asarray(w), axis=0)
    assert (kernel.values.dtype, kernel.scale.shape) == (jnp.int8, (1, 48))
    half = np.abs(w).max(axis=0) / 127 / 2
    assert (np.abs(kernel.values * kernel.scale - w) <= half * 1.001).all()
    found = product(jnp.asarray(x), kernel)
    assert (found.shape, found.dtype) == ((7, 3, 48), jnp.float32)
    assert np.linalg.norm(found - x @ w) < 0.02 * np.linalg.norm(x @ w)


def test_a_row_depends_on_no_other_and_may_be_zero():
    rng = np.random.default_rng(0)
    x, kernel = rng.normal(size=(5, 16)).astype(np.float32), quantize(jnp.asarray(rng.normal(size=(16, 4))), axis=0)
    others = np.concatenate([x[:1], 1000 * x[1:]])
    others[2] = 0
    before, after = product(jnp.asarray(x), kernel), product(jnp.asarray(others), kernel)
    np.testing.assert_array_equal(after[0], before[0])
    np.testing.assert_allclose(after[4], 1000 * before[4], rtol=1e-5)
    np.testing.assert_array_equal(after[2], 0)


def test_all_kernels_and_tables_of_embeddings_are_quantized():
    for fields in ({}, {"tie_embeddings": "none", "positions": "learned", "activation": "swiglu"}):
        params, quantized = make(**fields)[1:]
        found = jax.tree.leaves_with_path(quantized, is_leaf=lambda leaf: isinstance(leaf, KINDS))
        wide = {jax.tree_util.keystr(path) for path, leaf in found if not isinstance(leaf, KINDS)}
        matrices = {jax.tree_util.keystr(path) for path, leaf in jax.tree.leaves_with_path(params) if leaf.ndim > 1}
        assert {name for name in wide & matrices if "position" not in name} == set()
        assert sum(isinstance(leaf, QuantizedTable) for _, leaf in found) == (3 if fields else 1)


@pytest.mark.slow
def test_a_quantized_transformer_is_close_and_its_cache_changes_nothing():
    for fields in ({}, {"tie_embeddings": "none", "activation": "swiglu", "scan_layers": True}):
        model, params, quantized = make(**fields)
        exact = model.apply({"params": params}, SOURCE, TARGET)[0]
        full = model.apply({"params": quantized}, SOURCE, TARGET)[0]
        error = np.linalg.norm(full - exact) / np.linalg.norm(exact)
        assert 0 < error < 0.05
        encoded = model.apply({"params": quantized}, SOURCE, method="encode")
        cache = model.apply({"params": quantized}, encoded, SOURCE, 1, TARGET.shape[1], method="init_cache")
        tokens = jnp.full(len(SOURCE), BOS)
        for t in range(TARGET.shape[1]):
            logits, cache = model.apply({"params": quantized}, tokens, cache, method="decode_step")
            np.testing.assert_allclose(logits, full[:, t], atol=2e-4)
            tokens = TARGET[:, t]


@pytest.mark.slow
def test_padding_has_no_influence():
    model, _, quantized = make()
    padded = jnp.pad(SOURCE, ((0, 0), (0, 3)), constant_values=PAD)
    short, long = (model.apply({"params": quantized}, source, TARGET)[0] for source in (SOURCE, padded))
    np.testing.assert_allclose(short, long, atol=1e-5)
