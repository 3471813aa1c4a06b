"""The presets of configs/transformer.py have the sizes that Vaswani et al. (2017) print in Table 3."""

import jax
import jax.numpy as jnp
import pytest

from nmt_jax import config as configs
from nmt_jax.models.transformer import Model
from tests.conftest import ROOT

SIZES = ("tiny", "small", "base", "big")


@pytest.mark.parametrize(("size", "millions"), [("base", 65), ("big", 213)])
def test_number_of_parameters(size, millions):
    config = configs.load(f"{ROOT}/configs/transformer.py:size={size}")
    model = Model(source_vocab_size=37_000, target_vocab_size=37_000, **config.model)
    tokens = jnp.ones((1, 2), jnp.int32)
    shapes = jax.eval_shape(model.init, jax.random.key(0), tokens, tokens)
    count = sum(leaf.size for leaf in jax.tree.leaves(shapes))
    # "about 37000 tokens": the paper's vocabulary is not exact, and a thousand pieces are half a million (base).
    assert abs(count / 1e6 - millions) < 0.04 * millions
    by_hand = {"base": (6, 512, 2048), "big": (6, 1024, 4096)}[size]
    layers, d, f = by_hand
    attention, feed_forward, norm = 4 * d * d, 2 * d * f + f + d, 2 * d
    encoder, decoder = attention + feed_forward + 2 * norm, 2 * attention + feed_forward + 3 * norm
    assert count == 37_000 * d + layers * (encoder + decoder)


def test_each_preset_is_wider_than_the_one_before():
    widths = [configs.load(f"{ROOT}/configs/transformer.py:size={size}").model.d_model for size in SIZES]
    assert widths == sorted(set(widths))
