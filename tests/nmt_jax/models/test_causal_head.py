"""The head of a GPT: it reads the last token, and pairs in both orders."""

import functools

import jax
import numpy as np

from nmt_jax.models import causal_head, gpt
from tests.fixtures.parameters import draw_parameters

ENCODER = gpt.Model(vocab_size=11, num_layers=2, d_model=8, d_ff=12, num_heads=2, max_positions=9, norm="pre")
IDS, LENGTHS = np.array([[1, 4, 5, 6, 3, 0], [1, 7, 3, 0, 0, 0]]), np.array([5, 3])
MASK = np.arange(6) < LENGTHS[:, None]


@functools.cache
def make(**fields):
    """A model with its variables and compiled call."""
    model = causal_head.Model(encoder=ENCODER, num_outputs=3, **fields)
    shape = (1, 2, 2) if fields.get("both_orders") else (1, 2)
    variables = draw_parameters(model.init, np.ones(shape, int), np.ones(shape, bool))
    apply = jax.jit(functools.partial(model.apply, variables))
    return model, variables, (lambda *inputs: jax.device_get(apply(*inputs)))


def test_it_reads_the_last_token_only_and_no_padding():
    model, variables, apply = make()
    params = variables["params"]
    states = np.asarray(jax.jit(ENCODER.apply)({"params": params["encoder"]}, IDS)[1]["hidden"])
    last = np.stack([states[row, length - 1] for row, length in enumerate(LENGTHS)])
    expected = last @ np.asarray(params["output"]["kernel"]) + np.asarray(params["output"]["bias"])
    np.testing.assert_allclose(apply(IDS, MASK), expected, atol=1e-5)
    other = np.where(MASK, IDS, 9)
    np.testing.assert_array_equal(apply(other, MASK), apply(IDS, MASK))
    outputs, hidden = jax.jit(functools.partial(model.apply, variables, method="with_language_model"))(IDS, MASK)
    np.testing.assert_allclose(outputs, expected, atol=1e-5)
    np.testing.assert_allclose(hidden, states, atol=1e-5)


def test_a_pair_is_read_in_both_orders():
    _, variables, apply = make(both_orders=True)
    bias = np.asarray(variables["params"]["output"]["bias"])
    _, _, single = make()  # the same draws
    both, lengths = np.stack([IDS, IDS[::-1]], axis=1), np.stack([LENGTHS, LENGTHS[::-1]], axis=1)
    mask = np.arange(6) < lengths[..., None]
    np.testing.assert_allclose(apply(both, mask), apply(both[:, ::-1], mask[:, ::-1]), atol=1e-5)
    found = single(IDS, MASK) - bias
    np.testing.assert_allclose(apply(both, mask)[0], found[0] + found[1] + bias, atol=1e-5)
