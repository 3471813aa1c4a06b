"""Heads on an encoder: their input layers, what is trained, and the absence of influence of padding."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax.models import estimator_head, piece_head, sentence_head, siamese_head
from nmt_jax.models.layers.bert_stack import Bert
from tests.fixtures.parameters import draw_parameters

BERT = Bert(vocab_size=11, num_layers=2, d_model=8, d_ff=16, num_heads=2, max_positions=12, pooler=False)
IDS = np.array([[1, 2, 3, 4, 0, 0], [5, 6, 7, 8, 9, 10]])
MASK = np.array([[True] * 4 + [False] * 2, [True] * 6])
HEADS = {
    "sentence": sentence_head.Model(BERT, 3),
    "first": sentence_head.Model(BERT, 3, pooling="first"),
    "mixture": sentence_head.Model(BERT, 3, layers="mixture"),
    "bilstm": sentence_head.Model(BERT, 3, bilstm_layers=1),
    "piece": piece_head.Model(BERT, 3, layers="2"),
    "piece bilstm": piece_head.Model(BERT, 3, bilstm_layers=2),
}


bert = jax.jit(BERT.apply)


def hidden_of(params):
    """The states of all layers of the encoder, float[L + 1, B, S, D]."""
    return np.asarray(bert({"params": params["encoder"]}, IDS, MASK)[0])


def states_of(model, params, segments=None):
    """What the head is given, float[B, S, D]."""
    return jax.jit(lambda params: model.apply({"params": params}, IDS, MASK, segments, False, method="states"))(params)


@pytest.mark.parametrize("name", HEADS)
def test_padding_and_neighbours_change_nothing(name):
    model = HEADS[name]
    params = draw_parameters(model.init, IDS, MASK, stddev=0.5)["params"]
    compiled = jax.jit(model.apply)

    def apply(ids, mask):
        return np.asarray(compiled({"params": params}, ids, mask))

    whole = apply(IDS, MASK)[:1]
    padded = np.concatenate([np.where(MASK, IDS, 9), np.full((2, 3), 7)], axis=1)
    other = apply(padded, np.pad(MASK, ((0, 0), (0, 3))))[:1]
    alone = apply(IDS[:1, :4], MASK[:1, :4])
    if name.startswith("piece"):
        whole, other = whole[:, :4], other[:, :4]
    np.testing.assert_allclose(whole, other, atol=1e-5)
    np.testing.assert_allclose(whole, alone, atol=1e-5)
    assert np.isfinite(apply(IDS, np.zeros_like(MASK))).all()


@pytest.mark.slow
def test_the_encoder_is_under_its_name_and_the_mixture_begins_as_the_mean():
    model = HEADS["mixture"]
    params = jax.jit(model.init)(jax.random.key(0), IDS, MASK)["params"]
    plain = jax.eval_shape(BERT.init, jax.random.key(0), IDS, MASK)["params"]
    assert jax.tree.map(np.shape, params["encoder"]) == jax.tree.map(np.shape, plain)
    hidden = hidden_of(params)
    found = states_of(model, params)
    np.testing.assert_allclose(found, np.mean(hidden, axis=0), atol=1e-6)


def test_the_mixture_is_equation_1_of_peters():
    model = HEADS["mixture"]
    params = draw_parameters(model.init, IDS, MASK, stddev=0.5)["params"]
    hidden = hidden_of(params)
    weights = np.exp(params["mixture_weights"]) / np.exp(params["mixture_weights"]).sum()
    wanted = params["mixture_scale"] * sum(share * layer for share, layer in zip(weights, hidden, strict=True))
    found = states_of(model, params)
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_the_last_layers_are_concatenated():
    model = HEADS["piece"]
    params = draw_parameters(model.init, IDS, MASK, stddev=0.5)["params"]
    hidden = hidden_of(params)
    found = states_of(model, params)
    np.testing.assert_allclose(found, np.concatenate([hidden[1], hidden[2]], axis=-1), atol=1e-6)


@pytest.mark.parametrize("bilstm_layers", [0, 1])
def test_a_bilstm_reads_the_words_on_the_right(bilstm_layers):
    model = piece_head.Model(BERT.clone(causal=True), 3, bilstm_layers=bilstm_layers)
    params = draw_parameters(model.init, IDS, MASK, stddev=0.5)["params"]
    assert ("bilstm" in params) == bool(bilstm_layers)
    apply = jax.jit(lambda ids: model.apply({"params": params}, ids, MASK))
    changed = IDS.copy()
    changed[:, 3] = 10
    difference = np.abs(apply(changed) - apply(IDS)).max(axis=-1)
    assert (difference[:, 3:4] > 1e-3).all()
    if bilstm_layers:
        assert (difference[:, :3] > 1e-6).all()
    else:
        assert not difference[:, :3].any()


@pytest.mark.parametrize("frozen", [True, False])
def test_a_frozen_encoder_has_no_gradient_and_no_dropout(frozen):
    model = sentence_head.Model(BERT, 3, layers="mixture", frozen=frozen, dropout=0.0)
    params = draw_parameters(model.init, IDS, MASK, stddev=0.5)["params"]

    @jax.jit
    @jax.value_and_grad
    def loss(params, key):
        out = model.apply({"params": params}, IDS, MASK, train=True, rngs={"dropout": key})
        return jnp.sum(jnp.square(out))

    values, grads = zip(*(loss(params, jax.random.key(seed)) for seed in (0, 1)), strict=True)
    assert (float(values[0]) == float(values[1])) == frozen
    gradient = jax.tree.map(np.asarray, grads[0])
    moved = [leaf.any() for leaf in jax.tree.leaves(gradient["encoder"])]
    assert not any(moved) if frozen else sum(moved) > len(moved) / 2
    assert gradient["mixture_weights"].any()
    assert gradient["output"]["kernel"].any()


def test_separate_texts_are_compared_by_the_cosine_of_their_means():
    model = siamese_head.Model(BERT, 1)
    ids, mask = np.stack([IDS, IDS[::-1]], axis=1), np.stack([MASK, MASK[::-1]], axis=1)
    params = draw_parameters(model.init, ids, mask, stddev=0.5)["params"]
    assert list(params) == ["encoder"]
    hidden = hidden_of(params)
    first, second = (hidden[-1, row][MASK[row]].mean(axis=0) for row in (0, 1))
    wanted = first @ second / np.linalg.norm(first) / np.linalg.norm(second)

    @jax.jit
    @functools.partial(jax.value_and_grad, has_aux=True)
    def call(params, mask):
        found = model.apply({"params": params}, ids, mask)
        return found.sum(), found

    np.testing.assert_allclose(call(params, mask)[0][1], [[wanted]] * 2, atol=1e-5)
    gradient = call(params, np.zeros_like(mask))[1]
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))  # for empty rows


def test_the_estimator_reads_the_features_of_comet():
    model = estimator_head.Model(BERT, 1, hidden_sizes=(5,))
    ids, mask = np.stack([IDS, IDS[::-1], IDS], axis=1), np.stack([MASK, MASK[::-1], MASK], axis=1)
    params = draw_parameters(model.init, ids, mask, stddev=0.5)["params"]
    hidden = hidden_of(params)
    r, h = (hidden[-1, row][MASK[row]].mean(axis=0) for row in (0, 1))  # the source is the translation
    features = np.concatenate([h, r, h * r, abs(h - r), h * h, 0 * h])
    layer, output = params["hidden_0"], params["output"]
    wanted = np.tanh(features @ layer["kernel"] + layer["bias"]) @ output["kernel"] + output["bias"]
    found = jax.jit(model.apply)({"params": params}, ids, mask)
    np.testing.assert_allclose(found[1], wanted, atol=1e-5)


def test_what_cannot_be_meant():
    for changes, words in (
        ({"layers": "first"}, "layers='first': use last, mixture or a number from 1 to 3"),
        ({"layers": "4"}, "layers='4'"),
        ({"layers": "0"}, "layers='0'"),
        ({"dropout": 1.0}, "dropout=1.0"),
        ({"pooling": "max"}, "pooling='max': use one of mean, first"),
    ):
        with pytest.raises(ValueError, match=words):
            sentence_head.Model(BERT, 2, **changes)


def test_two_texts_of_a_row_are_pooled_apart_and_compared():
    model = sentence_head.Model(BERT, 3, pooling="pair")
    segments = np.array([[0, 0, 1, 1, 0, 0], [0, 0, 0, 1, 1, 1]])
    params = draw_parameters(model.init, IDS, MASK, segments, stddev=0.5)["params"]
    states = np.asarray(states_of(model, params, segments))
    found = []
    for row in range(2):
        u, v = (states[row][MASK[row] & (segments[row] == text)].mean(axis=0) for text in (0, 1))
        x = np.concatenate([u, v, np.abs(u - v), u * v])
        hidden = np.tanh(x @ params["hidden"]["kernel"] + params["hidden"]["bias"])
        found.append(hidden @ params["output"]["kernel"] + params["output"]["bias"])
    np.testing.assert_allclose(jax.jit(model.apply)({"params": params}, IDS, MASK, segments), found, atol=1e-5)
    with pytest.raises(ValueError, match="pooling='pair' needs an encoder with segment embeddings"):
        sentence_head.Model(BERT.clone(num_segments=0), 3, pooling="pair")
