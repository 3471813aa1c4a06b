"""The Transformer: causality, padding, cached decoding, tied weights and precision."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax.data.vocabulary.vocab import BOS, EOS, PAD
from nmt_jax.models.layers.embedding import sinusoids
from nmt_jax.models.layers.features import grid_sinusoids
from nmt_jax.models.transformer import Model
from tests.fixtures.decoding_steps import begin, reordered_beams
from tests.fixtures.feature_sources import check_padding_of_features, check_steps_on_features, feature_model
from tests.fixtures.parameters import draw_parameters

B, S, T, K, V = 2, 5, 6, 3, 11
TINY = {
    "source_vocab_size": V,
    "target_vocab_size": V,
    "num_encoder_layers": 1,
    "num_decoder_layers": 2,
    "d_model": 8,
    "d_ff": 12,
    "num_heads": 2,
    "norm": "post",
}


SOURCE = jnp.array([[4, 5, 6, 7, EOS], [8, 9, EOS, PAD, PAD]])
TARGET = jnp.array([[5, 6, 7, 8, 9, EOS], [4, 10, EOS, PAD, PAD, PAD]])


@functools.cache
def make(*fields):
    """A model, its parameters, and its compiled call."""
    model = Model(**{**TINY, **dict(fields)})
    variables = draw_parameters(model.init, SOURCE, TARGET)
    return model, variables, jax.jit(functools.partial(model.apply, variables))


VARIANTS = [
    {},
    {"norm": "pre", "activation": "gelu", "tie_embeddings": "two-way"},
    {"positions": "learned", "activation": "swiglu", "tie_embeddings": "none", "d_k": 3, "d_v": 5}
    | {"remat": "full", "scan_layers": True},
]


@pytest.fixture(params=VARIANTS)
def variant(request):
    return make(*request.param.items())


def test_a_label_affects_only_later_steps(variant):
    _, _, apply = variant
    # Tokens are integers: change each one and see which logits change.
    base = apply(SOURCE, TARGET)[0]
    for t in range(T):
        changed = TARGET.at[:, t].set(jnp.where(TARGET[:, t] == 4, 5, 4))
        moved = np.abs(np.asarray(apply(SOURCE, changed)[0] - base)).max(axis=(0, 2)) > 0
        assert not moved[: t + 1].any(), f"label {t} is seen at or before the step that predicts it"
        assert t == T - 1 or moved[t + 1], f"label {t} has no influence on the next step"


def test_future_gradient_is_exactly_zero():
    model, variables, _ = make(("positions", "learned"), ("tie_embeddings", "none"), ("dropout", 0.0))

    def sums(table):
        params = {**variables["params"], "target_position": {"table": table}}
        return model.apply({"params": params}, SOURCE, TARGET)[0].sum(axis=(0, 2))

    gradients = np.asarray(jax.jit(jax.jacrev(sums))(variables["params"]["target_position"]["table"]))
    for position, gradient in enumerate(gradients):
        assert (gradient[position + 1 :] == 0).all()
        assert (np.abs(gradient[: position + 1]).sum(axis=1) > 0).all()


def test_padding_has_no_influence(variant):
    _, _, apply = variant
    short = apply(SOURCE[1:, :3], TARGET[1:, :3])[0]  # the second row without its padding
    np.testing.assert_allclose(apply(SOURCE, TARGET)[0][1:, :3], short, atol=2e-6)


def test_masked_positions_get_exactly_zero_weight():
    _, out = make()[2](SOURCE, TARGET)
    assert [w.shape for w in out["encoder"]] == [(B, 2, S, S)]
    assert [w.shape for w in out["decoder"]] == [(B, 2, T, T)] * 2
    assert [w.shape for w in out["cross"]] == [(B, 2, T, S)] * 2
    for weights in out["cross"]:
        assert (np.asarray(weights)[1, :, :, 3:] == 0).all()
        np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-6)
    for weights in out["decoder"]:
        assert (np.triu(np.asarray(weights), 1) == 0).all()


def test_cached_decoding_equals_the_full_pass_for_reordered_beams(variant):
    model, variables, apply = variant
    found, expected = reordered_beams(begin(model, variables, SOURCE, K, T), apply, SOURCE, K, T, V)
    np.testing.assert_allclose(found, expected, atol=1e-5)


# Two pairs of different tokens in a row, and the same pairs in a row each.
PACKED = {
    "source": np.array([[4, 5, 6, 7, 8, PAD]]),
    "target": np.array([[4, 5, 9, 10, 8, PAD, PAD]]),
    "packing": (np.array([[1, 1, 1, 2, 2, 0]]), np.array([[1, 1, 2, 2, 2, 0, 0]])),
}
APART = {"source": np.array([[4, 5, 6], [7, 8, PAD]]), "target": np.array([[4, 5, PAD], [9, 10, 8]])}


@pytest.mark.slow
def test_packed_pairs_are_predicted_as_in_rows_of_their_own(variant):
    packed, apart = (variant[2](**rows)[0] for rows in (PACKED, APART))
    np.testing.assert_allclose(packed[0, :2], apart[0, :2], atol=1e-5)
    np.testing.assert_allclose(packed[0, 2:5], apart[1], atol=1e-5)


@pytest.mark.slow
def test_no_pair_of_a_row_has_a_gradient_to_another():
    model, variables, _ = make(("tie_embeddings", "none"))
    tables = {name: variables["params"][name] for name in ("source_embedding", "target_embedding")}

    def sums(tables):
        _, out = model.apply({"params": {**variables["params"], **tables}}, **PACKED)
        return jnp.stack([out["hidden"][0, :2].sum(0)[0], out["hidden"][0, 2:5].sum(0)[0]])

    gradients = jax.jit(jax.jacrev(sums))(tables)
    source, target = (np.abs(gradients[name]["table"]).max(axis=-1) > 0 for name in tables)  # [2, V]
    assert [set(np.flatnonzero(pair)) for pair in source] == [{4, 5, 6}, {7, 8}]
    assert [set(np.flatnonzero(pair)) for pair in target] == [{BOS, 4}, {BOS, 9, 10}]  # no label is its own input


def test_hidden_times_kernel_is_the_logits():
    logits, out = make(*VARIANTS[2].items())[2](SOURCE, TARGET)
    np.testing.assert_allclose(out["hidden"] @ out["output_kernel"], logits, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_remat_in_a_scan_changes_only_memory():
    model, variables, _ = make(("dropout", 0.0))
    other = Model(**{**TINY, "remat": "full", "scan_layers": True, "dropout": 0.0})

    def loss(model, params):
        return (model.apply(params, SOURCE, TARGET, train=True, rngs={"dropout": jax.random.key(1)})[0] ** 2).sum()

    plain = jax.jit(jax.grad(lambda p: loss(model, p)))(variables)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5),
        plain,
        jax.jit(jax.grad(lambda p: loss(other, p)))(variables),
    )


def test_bfloat16_products_stay_near_float32():
    _, variables, apply = make()
    low = Model(**{**TINY, "dtype": "bfloat16"})
    exact, rough = apply(SOURCE, TARGET)[0], jax.jit(low.apply)(variables, SOURCE, TARGET)[0]
    assert rough.dtype == jnp.float32
    assert 0 < np.abs(np.asarray(exact - rough)).max() < 0.1


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"d_model": 9}, "d_model=9 is not divisible by num_heads=2"),
        ({"norm": "middle"}, "norm='middle': use one of pre, post"),
        ({"dropout": 1.0}, "dropout=1.0"),
        ({"num_heads": 0}, "num_heads=0"),
        ({"source_vocab_size": 12}, "three-way"),
        (
            {"source_columns": (2,), "subsampling_layers": 1},
            "subsampling_layers=1: the rows of an image are no sequence",
        ),
    ],
)
def test_invalid_hyperparameters_are_named(fields, words):
    with pytest.raises(ValueError, match=words):
        Model(**{**TINY, **fields})
    assert Model(**{**TINY, "d_model": 9, "d_k": 4, "d_v": 4}).d_k == 4


def test_features_are_read_instead_of_words():
    model, apply = feature_model(Model(**{**TINY, "source_columns": (2,)}))
    check_padding_of_features(apply)
    check_steps_on_features(model, apply)


def test_convolutions_halve_the_features():
    model, apply = feature_model(Model(**{**TINY, "subsampling_layers": 2, "ctc": True}))
    check_padding_of_features(apply, 4)
    check_steps_on_features(model, apply)
    with pytest.raises(ValueError, match="subsampling_layers=2 needs rows of features"):
        jax.eval_shape(model[0].init, jax.random.key(0), SOURCE, TARGET)


def test_places_of_a_grid_have_the_position_of_their_row_and_of_their_column():
    grid = grid_sinusoids(6, 3, 8)
    assert grid.shape == (6, 8)
    np.testing.assert_array_equal(grid[:, :4], sinusoids(2, 4)[[0, 0, 0, 1, 1, 1]])
    np.testing.assert_array_equal(grid[:, 4:], sinusoids(3, 4)[[0, 1, 2, 0, 1, 2]])
    assert grid_sinusoids(4, 3, 7).shape == (4, 7)
