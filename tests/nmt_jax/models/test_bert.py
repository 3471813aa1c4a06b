"""BERT: every layer's state, no influence of padding, dropout in training only. Its numbers: tests/pretrained."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax.models.bert import Model
from nmt_jax.models.layers.bert_stack import Bert
from tests.fixtures.parameters import draw_parameters

B, S, L, D, V = 2, 5, 2, 8, 11
TINY = {"vocab_size": V, "num_layers": L, "d_model": D, "d_ff": 12, "num_heads": 2, "max_positions": 7}


def make(**fields):
    model = Bert(**{**TINY, **fields})
    rng = np.random.default_rng(0)
    ids = rng.integers(0, V, (B, S))
    mask = np.array([[True] * S, [True] * 3 + [False] * 2])
    variables = draw_parameters(model.init, ids, mask)
    return model, variables, ids, mask


@pytest.mark.slow
def test_all_states_and_intermediates():
    model, _, ids, mask = make()
    hidden, out = model.apply(jax.jit(model.init)(jax.random.key(0), ids, mask), ids, mask)
    assert hidden.shape == (L + 1, B, S, D)
    assert out["pooled"].shape == (B, D)
    assert [weights.shape for weights in out["attention"]] == [(B, 2, S, S)] * L
    for weights in out["attention"]:
        np.testing.assert_allclose(weights.sum(axis=-1), 1.0, atol=1e-6)
        assert (np.asarray(weights)[1, :, :, 3:] == 0).all()
    np.testing.assert_allclose(hidden.mean(axis=-1), 0.0, atol=1e-5)  # each is the output of a norm


def test_padding_has_no_influence():
    model, variables, ids, mask = make()
    hidden, out = model.apply(variables, ids, mask)
    other = np.where(mask, ids, (ids + 1) % V)
    again, pooled = model.apply(variables, other, mask)
    np.testing.assert_array_equal(hidden[:, mask], again[:, mask])
    np.testing.assert_array_equal(out["pooled"], pooled["pooled"])
    alone, _ = model.apply(variables, ids[1:, :3], mask[1:, :3])
    np.testing.assert_allclose(hidden[:, 1:, :3], alone, atol=1e-6)


def test_padding_has_no_gradient():
    model, variables, ids, mask = make()
    ids = np.arange(B * S).reshape(B, S)  # every token another word

    def loss(params):
        return (model.apply({"params": params}, ids, mask)[0][-1][mask] ** 3).sum()

    gradient = jax.jit(jax.grad(loss))(variables["params"])["embeddings"]["word"]
    gradient = np.asarray(gradient)[: B * S].reshape(B, S, D)
    assert (gradient[~mask] == 0).all()
    assert (gradient[mask] != 0).any(axis=-1).all()


def test_tokens_see_both_sides_and_know_their_places():
    model, variables, ids, mask = make()
    hidden, _ = model.apply(variables, ids, mask)
    for place in (0, S - 1):
        changed = ids.copy()
        changed[0, place] = (changed[0, place] + 1) % V
        again, _ = model.apply(variables, changed, mask)
        assert (np.abs(again - hidden)[-1, 0].max(axis=-1) > 1e-6).all()
        np.testing.assert_array_equal(again[:, 1], hidden[:, 1])
    same = np.ones((B, S), int)
    states = np.asarray(model.apply(variables, same, mask)[0])
    assert len(np.unique(states[0, 0].round(5), axis=0)) == S


PACKED = {"ids": np.array([[1, 2, 3, 4, 5, 0, 0]]), "packing": np.array([[1, 1, 1, 2, 2, 0, 0]])}


@pytest.mark.parametrize("causal", [False, True])
def test_packed_examples_have_the_states_of_rows_of_their_own(causal):
    model, variables, _, _ = make(causal=causal, pooler=False, first_position=2)

    def states(ids, packing=None):
        return model.apply(variables, ids, ids != 0, None, False, packing, method="states")[0][-1]

    packed = states(**PACKED)[0]
    apart = states(np.array([[1, 2, 3], [4, 5, 0]]))
    np.testing.assert_allclose(packed[:3], apart[0], atol=1e-5)
    np.testing.assert_allclose(packed[3:5], apart[1, :2], atol=1e-5)


def test_no_example_of_a_row_has_a_gradient_to_another():
    model, variables, _, _ = make(pooler=False)
    ids, packing = PACKED["ids"], PACKED["packing"]

    def sums(word):
        params = {**variables["params"], "embeddings": {**variables["params"]["embeddings"], "word": word}}
        states = model.apply({"params": params}, ids, ids != 0, None, False, packing, method="states")[0][-1][0, :, 0]
        return jnp.stack([states[:3].sum(), states[3:5].sum()])

    gradient = jax.jit(jax.jacrev(sums))(variables["params"]["embeddings"]["word"])  # [2, V, D]
    seen = [set(np.flatnonzero(example)) for example in np.abs(gradient).max(axis=-1) > 0]
    assert seen == [{1, 2, 3}, {4, 5}]


def test_segments_are_a_table_of_their_own():
    model, variables, ids, mask = make()
    hidden, _ = model.apply(variables, ids, mask)
    zeros, _ = model.apply(variables, ids, mask, np.zeros((B, S), int))
    ones, _ = model.apply(variables, ids, mask, np.ones((B, S), int))
    np.testing.assert_array_equal(hidden, zeros)
    assert (np.abs(np.asarray(ones - hidden))[0] > 0).any(axis=-1).all()
    _, variables, _, _ = make(num_segments=0)
    assert "segment" not in variables["params"]["embeddings"]


def test_positions_are_counted_from_the_first():
    _, variables, ids, mask = make(first_position=2)
    table = variables["params"]["embeddings"]["position"]
    assert table.shape == (9, D)
    plain = jax.tree.map(lambda leaf: leaf, variables)
    plain["params"]["embeddings"]["position"] = table[2:]
    one, two = Bert(**TINY, first_position=2).apply(variables, ids, mask), Bert(**TINY).apply(plain, ids, mask)
    np.testing.assert_array_equal(one[0], two[0])


def test_dropout_in_training_only():
    model, variables, ids, mask = make(dropout=0.5, attention_dropout=0.5)

    @jax.jit
    def train(seed):
        return model.apply(variables, ids, mask, train=True, rngs={"dropout": jax.random.key(seed)})[0]

    np.testing.assert_array_equal(train(1), train(1))
    assert (np.asarray(train(1) != train(2)).any(axis=(1, 2, 3))).all()
    plain = model.apply(variables, ids, mask)[0]
    np.testing.assert_array_equal(make(dropout=0.0)[0].apply(variables, ids, mask)[0], plain)


def test_unused_hidden_states_cost_nothing():
    def operations(num_layers, used):
        model, variables, ids, mask = make(num_layers=num_layers)
        run = jax.jit(lambda params: model.apply(params, ids, mask)[0][used])
        return run.lower(variables).compile().cost_analysis()["flops"]

    assert operations(L, 1) == operations(1, 1)
    assert operations(L, 0) < operations(L, 1) < operations(L, 2)


def test_bfloat16_products_stay_near_float32():
    model, variables, ids, mask = make()
    low = Bert(**{**TINY, "dtype": "bfloat16"})
    exact, rough = model.apply(variables, ids, mask)[0], low.apply(variables, ids, mask)[0]
    assert rough.dtype == jnp.float32
    assert 0 < np.abs(np.asarray(exact - rough)[:, mask]).max() < 0.1


def test_parameters_begin_as_published():
    """Normal draws cut off at two standard deviations of 0.02, in every table and product; biases 0, norms 1."""
    ids = np.ones((1, S), int)
    variables = jax.jit(Bert(**TINY | {"vocab_size": 500}).init)(jax.random.key(0), ids, ids > 0)
    for path, leaf in jax.tree_util.tree_leaves_with_path(variables["params"]):
        name = path[-1].key
        if name in ("bias", "scale"):
            assert (leaf == (name == "scale")).all()
        else:
            assert 0.01 < np.std(leaf) < 0.0201
            assert np.abs(leaf).max() <= 0.0401


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"d_model": 9}, "d_model=9 is not divisible by num_heads=2"),
        ({"activation": "swiglu"}, "activation='swiglu': use one of gelu_erf, gelu, relu"),
        ({"dtype": "float16"}, "dtype='float16': use one of"),
        ({"num_layers": 0}, "num_layers=0 must be at least 1"),
        ({"dropout": 1.0}, "dropout=1.0"),
        ({"first_position": -1}, "must not be negative"),
    ],
)
def test_hyperparameters_that_cannot_be_meant(fields, words):
    with pytest.raises(ValueError, match=words):
        Bert(**{**TINY, **fields})


def test_too_long_a_sequence_is_named():
    model, variables, _, _ = make()
    with pytest.raises(ValueError, match="a sequence has 8 tokens, but max_positions=7"):
        model.apply(variables, np.ones((1, 8), int), np.ones((1, 8), bool))


def make_model(**fields):
    model = Model(**{**TINY, **fields})
    rng = np.random.default_rng(0)
    ids, segments = rng.integers(0, V, (B, S)), np.array([[0, 0, 1, 1, 1], [0, 0, 1, 0, 0]])
    mask = np.array([[True] * S, [True] * 3 + [False] * 2])
    inputs = (ids, mask, segments, np.array([[1, 4], [2, 0]]))
    return model, draw_parameters(model.init, *inputs), inputs


@pytest.mark.slow
def test_the_published_sizes():
    """110 M and 340 M (Devlin et al., 2019, section 3): with their heads, to the parameter those published."""
    sizes = {
        110_106_428: {},
        336_226_108: {"num_layers": 24, "d_model": 1024, "d_ff": 4096, "num_heads": 16},
    }
    for count, fields in sizes.items():
        ids, mask = jax.ShapeDtypeStruct((1, 4), np.int32), jax.ShapeDtypeStruct((1, 4), bool)
        params = jax.eval_shape(Model(vocab_size=30522, **fields).init, jax.random.key(0), ids, mask, ids, ids)
        assert sum(leaf.size for leaf in jax.tree.leaves(params)) == count


def test_logits_are_those_of_the_positions_alone_and_of_the_tied_table():
    model, variables, inputs = make_model()
    params = variables["params"]
    params = {**params, "output_bias": jnp.arange(V, dtype=jnp.float32)}
    logits, out = model.apply({"params": params}, *inputs)
    assert logits.shape == (B, 2, V)
    assert out["next_sentence"].shape == (B, 2)
    np.testing.assert_allclose(logits, out["hidden"] @ out["output_kernel"], atol=1e-5)
    np.testing.assert_array_equal(out["output_kernel"][:-1].T, params["encoder"]["embeddings"]["word"])
    np.testing.assert_array_equal(out["output_kernel"][-1], params["output_bias"])
    one, _ = model.apply({"params": params}, *inputs[:3], inputs[3][:, 1:])
    np.testing.assert_allclose(one[:, 0], logits[:, 1], atol=1e-6)


@pytest.mark.slow
def test_no_token_of_a_causal_model_sees_those_after_it():
    positions = np.broadcast_to(np.arange(S), (B, S))
    for causal in (True, False):
        model, variables, inputs = make_model(causal=causal, scan_layers=causal, next_sentence=False)

        def logits(word, model=model, variables=variables, inputs=inputs):
            params = {**variables["params"], "encoder": {**variables["params"]["encoder"]}}
            params["encoder"]["embeddings"] = {**params["encoder"]["embeddings"], "word": word}
            ids = np.arange(2 * S).reshape(B, S)  # every token another word
            return model.apply({"params": params}, ids, *inputs[1:3], positions)[1]["hidden"]

        word = variables["params"]["encoder"]["embeddings"]["word"]
        # [position, word of a position]; a plain sum of what a norm gives is a constant
        gradient = jax.jit(jax.jacobian(lambda word, logits=logits: (logits(word)[0] ** 3).sum(axis=-1)))(word)[:, :S]
        seen = np.abs(np.asarray(gradient)).sum(axis=-1) > 0
        np.testing.assert_array_equal(seen, np.tril(np.ones((S, S), bool)) if causal else np.ones((S, S), bool))


@pytest.mark.slow
def test_remat_changes_no_number():
    (model, variables, inputs), (again, others, _) = make_model(), make_model(remat="full")
    assert jax.tree.structure(variables) == jax.tree.structure(others)

    def gradient(model):
        options = {"train": True, "rngs": {"dropout": jax.random.key(1)}}

        def total(params):
            return model.apply({"params": params}, *inputs, **options)[0].sum()

        return jax.jit(jax.grad(total))(variables["params"])

    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), gradient(model), gradient(again))
    hidden = [one.apply(variables, *inputs)[0] for one in (model, again)]
    np.testing.assert_allclose(*hidden, atol=1e-6)


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"causal": True}, "needs next_sentence=False"),
        ({"num_segments": 1}, "needs num_segments=2, one per sentence, not 1"),
        ({"num_heads": 3}, "not divisible by num_heads=3"),
        ({"activation": "tanh"}, "activation='tanh'"),
    ],
)
def test_a_model_that_cannot_be_meant(fields, line):
    with pytest.raises(ValueError, match=line):
        Model(**{**TINY, **fields})
