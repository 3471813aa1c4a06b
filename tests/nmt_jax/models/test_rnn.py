"""Recurrent encoder-decoders: causality, padding, cached decoding, and scheduled sampling."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax.data.vocabulary.vocab import BOS, EOS, PAD
from nmt_jax.models.rnn import Model
from tests.fixtures.decoding_steps import begin, reordered_beams
from tests.fixtures.feature_sources import FEATURES, check_padding_of_features, check_steps_on_features, feature_model
from tests.fixtures.parameters import draw_parameters

B, S, T, K, V = 2, 5, 6, 3, 11
TINY = {"source_vocab_size": V, "target_vocab_size": V, "d_embedding": 6, "d_hidden": 8, "d_attention": 5}
VARIANTS = [
    {},
    {"input_feeding": False, "score": "dot", "cell": "gru", "variational_dropout": True},
    {"decoder": "bahdanau", "score": "additive", "cell": "gru", "bridge": "mean", "tie_embeddings": "three-way"},
    {"attention": "none", "cell": "rnn", "input_feeding": False, "context_every_step": True, "bridge": "copy"},
    {"attention": "local-p", "window": 2, "score": "concat", "bidirectional": False, "bridge": "zero"},
    {"attention": "local-m", "num_encoder_layers": 2, "num_decoder_layers": 2, "residual": True, "window": 1},
    {"cell": "lstmn", "input_feeding": False, "score": "location"},
]


SOURCE = np.array([[4, 5, 6, 7, EOS], [8, 9, EOS, PAD, PAD]])
TARGET = np.array([[5, 6, 7, 8, 9, EOS], [4, 10, EOS, PAD, PAD, PAD]])


@functools.cache
def make(*fields):
    """A model, its parameters, and its compiled call."""
    model = Model(**{**TINY, **dict(fields)})
    variables = draw_parameters(model.init, SOURCE, TARGET)
    apply = jax.jit(functools.partial(model.apply, variables))
    return model, variables, lambda *inputs: jax.device_get(apply(*inputs))


@pytest.fixture(params=VARIANTS)
def variant(request):
    return make(*request.param.items())


def test_a_label_affects_only_later_steps(variant):
    _, _, apply = variant
    base = apply(SOURCE, TARGET)[0]
    for t in range(T):
        changed = TARGET.copy()
        changed[:, t] = np.where(TARGET[:, t] == 4, 5, 4)
        moved = np.abs(apply(SOURCE, changed)[0] - base).max(axis=(0, 2)) > 0
        assert not moved[: t + 1].any(), f"label {t} is seen at or before the step that predicts it"
        assert t == T - 1 or moved[t + 1], f"label {t} has no influence on the next step"


def test_padding_has_no_influence(variant):
    _, _, apply = variant
    short = apply(SOURCE[1:, :3], TARGET[1:, :3])[0]  # the second row without its padding
    np.testing.assert_allclose(apply(SOURCE, TARGET)[0][1:, :3], short, atol=2e-6)


def test_decoding_step_by_step_equals_the_full_pass(variant):
    model, variables, apply = variant
    logits, out = apply(SOURCE, TARGET)
    np.testing.assert_allclose(logits, out["hidden"] @ out["output_kernel"], atol=1e-5)
    found, expected = reordered_beams(begin(model, variables, SOURCE, K, T), apply, SOURCE, K, T, V)
    np.testing.assert_allclose(found, expected, atol=2e-6)


def test_without_input_feeding_one_step_at_a_time_is_the_same():
    model, variables, apply = make(("input_feeding", False), ("num_decoder_layers", 2))
    at_once = apply(SOURCE, TARGET)
    scanned = model.clone(input_feeding=True)  # the readout that is fed has no weights yet: none are read
    params = jax.tree.map(lambda leaf: leaf, dict(variables["params"]))
    first = params["decoder_layers"]["cells_0"]["input"]["kernel"]
    fed = jnp.asarray(np.concatenate([first, np.zeros((8, first.shape[1]), np.float32)]))
    params["decoder_layers"]["cells_0"]["input"]["kernel"] = fed
    stepwise = jax.jit(scanned.apply)({"params": params}, SOURCE, TARGET)
    np.testing.assert_allclose(at_once[0], stepwise[0], atol=2e-6)
    np.testing.assert_allclose(at_once[1]["cross"][0], stepwise[1]["cross"][0], atol=2e-6)


def test_features_are_read_instead_of_words():
    model, apply = feature_model(Model(**TINY))
    check_padding_of_features(apply)
    check_steps_on_features(model, apply)


@pytest.mark.parametrize("halvings", [1, 2])
def test_a_pyramid_halves_the_features(halvings):
    fields = {"num_encoder_layers": 2, "pyramid_layers": halvings, "ctc": True, "bridge": "mean"}
    model, apply = feature_model(Model(**TINY, **fields))
    check_padding_of_features(apply, 2**halvings)
    check_steps_on_features(model, apply)


def test_a_pyramid_needs_features_and_layers():
    with pytest.raises(ValueError, match="pyramid_layers=2 must be 0 to num_encoder_layers"):
        Model(**TINY, pyramid_layers=2)
    with pytest.raises(ValueError, match="pyramid_layers=1 needs rows of features"):
        jax.eval_shape(Model(**TINY, pyramid_layers=1).init, jax.random.key(0), SOURCE, TARGET)


def test_features_do_not_go_with_copying():
    model = Model(**{**TINY, "copying": "pointer"})
    with pytest.raises(ValueError, match="copying and lexicon need a source of words"):
        jax.eval_shape(model.init, jax.random.key(0), FEATURES, TARGET)


def test_dropout_is_a_function_of_its_key():
    model, variables, _ = make(("dropout", 0.5), ("num_decoder_layers", 2))

    @jax.jit
    def logits(seed):
        return model.apply(variables, SOURCE, TARGET, train=True, rngs={"dropout": jax.random.key(seed)})[0]

    np.testing.assert_array_equal(logits(0), logits(0))
    assert not np.array_equal(logits(0), logits(1))


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"score": "cosine"}, "score='cosine': use one of dot"),
        ({"window": 0}, "window=0 must be at least 1"),
        ({"d_hidden": 7}, "d_hidden=7 must be even"),
        ({"cell": "sru"}, "cell='sru': use one of lstm, gru, rnn, lstmn"),
        ({"decoder": "bahdanau", "attention": "none"}, "use decoder='luong' with attention='none'"),
        ({"attention": "hard", "copying": "pointer"}, "attention='hard' supports one source only, without copying"),
        ({"attention": "hard", "num_sources": 2}, "attention='hard' supports one source only"),
        ({"score": "location", "attention": "local-p"}, "score='location' supports attention='global', not attention="),
        ({"tie_embeddings": "three-way", "source_vocab_size": 12}, "needs one joint vocabulary"),
        ({"dropout": 1.0}, "dropout=1.0 must be in"),
    ],
)
def test_invalid_hyperparameters_are_named(fields, line):
    with pytest.raises(ValueError, match=line):
        Model(**{**TINY, **fields})


@pytest.mark.slow
@pytest.mark.parametrize("fields", VARIANTS[:3])
def test_without_teacher_forcing_it_reads_its_own_best_pieces(fields):
    model, variables, apply = make(*fields.items())

    @jax.jit
    def sampled(ratio):
        rngs = {"teacher_forcing": jax.random.key(0)}
        return model.apply(variables, SOURCE, TARGET, teacher_forcing=ratio, rngs=rngs)[0]

    alone = np.asarray(sampled(0.0))
    cache, step = begin(model, variables, SOURCE, 1, T)
    tokens = np.full(B, BOS)
    for t in range(T):
        logits, cache = step(tokens, cache)
        np.testing.assert_allclose(alone[:, t], logits, atol=2e-6)
        tokens = np.argmax(logits, axis=-1)
    forced = np.asarray(sampled(1.0))
    np.testing.assert_allclose(forced, apply(SOURCE, TARGET)[0], atol=2e-6)
    assert np.abs(forced - alone).max() > 1e-3
