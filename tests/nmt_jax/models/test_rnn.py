import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax.data.vocabulary.vocab import BOS, EOS, PAD
from nmt_jax.decoding.beam_search import reorder
from nmt_jax.models.rnn import Model

B, S, T, K, V = 2, 5, 6, 3, 11
TINY = {"source_vocab_size": V, "target_vocab_size": V, "d_embedding": 6, "d_hidden": 8, "d_attention": 5}
VARIANTS = [
    {},
    {"input_feeding": False, "score": "dot", "cell": "gru", "variational_dropout": True},
    {"decoder": "bahdanau", "score": "additive", "cell": "gru", "bridge": "mean", "tie_embeddings": "three-way"},
    {"attention": "none", "cell": "rnn", "input_feeding": False, "context_every_step": True, "bridge": "copy"},
    {"attention": "local-p", "window": 2, "score": "concat", "bidirectional": False, "bridge": "zero"},
    {"attention": "local-m", "num_encoder_layers": 2, "num_decoder_layers": 2, "residual": True, "window": 1},
    {"cell": "lstmn", "input_feeding": False},
]


def make(**fields):
    model = Model(**{**TINY, **fields})
    source = jnp.array([[4, 5, 6, 7, EOS], [8, 9, EOS, PAD, PAD]])
    target = jnp.array([[5, 6, 7, 8, 9, EOS], [4, 10, EOS, PAD, PAD, PAD]])
    return model, jax.jit(model.init)(jax.random.key(0), source, target), source, target


@pytest.mark.parametrize("fields", VARIANTS)
def test_a_label_moves_only_later_steps(fields):
    model, variables, source, target = make(**fields)
    apply = jax.jit(lambda target: model.apply(variables, source, target)[0])
    base = apply(target)
    for t in range(T):
        changed = target.at[:, t].set(jnp.where(target[:, t] == 4, 5, 4))
        moved = np.abs(np.asarray(apply(changed) - base)).max(axis=(0, 2)) > 0
        assert not moved[: t + 1].any(), f"label {t} is seen at or before the step that predicts it"
        assert t == T - 1 or moved[t + 1], f"label {t} has no influence on the next step"


@pytest.mark.parametrize("fields", VARIANTS)
def test_padding_has_no_influence(fields):
    model, variables, source, target = make(**fields)
    padded_source = jnp.pad(source, ((0, 0), (0, 3)))
    padded_target = jnp.pad(target, ((0, 0), (0, 2)))
    short = model.apply(variables, source[1:, :3], target[1:, :3])[0]
    np.testing.assert_allclose(model.apply(variables, padded_source, padded_target)[0][1:, :3], short, atol=2e-6)


@pytest.mark.parametrize("fields", VARIANTS)
def test_decoding_step_by_step_equals_the_full_pass(fields):
    model, variables, source, target = make(**fields)
    logits, out = model.apply(variables, source, target)
    np.testing.assert_allclose(logits, out["hidden"] @ out["output_kernel"], atol=1e-5)
    cache = model.apply(variables, model.apply(variables, source, method="encode"), source, K, T, method="init_cache")
    inputs = jnp.pad(target[:, :-1], ((0, 0), (1, 0)), constant_values=BOS)
    step = jax.jit(lambda tokens, cache: model.apply(variables, tokens, cache, method="decode_step"))
    parents = jnp.array([[2, 0, 1], [1, 1, 0]])  # beams of one sentence may change places at any time
    for t in range(T):
        found, cache = step(jnp.repeat(inputs[:, t], K), cache)
        expected = np.repeat(logits[:, t : t + 1], K, axis=1)
        np.testing.assert_allclose(found.reshape(B, K, V), expected, atol=2e-6)
        cache = reorder(cache, parents, B)


def test_without_input_feeding_one_step_at_a_time_is_the_same(monkeypatch):
    model, variables, source, target = make(input_feeding=False, num_decoder_layers=2)
    at_once = model.apply(variables, source, target)
    scanned = model.clone(input_feeding=True)  # the readout that is fed has no weights yet: none are read
    params = jax.tree.map(lambda leaf: leaf, dict(variables["params"]))
    first = params["decoder_layers"]["cells_0"]["input"]["kernel"]
    fed = jnp.concatenate([first, jnp.zeros((8, first.shape[1]))])
    params["decoder_layers"]["cells_0"]["input"]["kernel"] = fed
    stepwise = scanned.apply({"params": params}, source, target)
    np.testing.assert_allclose(at_once[0], stepwise[0], atol=2e-6)
    np.testing.assert_allclose(at_once[1]["cross"][0], stepwise[1]["cross"][0], atol=2e-6)


def test_features_are_read_instead_of_words():
    model = Model(**TINY)
    features = jax.random.normal(jax.random.key(1), (B, S, 3)).at[1, 3:].set(0.0)
    _, _, _, target = make()
    variables = model.init(jax.random.key(0), features, target)
    _, out = model.apply(variables, features, target)
    assert (np.asarray(out["cross"][0])[1, :, :, 3:] == 0).all()


def test_dropout_is_a_function_of_its_key():
    model, variables, source, target = make(dropout=0.5, num_decoder_layers=2)

    def logits(seed):
        return model.apply(variables, source, target, train=True, rngs={"dropout": jax.random.key(seed)})[0]

    np.testing.assert_array_equal(logits(0), logits(0))
    assert not (logits(0) == logits(1)).all()


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"score": "cosine"}, "score='cosine': use one of dot"),
        ({"window": 0}, "window=0 must be at least 1"),
        ({"d_hidden": 7}, "d_hidden=7 must be even"),
        ({"cell": "sru"}, "cell='sru': use one of lstm, gru, rnn, lstmn"),
        ({"decoder": "bahdanau", "attention": "none"}, "use decoder='luong' without attention"),
        ({"tie_embeddings": "three-way", "source_vocab_size": 12}, "needs one joint vocabulary"),
        ({"dropout": 1.0}, "dropout=1.0 must be in"),
    ],
)
def test_what_cannot_be_meant_is_named(fields, line):
    with pytest.raises(ValueError, match=line):
        make(**fields)


@pytest.mark.parametrize("fields", [{}, {"input_feeding": False}, {"decoder": "bahdanau", "score": "additive"}])
def test_without_a_teacher_it_reads_its_own_best_pieces(fields):
    model, variables, source, target = make(**fields)
    rngs = {"teacher_forcing": jax.random.key(0)}
    alone = model.apply(variables, source, target, teacher_forcing=jnp.float32(0.0), rngs=rngs)[0]
    cache = model.apply(variables, model.apply(variables, source, method="encode"), source, 1, T, method="init_cache")
    tokens = jnp.full(B, BOS)
    for t in range(T):
        logits, cache = model.apply(variables, tokens, cache, method="decode_step")
        np.testing.assert_allclose(alone[:, t], logits, atol=2e-6)
        tokens = jnp.argmax(logits, axis=-1)
    taught = model.apply(variables, source, target, teacher_forcing=jnp.float32(1.0), rngs=rngs)[0]
    np.testing.assert_allclose(taught, model.apply(variables, source, target)[0], atol=2e-6)
    assert np.abs(taught - alone).max() > 1e-3
