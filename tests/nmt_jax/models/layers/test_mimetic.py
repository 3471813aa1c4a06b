"""Attention that begins with what is near."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax.models.layers.bert_stack import Bert
from nmt_jax.models.layers.mimetic import NEARNESS, mimetic

LENGTH = 32
SIZES = {"vocab_size": 50, "num_layers": 2, "d_model": 64, "d_ff": 64, "num_heads": 4, "max_positions": LENGTH}


@pytest.fixture(scope="module")
def drawn():
    model = Bert(**SIZES, init_stddev=0.03)
    ids = jnp.zeros((1, 2), jnp.int32)
    return model, jax.jit(model.init)(jax.random.key(0), ids, ids == 0)["params"]


def weights(model, params, random):
    """Weights of the first layer, float[S, S], the mean of heads and of texts of [MASK] between random pieces."""
    ids = random.integers(1, 50, (64, LENGTH))
    ids[:, LENGTH // 2] = 0
    _, out = jax.jit(model.apply)({"params": params}, ids, np.ones(ids.shape, bool))
    return np.asarray(out["attention"][0]).mean(axis=(0, 1))


@pytest.mark.slow
def test_a_masked_piece_looks_at_its_neighbours_first(drawn):
    model, params = drawn
    before = weights(model, params, np.random.default_rng(0))[LENGTH // 2]
    after = weights(model, mimetic(params, 4), np.random.default_rng(0))[LENGTH // 2]
    near, far = [LENGTH // 2 + d for d in (-2, -1, 1, 2)], [0, 1, LENGTH - 2, LENGTH - 1]
    assert after[near].min() > after[far].max()
    assert after[near].mean() > 1.7 * after[far].mean()
    assert before[near].mean() < 1.1 * before[far].mean()  # as drawn, no place is nearer than others


def test_only_positions_queries_and_keys_are_other_than_drawn(drawn):
    _, params = drawn
    changed = mimetic(params, 4)
    differ = {
        jax.tree_util.keystr(path, simple=True, separator="/")
        for path, same in jax.tree.leaves_with_path(jax.tree.map(lambda a, b: bool((a == b).all()), params, changed))
        if not same
    }
    layers = [f"layers_{n}/{name}/kernel" for n in range(2) for name in ("query", "key")]
    assert differ == {"embeddings/position", *layers}
    layer = changed["layers_0"]
    np.testing.assert_array_equal(layer["query"]["kernel"], layer["key"]["kernel"])


@pytest.mark.slow
def test_a_vector_scores_as_much_with_itself_in_every_size():
    for d_model, num_heads in ((64, 4), (256, 4), (256, 8)):
        model = Bert(**{**SIZES, "d_model": d_model, "num_heads": num_heads})
        ids = jnp.zeros((1, 2), jnp.int32)
        params = mimetic(jax.jit(model.init)(jax.random.key(0), ids, ids == 0)["params"], num_heads)
        x = np.random.default_rng(0).normal(size=(512, d_model))
        heads = (x @ np.asarray(params["layers_0"]["query"]["kernel"])).reshape(512, num_heads, -1)
        scores = np.square(heads).sum(-1) / np.sqrt(d_model // num_heads)
        np.testing.assert_allclose(scores.mean(), NEARNESS, rtol=0.05)
