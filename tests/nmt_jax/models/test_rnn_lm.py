import functools

import jax
import numpy as np
import pytest

from nmt_jax.data.vocabulary.vocab import EOS, PAD
from nmt_jax.models.rnn_lm import Model
from tests.fixtures.parameters import draw_parameters

B, T, V = 2, 7, 11
TINY = {"vocab_size": V, "d_embedding": 8, "d_hidden": 8}
TOKENS = np.array([[EOS, 4, 5, 6, 4, 5, 7], [8, 9, EOS, 4, 4, 4, 10]])
VARIANTS = [
    {},
    {"cell": "gru", "num_layers": 2, "d_hidden": 6},
    {"cell": "rnn", "tie_embeddings": False, "d_hidden": 6, "num_layers": 2},
    {"cell": "lstmn", "num_layers": 2},
    {"pointer_window": 3},
    {"cell": "lstmn", "pointer_window": 3},
    {"pointer_window": 100, "tie_embeddings": False, "d_hidden": 6, "num_layers": 2},
]


@functools.cache
def make(**fields):
    """A model, its variables, and its compiled call."""
    model = Model(**{**TINY, **fields})
    variables = draw_parameters(model.init, TOKENS)
    apply = jax.jit(functools.partial(model.apply, variables))
    return model, variables, lambda tokens: jax.device_get(apply(tokens))


@pytest.mark.parametrize("fields", VARIANTS)
def test_a_token_moves_its_own_and_later_predictions(fields):
    _, _, apply = make(**fields)
    base, _ = apply(TOKENS)
    for t in range(T):
        changed = TOKENS.copy()
        changed[:, t] = [9, 5]
        moved = np.abs(apply(changed)[0] - base).max(axis=(0, 2)) > 0
        np.testing.assert_array_equal(moved, np.arange(T) >= t)


@pytest.mark.parametrize("window", [0, 3, 100])
def test_no_prediction_has_a_gradient_to_a_later_token(window):
    model, variables, _ = make(tie_embeddings=False, pointer_window=window)
    tokens = np.arange(4, 4 + T)[None]  # all different: row i of the table is the token of step i - 4

    def predictions(table):
        params = {**variables["params"], "embedding": {"table": table}}
        return model.apply({"params": params}, tokens)[0][0, :, 0]

    gradient = jax.jit(jax.jacrev(predictions))(variables["params"]["embedding"]["table"])  # [T, V, D]
    seen = np.abs(gradient).max(axis=-1)[:, 4:] > 0
    np.testing.assert_array_equal(seen, np.tril(np.ones((T, T), bool)))


@pytest.mark.parametrize("fields", VARIANTS)
def test_step_by_step_is_all_at_once(fields):
    model, variables, apply = make(**fields)
    logits, out = apply(TOKENS)
    if not model.pointer_window:
        np.testing.assert_allclose(logits, out["hidden"] @ out["output_kernel"], atol=1e-5)
    step = jax.jit(lambda tokens, cache: model.apply(variables, tokens, cache, method="decode_step"))
    cache = jax.jit(lambda: model.apply(variables, B, T, method="init_cache"))()
    assert {leaf.shape[0] for leaf in jax.tree.leaves(cache)} == {B}
    for t in range(T):
        found, cache = step(TOKENS[:, t], cache)
        np.testing.assert_allclose(found, logits[:, t], atol=2e-6)


def test_an_lstmn_shows_the_weights_of_earlier_steps():
    _, _, apply = make(cell="lstmn", num_layers=2)
    _, out = apply(TOKENS)
    assert len(out["attention"]) == 2
    for weights in out["attention"]:
        assert weights.shape == (B, 1, T, T)
        assert (np.triu(weights) == 0).all()
        np.testing.assert_allclose(weights.sum(-1)[:, :, 1:], 1, rtol=1e-5)
    assert "attention" not in make()[2](TOKENS)[1]


def test_an_lstmn_does_not_go_on_after_a_cache():
    model, variables, _ = make(cell="lstmn")
    cache = model.apply(variables, B, T, method="init_cache")
    with pytest.raises(ValueError, match="cannot go on after a cache"):
        model.apply(variables, TOKENS, cache=cache)


def test_a_text_can_be_read_in_blocks():
    model, variables, apply = make(pointer_window=3)
    whole, _ = apply(TOKENS)
    read = jax.jit(lambda tokens, cache: model.apply(variables, tokens, cache=cache))
    cache = jax.jit(lambda: model.apply(variables, B, T, method="init_cache"))()
    parts = []
    for tokens in (TOKENS[:, :4], TOKENS[:, 4:6], TOKENS[:, 6:]):
        logits, out = read(tokens, cache)
        cache = out["cache"]
        parts.append(logits)
    np.testing.assert_allclose(np.concatenate(parts, axis=1), whole, atol=2e-6)


def test_dropped_weights_are_the_same_in_all_rows_and_steps():
    model, variables, _ = make(dropout=0.0, cell="rnn", weight_dropout=0.5)
    tokens = np.tile([[4, 5, 6]], (3, 1))
    cell = variables["params"]["cells_0"]

    @jax.jit
    def outputs(kernel, key):
        params = {**variables["params"], "cells_0": {**cell, "kernel": kernel}}
        return model.apply({"params": params}, tokens, train=True, rngs={"dropout": key})[1]["outputs"]

    dropped, plain = (np.asarray(outputs(kernel, jax.random.key(1))) for kernel in (np.eye(8) * 0.1, np.zeros((8, 8))))
    np.testing.assert_array_equal(dropped[0], dropped[2])
    # What unit i of step t - 1 adds to unit i of step t, in units of its weight: 0 if that is dropped, else 2.
    added = np.arctanh(dropped[0, 1:]) - np.arctanh(plain[0, 1:])
    factors = added / (0.1 * dropped[0, :-1])
    np.testing.assert_allclose(factors[0], factors[1], atol=1e-3)
    assert set(np.round(factors[0]).astype(int)) == {0, 2}


def test_a_dropped_word_is_dropped_wherever_it_occurs_in_a_row():
    model, variables, _ = make(dropout=0.0, input_dropout=0.0, word_dropout=0.5)
    tokens = np.array([[4, 5, 4, 6, 7, 5, 4, 6]])
    moved = model.bind(variables, rngs={"dropout": jax.random.key(3)})
    x = moved.drop_words(moved.embedding(tokens), tokens, True)
    kept = np.abs(x[0]).max(-1) > 0
    assert kept[[0, 2, 6]].tolist() in ([True] * 3, [False] * 3)
    assert len({bool(kept[tokens[0] == word][0]) for word in (4, 5, 6, 7)}) == 2
    np.testing.assert_allclose(x[0][kept], 2 * moved.embedding(tokens)[0][kept], rtol=1e-6)


def test_a_pointer_gives_log_probabilities_and_points_at_its_window_only():
    _, _, apply = make(pointer_window=3)
    log_p, out = apply(TOKENS)
    np.testing.assert_allclose(np.exp(log_p).sum(-1), 1, rtol=1e-5)
    since = np.arange(T)[:, None] - np.arange(T)[None]
    np.testing.assert_array_equal(out["pointer"] > 0, np.broadcast_to((since >= 0) & (since < 3), (B, T, T)))
    padded = TOKENS.copy()
    padded[0, 2] = PAD
    _, out = apply(padded)
    assert (out["pointer"][0, :, 2] == 0).all()


def test_one_field_makes_the_same_model_point():
    models = (Model(**TINY, pointer_window=window) for window in (0, 3))
    plain, pointing = (jax.jit(model.init)(jax.random.key(0), TOKENS)["params"] for model in models)
    assert set(pointing) - set(plain) == {"pointer"}
    jax.tree.map(np.testing.assert_array_equal, plain, {name: pointing[name] for name in plain})


def test_tied_weights_are_one_table():
    def shapes(**fields):
        return {jax.tree_util.keystr(path): leaf.shape for path, leaf in jax.tree.leaves_with_path(make(**fields)[1])}

    tables = [shape for shape in shapes().values() if V in shape]
    assert sorted(tables) == [(V,), (V, 8)]  # the bias and the table
    assert (V, 6) in shapes(tie_embeddings=False, d_hidden=6).values()


def test_dropout_is_a_function_of_its_key():
    model, variables, _ = make(dropout=0.5)

    @jax.jit
    def logits(seed):
        return model.apply(variables, TOKENS, train=True, rngs={"dropout": jax.random.key(seed)})[0]

    np.testing.assert_array_equal(logits(0), logits(0))
    assert not np.array_equal(logits(0), logits(1))


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"cell": "elman"}, "cell='elman': use one of lstm, gru, rnn, lstmn"),
        ({"cell": "lstmn", "weight_dropout": 0.5}, "weight_dropout=0.5: cell='lstmn' does not support it"),
        ({"num_layers": 0}, "num_layers=0 must be at least 1"),
        ({"dropout": 1.0}, r"dropout=1.0 must be in"),
        ({"hidden_dropout": -0.5}, r"hidden_dropout=-0.5 must be in"),
        ({"pointer_window": -1}, "pointer_window=-1 must not be negative; 0 means no pointer"),
    ],
)
def test_what_cannot_be_meant_is_named(fields, line):
    with pytest.raises(ValueError, match=line):
        make(**fields)
