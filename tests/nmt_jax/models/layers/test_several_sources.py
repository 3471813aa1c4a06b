"""Several sources: their combinations against the equations, and a model that reads them."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax.data.vocabulary.vocab import EOS, PAD
from nmt_jax.models.layers.attention import Attention
from nmt_jax.models.layers.features import Features
from nmt_jax.models.layers.recurrent_encoder import Encoder
from nmt_jax.models.layers.several_sources import COMBINATIONS, SeveralAttention, SeveralEncoders
from nmt_jax.models.rnn import Model
from tests.fixtures.decoding_steps import begin, reordered_beams
from tests.fixtures.parameters import draw_parameters

B, N, Q, S, D = 2, 3, 4, 5, 6
LENGTHS = np.array([[5, 2, 4], [1, 5, 3]])
MASK = np.arange(S) < LENGTHS[..., None]
FIELDS = {"score": "additive", "kind": "global", "d_query": D, "d_attention": 7, "window": 2, "dtype": "float32"}


def normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def look(module, query, states, mask):
    return module(query, module.memory(states, mask), jnp.arange(Q))


def example(combination, num_sources=N):
    """A module of that many sources, its parameters, and what it finds."""
    module = SeveralAttention(combination, num_sources, FIELDS)
    arguments = normal(0, B, Q, D), normal(1, B, num_sources, S, D), MASK[:, :num_sources]
    variables = draw_parameters(functools.partial(module.init, method=look), *arguments)
    context, weights = jax.jit(functools.partial(module.apply, method=look))(variables, *arguments)
    return variables["params"], arguments, np.asarray(context), np.asarray(weights)


@pytest.mark.parametrize("combination", COMBINATIONS)
def test_one_source_is_attended_to_as_if_alone(combination):
    params, (query, states, mask), context, weights = example(combination, num_sources=1)
    alone = jax.jit(functools.partial(Attention(**FIELDS).apply, method=look))(
        {"params": params["attend_0"]}, query, states[:, 0], mask[:, 0]
    )
    np.testing.assert_array_equal(context, alone[0])
    np.testing.assert_array_equal(weights[:, :, 0], alone[1])


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


@pytest.mark.parametrize("combination", COMBINATIONS)
def test_a_combination_equals_its_equations(combination):
    params, (query, states, _), context, weights = example(combination)
    params, query, states = jax.tree.map(np.float64, (params, query, states))

    def score(name, s, h):
        p = params[name]["score_function"]
        return np.tanh(s @ p["query"]["kernel"] + h @ p["key"]["kernel"]) @ p["vector"]

    for row, t in np.ndindex(B, Q):
        s = query[row, t]
        h = [states[row, k, : LENGTHS[row, k]] for k in range(N)]
        if combination != "concat":
            h[1:] = [h[k] @ params[f"common_{k - 1}"]["kernel"] for k in range(1, N)]
        if combination == "flat":
            a = np.split(softmax(score("attend_0", s, np.concatenate(h))), LENGTHS[row].cumsum()[:-1])
            expected = sum(a[k] @ h[k] for k in range(N))
        else:
            a = [softmax(score(f"attend_{k}", s, h[k])) for k in range(N)]
            expected = np.concatenate([a[k] @ h[k] for k in range(N)])
        if combination == "hierarchical":
            found = expected.reshape(N, D)
            b = softmax(score("choose", s, found))
            a, expected = [b[k] * a[k] for k in range(N)], b @ found
        np.testing.assert_allclose(context[row, t], expected, atol=1e-6)
        for k in range(N):
            np.testing.assert_allclose(weights[row, t, k, : LENGTHS[row, k]], a[k], atol=1e-6)
            assert (weights[row, t, k, LENGTHS[row, k] :] == 0).all(), "padding has weight"
        assert weights[row, t].sum() == pytest.approx(N if combination == "concat" else 1, rel=1e-5)


@pytest.mark.slow
def test_a_shared_encoder_reads_each_source_as_if_alone_and_separate_ones_differ():
    fields = {"cell": "rnn", "num_layers": 2, "d_hidden": D}
    x, ordered = normal(0, B, N, S, D), (True,) * N
    several = list(x.swapaxes(0, 1))
    shared = SeveralEncoders(fields, ordered, shared=True)
    variables = draw_parameters(functools.partial(shared.init, train=False), several, MASK)
    encode_all = jax.jit(functools.partial(shared.apply, variables, train=False))
    states, last = jax.tree.map(np.asarray, encode_all(several, MASK))
    one = {"params": variables["params"]["encoders_0"]}
    encode = jax.jit(functools.partial(Encoder(**fields).apply, one, train=False))
    for k in range(N):
        alone, end = encode(x[:, k], MASK[:, k])
        np.testing.assert_allclose(states[:, k], alone, atol=1e-6)
        np.testing.assert_allclose(last[1][0][:, k * D : (k + 1) * D], end[1][0], atol=1e-6)
    separate = SeveralEncoders(fields, ordered, shared=False)
    alike = several[:1] * N, np.broadcast_to(MASK[:, :1], MASK.shape)
    variables = draw_parameters(functools.partial(separate.init, train=False), *alike)
    found = np.asarray(jax.jit(functools.partial(separate.apply, variables, train=False))(*alike)[0])
    assert np.abs(found[:, 0] - found[:, 1]).max() > 1e-3


V = 11
TINY = {"num_sources": 2, "source_vocab_size": V, "target_vocab_size": V, "d_embedding": 6, "d_hidden": 8}
VARIANTS = [
    {"combination": "concat", "attention": "local-p", "window": 2, "context_every_step": True},
    {
        "combination": "flat",
        "share_encoder": True,
        "decoder": "bahdanau",
        "bridge": "mean",
        "variational_dropout": True,
    },
    {"combination": "hierarchical", "cell": "gru", "input_feeding": False},
]
T, K = 4, 3
SOURCE = np.array([[[4, 5, 6, EOS], [7, EOS, PAD, PAD]], [[8, EOS, PAD, PAD], [9, 4, EOS, PAD]]])
TARGET = np.array([[5, 6, 7, EOS], [4, 10, EOS, PAD]])


def make(**fields):
    """A model, its variables, and the compiled call with a source."""
    model = Model(**{**TINY, **fields})
    variables = draw_parameters(model.init, SOURCE, TARGET)
    apply = jax.jit(functools.partial(model.apply, variables))
    return model, variables, lambda source, target=TARGET: apply(source, target)


made = functools.cache(lambda variant: make(**VARIANTS[variant]))


@pytest.mark.parametrize("variant", range(len(VARIANTS)))
def test_decoding_step_by_step_equals_the_full_pass(variant):
    model, variables, call = made(variant)
    _, out = jax.tree.map(np.asarray, call(SOURCE))
    assert out["cross"][0].shape == (2, 2, T, 4)  # a head a source
    assert (out["cross"][0][1, 0, :, 2:] == 0).all()
    found, expected = reordered_beams(begin(model, variables, SOURCE, K, T), call, SOURCE, K, T, V)
    np.testing.assert_allclose(found, expected, atol=2e-6)


@pytest.mark.parametrize("variant", range(len(VARIANTS)))
def test_every_source_has_influence_and_its_padding_has_none(variant):
    _, _, call = made(variant)
    base = np.asarray(call(SOURCE)[0])
    np.testing.assert_allclose(call(np.pad(SOURCE, ((0, 0), (0, 0), (0, 3))))[0], base, atol=2e-6)
    for k in range(2):
        changed = SOURCE.copy()
        changed[:, k, 0] = 3
        moved = np.abs(np.asarray(call(changed)[0]) - base).max(axis=(1, 2))
        assert (moved > 1e-4).all(), f"source {k} is not read"
    swapped = np.asarray(call(SOURCE[:, ::-1])[0])
    assert np.abs(swapped - base).max() > 1e-4, "the sources change places and nothing happens"


def test_several_sources_of_features():
    model = Model(**TINY, input_feeding=False, cell="rnn")
    features = Features(normal(1, 2, 2, S, 3), np.array([[S, S], [3, S]], np.int32))
    _, out = jax.jit(model.apply)(draw_parameters(model.init, features, TARGET), features, TARGET)
    assert (np.asarray(out["cross"][0])[1, 0, :, 3:] == 0).all()


def test_training_draws_dropout_of_each_source():
    encoders = SeveralEncoders(
        {"cell": "rnn", "num_layers": 2, "d_hidden": D, "dropout": 0.5}, (True,) * N, shared=True
    )
    x, mask = [normal(0, B, S, D)] * N, np.ones((B, N, S), bool)
    variables = draw_parameters(functools.partial(encoders.init, train=False), x, mask)

    @jax.jit
    def encode(key):
        return encoders.apply(variables, x, mask, train=True, rngs={"dropout": key})[0]

    first = np.asarray(encode(jax.random.key(0)))
    np.testing.assert_array_equal(first, encode(jax.random.key(0)))
    assert not np.array_equal(first, encode(jax.random.key(1)))
    assert not (first[:, 0] == first[:, 1]).all(), "the same units are dropped of all sources"


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"combination": "sum"}, "combination='sum': use one of concat, flat, hierarchical"),
        ({"bridge": "copy"}, "bridge='copy' supports one source only: use bridge='transform'"),
        ({"combination": "flat", "attention": "local-m"}, "combination='flat' does not support local attention"),
        ({"num_sources": 0}, "num_sources=0 must be at least 1"),
        ({"num_sources": 3}, "num_sources=3, but the batch has 2 per sentence"),
        ({"num_sources": 1}, "num_sources=1, but the batch has 2 per sentence"),
    ],
)
def test_what_cannot_be_meant_is_named(fields, line):
    with pytest.raises(ValueError, match=line):
        make(**fields)
