"""GPT: predictions do not depend on later tokens, cached decoding equals the full pass, and rows are independent."""

import functools

import jax
import numpy as np
import pytest

from nmt_jax.data.vocabulary.vocab import EOS, PAD
from nmt_jax.models.gpt import Model
from tests.fixtures.parameters import draw_parameters

B, T, V = 2, 7, 11
TINY = {"vocab_size": V, "num_layers": 2, "d_model": 8, "d_ff": 12, "num_heads": 2, "max_positions": 9}
TOKENS = np.array([[EOS, 4, 5, 6, 4, 5, 7], [8, 9, EOS, 4, 4, 4, 10]])
VARIANTS = [{}, {"norm": "pre", "activation": "swiglu", "scan_layers": True}]


@functools.cache
def make(**fields):
    """A model, its variables, none of them zero or one, and its compiled call."""
    model = Model(**{**TINY, **fields})
    variables = jax.tree_util.tree_map_with_path(
        lambda path, leaf: 1 + leaf if path[-1].key == "scale" else leaf, draw_parameters(model.init, TOKENS)
    )
    apply = jax.jit(functools.partial(model.apply, variables))
    return model, variables, lambda tokens: jax.device_get(apply(tokens))


@pytest.mark.parametrize("fields", VARIANTS)
def test_no_prediction_has_a_gradient_to_a_later_token(fields):
    model, variables, _ = make(**fields)
    tokens = np.arange(4, 4 + T)[None]  # all different: row i of the table is the token of step i - 4

    def predictions(table):
        params = {**variables["params"], "embedding": {"table": table}}
        _, out = model.apply({"params": params}, tokens)
        return out["hidden"][0, :, 0]

    gradient = jax.jit(jax.jacrev(predictions))(variables["params"]["embedding"]["table"])  # [T, V, D]
    seen = np.abs(gradient).max(axis=-1)[:, 4:] > 0
    np.testing.assert_array_equal(seen, np.tril(np.ones((T, T), bool)))


@pytest.mark.parametrize("fields", VARIANTS)
def test_step_by_step_is_all_at_once(fields):
    model, variables, apply = make(**fields)
    logits, out = apply(TOKENS)
    np.testing.assert_allclose(logits, out["hidden"] @ out["output_kernel"], atol=1e-5)
    step = jax.jit(lambda tokens, cache: model.apply(variables, tokens, cache, method="decode_step"))
    cache = jax.jit(lambda: model.apply(variables, B, T + 2, method="init_cache"))()
    for t in range(T):
        found, cache = step(TOKENS[:, t], cache)
        np.testing.assert_allclose(found, logits[:, t], atol=5e-6)


def test_neither_padding_behind_nor_other_rows_have_influence():
    _, _, apply = make()
    whole, _ = apply(TOKENS)
    np.testing.assert_allclose(apply(TOKENS[1:])[0][0], whole[1], atol=1e-6)
    padded = np.pad(TOKENS[:, :4], ((0, 0), (0, 3)), constant_values=PAD)
    np.testing.assert_allclose(apply(padded)[0][:, :4], whole[:, :4], atol=1e-6)


PACKED, PACKING = np.array([[EOS, 4, 5, 6, 7, PAD, PAD]]), np.array([[1, 1, 2, 2, 2, 0, 0]])


@pytest.mark.parametrize("fields", [*VARIANTS, {"scan_layers": True}])
def test_packed_lines_are_predicted_as_in_rows_of_their_own(fields):
    model, variables, apply = make(**fields)
    packed = jax.jit(model.apply)(variables, PACKED, packing=PACKING)[0][0]
    apart = apply(np.array([[EOS, 4, PAD], [5, 6, 7]]))[0]
    np.testing.assert_allclose(packed[:2], apart[0, :2], atol=1e-5)
    np.testing.assert_allclose(packed[2:5], apart[1], atol=1e-5)


def test_no_line_of_a_row_has_a_gradient_to_another():
    model, variables, _ = make()

    def sums(table):
        params = {**variables["params"], "embedding": {"table": table}}
        hidden = model.apply({"params": params}, PACKED, packing=PACKING)[1]["hidden"][0, :, 0]
        return jax.numpy.stack([hidden[:2].sum(), hidden[2:5].sum()])

    gradient = jax.jit(jax.jacrev(sums))(variables["params"]["embedding"]["table"])  # [2, V, D]
    seen = [set(np.flatnonzero(line)) for line in np.abs(gradient).max(axis=-1) > 0]
    assert seen == [{EOS, 4}, {5, 6, 7}]


@pytest.mark.slow
def test_recomputed_layers_are_the_same_model():
    model, variables, _ = make()
    again = model.clone(remat="full")

    def loss(model, variables):
        logits, _ = model.apply(variables, TOKENS, train=True, rngs={"dropout": jax.random.key(0)})
        return (logits**2).mean()

    found = [jax.jit(jax.grad(lambda v, m=m: loss(m, v)))(variables) for m in (model, again)]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), *found)


def test_the_sizes_of_the_paper():
    # GPT: 12 layers of 768, 12 heads, 3072 hidden units, 512 positions, 40,478 pieces: 116.5 million weights.
    model = Model(vocab_size=40_478, num_layers=12, d_model=768, d_ff=3072, num_heads=12)
    shapes = jax.eval_shape(model.init, jax.random.key(0), TOKENS)["params"]
    count = sum(leaf.size for leaf in jax.tree.leaves(shapes))
    layer = 4 * (768 * 768 + 768) + 2 * 768 * 3072 + 3072 + 768 + 4 * 768
    assert count == (40_478 + 512) * 768 + 12 * layer == 116_534_784


def test_a_row_longer_than_the_table_of_positions_is_refused():
    _, _, apply = make()
    with pytest.raises(ValueError, match="10 positions, but max_positions=9"):
        apply(np.ones((1, 10), np.int32))


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"norm": "none"}, "norm='none': use one of pre, post"),
        ({"num_heads": 3}, "d_model=8 is not divisible by num_heads=3"),
        ({"attention_dropout": 1.0}, r"attention_dropout=1.0 must be in"),
    ],
)
def test_what_cannot_be_meant_is_named(fields, line):
    with pytest.raises(ValueError, match=line):
        Model(**{**TINY, **fields})
