"""Copying against its equations in NumPy, float64, as probabilities; and what holds for the model that copies."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax.data.vocabulary.vocab import BOS, EOS, PAD, UNK
from nmt_jax.models import rnn, transformer
from nmt_jax.models.layers.copying import make_copying
from nmt_jax.models.layers.features import Features
from tests.fixtures.decoding_steps import reordered_beams
from tests.fixtures.parameters import draw_parameters

B, S, T, K, V, U = 2, 5, 6, 3, 11, 4
R, E, H = 3, 2, 4  # widths of the readout, of an embedded word, of the encoder's states
SOURCE = np.array([[4, V, 5, V, EOS], [V + 1, 4, EOS, PAD, PAD]])  # V stands twice, V + 1 was numbered in its line
MASK = SOURCE != PAD


def softmax(x):
    return np.exp(x - x.max()) / np.exp(x - x.max()).sum()


def restated(name, params, logits, readout, x, weights, states):
    """log p(w) of one step of one sentence, -inf where p is 0: float[V + U]; the source is given by its line."""
    line, logits, readout, x, weights, states = logits[0], *logits[1:], readout, x, weights, states
    seen = [j for j in range(S) if MASK[line, j]]
    p = np.zeros(V + U)
    if name == "pointer":
        kernel, bias = params["gate"]["kernel"][:, 0], params["gate"]["bias"][0]
        context = sum(weights[j] * states[j] for j in range(S))
        gate = 1 / (1 + np.exp(-(kernel @ np.concatenate([context, readout, x]) + bias)))
        p[:V] = gate * softmax(logits)
        for j in seen:
            p[SOURCE[line, j]] += (1 - gate) * weights[j] / weights[seen].sum()
    else:
        scores = np.array([np.tanh(states[j] @ params["key"]["kernel"]) @ readout for j in seen])
        normalizer = np.exp(logits).sum() + np.exp(scores).sum()
        p[:V] = np.exp(logits) / normalizer
        for j, score in zip(seen, scores, strict=True):
            p[SOURCE[line, j]] += np.exp(score) / normalizer
    with np.errstate(divide="ignore"):
        return np.log(p)


@pytest.mark.parametrize("name", ["pointer", "copynet"])
def test_forward_and_gradient_equal_the_equations(name):
    generator = np.random.default_rng(0)
    logits, readout, x = (generator.normal(size=(B, 2, width)) for width in (V, R, E))
    weights = generator.uniform(0.1, 1.0, size=(B, 2, S)) * MASK[:, None]
    weights /= weights.sum(-1, keepdims=True)
    states = generator.normal(size=(B, S, H))
    upstream = generator.normal(size=(B, 2, V + U))
    module = make_copying(name, U, R)

    def run(module, logits, readout, x, weights, states):
        memory = module.memory(states, MASK, jnp.asarray(SOURCE))
        return module(logits, readout, x, weights, memory)

    given = [logits, readout, x, weights, states]
    variables = draw_parameters(functools.partial(module.init, method=run), *map(np.float32, given))
    params = jax.tree.map(np.float64, variables["params"])

    def by_definition(inputs):
        params, logits, readout, x, weights, states = inputs
        return np.array(
            [
                [
                    restated(name, params, (b, logits[b, t]), readout[b, t], x[b, t], weights[b, t], states[b])
                    for t in (0, 1)
                ]
                for b in range(B)
            ]
        )

    @jax.jit
    def by_module(inputs, upstream):
        found, back = jax.vjp(lambda inputs: module.apply({"params": inputs[0]}, *inputs[1:], method=run), inputs)
        return found, back(upstream)[0]

    inputs = (params, *given)
    expected = by_definition(inputs)
    possible = np.isfinite(expected)
    upstream = np.where(possible, upstream, 0.0)
    found, gradient = jax.tree.map(np.asarray, by_module(*jax.tree.map(np.float32, (inputs, upstream))))
    np.testing.assert_allclose(found[possible], expected[possible], atol=1e-6)
    assert (np.exp(found[~possible]) == 0).all()
    np.testing.assert_allclose(np.exp(found).sum(-1), 1, rtol=1e-6)
    assert (~possible).sum() == 2 * (3 + 3)  # of four numbers a line uses one

    leaves, tree = jax.tree.flatten(inputs)
    for number, leaf in enumerate(leaves):
        differences = np.zeros_like(leaf)
        for place in np.ndindex(leaf.shape):
            ends = []
            for step in (1e-5, -1e-5):
                moved = leaf.copy()
                moved[place] += step
                changed = jax.tree.unflatten(tree, [*leaves[:number], moved, *leaves[number + 1 :]])
                log_p = by_definition(changed)
                ends.append((np.where(possible, log_p, 0.0) * upstream).sum())
            differences[place] = (ends[0] - ends[1]) / 2e-5
        here = jax.tree.leaves(gradient)[number]
        if leaf is weights:  # what padding's weight would do if it were not zero is no concern
            here, differences = here * MASK[:, None], differences * MASK[:, None]
        np.testing.assert_allclose(here, differences, rtol=2e-6, atol=2e-6)


def test_a_copy_is_learned_even_where_its_gate_is_shut():
    """1 - sigmoid(40) is 0 in float32, but its logarithm is not lost."""
    module = make_copying("pointer", 1, R)
    source, halves = np.array([[V, EOS]]), np.full((1, 1, 2), 0.5, np.float32)

    def log_p(bias):
        params = {"gate": {"kernel": jnp.zeros((H + R + E, 1)), "bias": bias[None]}}
        memory = module.memory(jnp.ones((1, 2, H)), jnp.ones((1, 2), bool), source)
        inputs = (jnp.zeros((1, 1, V)), jnp.ones((1, 1, R)), jnp.ones((1, 1, E)), halves, memory)
        return module.apply({"params": params}, *inputs)[0, 0, V]

    value, slope = jax.jit(jax.value_and_grad(log_p))(40.0)
    np.testing.assert_allclose(value, -40 + np.log(0.5), rtol=1e-6)
    np.testing.assert_allclose(slope, -1, rtol=1e-6)


# The model

PAIR = {"source_vocab_size": V, "target_vocab_size": V}
TINY = {
    rnn.Model: {**PAIR, "d_embedding": 6, "d_hidden": 8, "d_attention": 5},
    transformer.Model: {**PAIR, "num_encoder_layers": 1, "num_decoder_layers": 2, "d_model": 8, "d_ff": 12}
    | {"num_heads": 2},
}
SIMPLE = {"cell": "rnn", "bridge": "zero", "score": "additive"}
MODELS = [
    (rnn.Model, {**SIMPLE, "copying": "pointer", "coverage": True}),
    (rnn.Model, {"copying": "copynet", "input_feeding": False, "tie_embeddings": "three-way"}),
    (rnn.Model, {"copying": "pointer", "decoder": "bahdanau", "cell": "gru", "attention": "local-p", "window": 2}),
    (transformer.Model, {"copying": "pointer"}),
    (transformer.Model, {"copying": "pointer", "copy_heads": 1, "norm": "post", "tie_embeddings": "none"}),
    (rnn.Model, {**SIMPLE, "copying": "copynet", "selective_read": True, "input_feeding": False}),
]
ALL = [*MODELS[:4], pytest.param(*MODELS[4], marks=pytest.mark.slow), MODELS[5]]
TARGET = np.array([[V, 6, 7, 8, V, EOS], [4, V + 1, EOS, PAD, PAD, PAD]])


@functools.cache
def compiled(kind, *fields):
    """The model's variables, `__call__` and the rest, each compiled once for all tests."""
    model = kind(**{**TINY[kind], "max_unknown": U, **dict(fields)})

    def method(name):
        return jax.jit(functools.partial(model.apply, method=name), static_argnames=("beam_size", "max_length"))

    names = ("__call__", "encode", "init_cache", "decode_step")
    return draw_parameters(model.init, SOURCE, TARGET), *map(method, names)


def begin(kind, fields, beam_size):
    """The cache before the first step, and the step."""
    variables, _, encode, init_cache, decode_step = compiled(kind, *fields.items())
    cache = init_cache(variables, encode(variables, SOURCE), SOURCE, beam_size=beam_size, max_length=T)
    return cache, functools.partial(decode_step, variables)


@pytest.mark.parametrize(("kind", "fields"), ALL)
def test_only_words_of_the_line_are_copied_and_the_rest_is_one(kind, fields):
    variables, call, *_ = compiled(kind, *fields.items())
    log_p, out = call(variables, SOURCE, TARGET)
    assert log_p.shape == (B, T, V + U)
    assert "output_kernel" not in out
    p = np.exp(np.asarray(log_p, np.float64))
    np.testing.assert_allclose(p.sum(-1), 1, atol=1e-6)
    for line in range(B):
        own = {int(word) for word in SOURCE[line] if word >= V}
        for word in range(V, V + U):
            assert (p[line, :, word] > 1e-3).all() if word in own else (p[line, :, word] == 0).all()


@pytest.mark.parametrize(("kind", "fields"), [MODELS[0], MODELS[5]])
def test_coverage_and_selective_read_equal_their_equations(kind, fields):
    """A decoder of tanh cells, step by step: See et al. (2017), equations 10 and 11; Gu et al. (2016), equation 9."""
    variables, call, encode, *_ = compiled(kind, *fields.items())
    params = jax.tree.map(np.float64, variables["params"])
    embeddings, kernel = params["target_embedding"]["table"], params["output_table"]["table"]
    score = params["decoder_layers"]["attend"]["score_function"]
    cell, output = params["decoder_layers"]["cells_0"], params["decoder_layers"]["output"]
    encoded = np.float64(encode(variables, SOURCE)["output"]["copy"]["states"])
    log_p, out = call(variables, SOURCE, TARGET)
    inputs = np.pad(TARGET[:, :-1], ((0, 0), (1, 0)), constant_values=BOS)
    for line in range(B):
        states, real = encoded[line], np.flatnonzero(MASK[line])
        h, readout, covered = np.zeros(8), np.zeros(8), np.zeros(S)
        for t, word in enumerate(inputs[line]):
            x = embeddings[word if word < V else UNK] * np.sqrt(6)
            read = [x]
            if "selective_read" in fields:
                psi = np.tanh(states @ params["copier"]["key"]["kernel"]) @ readout
                places = [j for j in real if SOURCE[line, j] == word]
                rho = softmax(psi[places]) if places else np.zeros(0)
                read.append(sum((p * states[j] for p, j in zip(rho, places, strict=True)), np.zeros(8)))
            else:
                read.append(readout)  # input feeding
            gates = np.concatenate(read) @ cell["input"]["kernel"] + cell["input"]["bias"]
            h = np.tanh(gates + h @ cell["kernel"] + cell["bias"])
            hidden = h @ score["query"]["kernel"] + states @ score["key"]["kernel"]
            hidden = hidden + covered[:, None] * score.get("coverage_vector", np.zeros(5))
            weights = np.zeros(S)
            weights[real] = softmax((np.tanh(hidden) @ score["vector"])[real])
            np.testing.assert_allclose(out["attended"][line, t], weights, atol=2e-6)
            covered += weights
            readout = np.tanh(np.concatenate([weights @ states, h]) @ output["kernel"] + output["bias"])
            logits = kernel @ readout
            expected = restated(fields["copying"], params["copier"], (line, logits), readout, x, weights, states)
            np.testing.assert_allclose(np.exp(log_p[line, t]), np.exp(expected), atol=2e-6)


@pytest.mark.parametrize("number", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_the_transformer_copies_by_the_attention_of_its_last_layer(number):
    """Restated from what the model without copying computes with the same parameters."""
    kind, fields = MODELS[3 + number]
    variables, call, encode, *_ = compiled(kind, *fields.items())
    plain = kind(**{**TINY[kind], **fields, "copying": "none"})
    (logits, out), embedded = jax.jit(
        lambda variables, *batch: (plain.apply(variables, *batch), plain.apply(variables, batch[1], method=embed))
    )(variables, np.where(SOURCE < V, SOURCE, UNK), np.where(TARGET < V, TARGET, UNK))
    heads = np.float64(out["cross"][-1])[:, : fields.get("copy_heads", 2)]
    states, params = np.float64(encode(variables, SOURCE)), jax.tree.map(np.float64, variables["params"]["copier"])
    log_p, found = call(variables, SOURCE, TARGET)
    np.testing.assert_allclose(found["attended"], heads.mean(axis=1), atol=1e-6)
    logits, hidden, embedded = (np.float64(array) for array in (logits, out["hidden"], embedded))
    for line, step in np.ndindex(B, T):
        given = (line, logits[line, step]), hidden[line, step], embedded[line, step]
        expected = restated("pointer", params, *given, heads[line, :, step].mean(axis=0), states[line])
        np.testing.assert_allclose(np.exp(log_p[line, step]), np.exp(expected), atol=2e-6)


def embed(model, target):
    """What the decoder of a Transformer reads."""
    inputs = jnp.pad(target[:, :-1], ((0, 0), (1, 0)), constant_values=BOS)
    return model.target_embedding(inputs) + model.target_position(T)[None]


@pytest.mark.slow
def test_packed_pairs_copy_only_their_own_words():
    variables, call, *_ = compiled(transformer.Model, *MODELS[3][1].items())
    source, target = np.array([[4, V, EOS, V, 5, EOS]]), np.array([[V, 6, EOS, V, 5, EOS]])
    packing = np.array([[1, 1, 1, 2, 2, 2]])
    packed, out = call(variables, source, target, packing=(packing, packing))
    apart, alone = call(variables, source.reshape(2, 3), target.reshape(2, 3))
    np.testing.assert_allclose(np.exp(packed).reshape(2, 3, -1), np.exp(apart), atol=2e-6)
    attended = np.asarray(out["attended"])
    np.testing.assert_allclose([attended[0, :3, :3], attended[0, 3:, 3:]], alone["attended"], atol=1e-6)
    assert (attended[0, :3, 3:] == 0).all()
    assert (attended[0, 3:, :3] == 0).all()


@pytest.mark.parametrize(("kind", "fields"), ALL)
def test_decoding_step_by_step_equals_the_full_pass(kind, fields):
    variables, call, *_ = compiled(kind, *fields.items())
    apply = functools.partial(call, variables)
    found, expected = reordered_beams(begin(kind, fields, K), apply, SOURCE, K, T, V + U)
    np.testing.assert_allclose(np.exp(found), np.exp(expected), atol=2e-6)


@pytest.mark.parametrize(("kind", "fields"), ALL)
def test_padding_is_never_copied_and_has_no_influence(kind, fields):
    variables, call, *_ = compiled(kind, *fields.items())
    short = call(variables, SOURCE[1:, :3], TARGET[1:, :3])[0]
    whole = np.asarray(call(variables, SOURCE, TARGET)[0])
    np.testing.assert_allclose(np.exp(whole[1:, :3]), np.exp(short), atol=2e-6)


@pytest.mark.parametrize(("kind", "fields"), [*MODELS[:2], MODELS[3]])
def test_a_lines_own_words_are_read_as_unknown(kind, fields):
    variables, call, *_ = compiled(kind, *fields.items())
    log_p = np.asarray(call(variables, SOURCE, TARGET)[0])
    read = call(variables, SOURCE, np.where(TARGET >= V, UNK, TARGET))[0]
    np.testing.assert_array_equal(log_p, read)
    numbers = np.where(SOURCE == V, V + 2, SOURCE)  # another number for the same word
    renumbered = np.asarray(call(variables, numbers, TARGET)[0])
    np.testing.assert_allclose(np.exp(renumbered[0, :, V + 2]), np.exp(log_p[0, :, V]), rtol=1e-5)


@pytest.mark.parametrize(("kind", "fields"), [MODELS[0], MODELS[3]])
def test_an_empty_row_is_no_nan(kind, fields):
    variables, call, *_ = compiled(kind, *fields.items())

    @jax.jit
    @jax.grad
    def slope(variables):
        return call(variables, np.full_like(SOURCE, PAD), TARGET)[0][..., :V].sum()

    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slope(variables)))


@pytest.mark.parametrize(("kind", "fields"), [MODELS[0], pytest.param(*MODELS[5], marks=pytest.mark.slow)])
def test_without_a_teacher_it_reads_its_own_best_words(kind, fields):
    variables, call, *_ = compiled(kind, *fields.items())
    rngs = {"teacher_forcing": jax.random.key(0)}
    alone = np.asarray(call(variables, SOURCE, TARGET, teacher_forcing=0.0, rngs=rngs)[0])
    cache, step = begin(kind, fields, 1)
    words = np.full(B, BOS)
    for t in range(T):
        log_p, cache = step(words, cache)
        np.testing.assert_allclose(np.exp(alone[:, t]), np.exp(log_p), atol=2e-6)
        words = np.argmax(log_p, axis=-1)


@pytest.mark.parametrize(
    ("kind", "fields", "line"),
    [
        (rnn.Model, {"copying": "pointers"}, "copying='pointers': use one of none, pointer, copynet"),
        (rnn.Model, {"copying": "copynet", "source_vocab_size": 12}, "needs one joint vocabulary"),
        (rnn.Model, {"copying": "pointer", "attention": "none"}, "use attention='global'"),
        (rnn.Model, {"copying": "pointer", "num_sources": 2}, "supports one source only, but num_sources=2"),
        (rnn.Model, {"max_unknown": -1}, "max_unknown=-1 must not be negative"),
        (rnn.Model, {"copying": "pointer", "selective_read": True}, "selective_read needs copying='copynet'"),
        (rnn.Model, {"coverage": True}, "coverage needs attention to one source with score='additive' or 'concat'"),
        (rnn.Model, {"coverage": True, "score": "concat", "attention": "none"}, "not attention='none'"),
        (transformer.Model, {"copying": "copynet"}, "copying='copynet': use one of none, pointer"),
        (
            transformer.Model,
            {"copying": "pointer", "source_vocab_size": 12, "tie_embeddings": "none"},
            "needs one joint vocabulary",
        ),
        (transformer.Model, {"copying": "pointer", "copy_heads": 3}, "copy_heads=3 must be from 0 to num_heads=2"),
    ],
)
def test_what_cannot_be_meant_is_named(kind, fields, line):
    with pytest.raises(ValueError, match=line):
        kind(**{**TINY[kind], **fields})


@pytest.mark.parametrize("kind", TINY)
def test_features_cannot_be_copied(kind):
    model = kind(**TINY[kind], copying="pointer")
    features = Features(jnp.ones((B, S, 3)), jnp.full(B, S, jnp.int32))
    with pytest.raises(ValueError, match="a source of words, but this one consists of features"):
        model.init(jax.random.key(0), features, jnp.ones((B, T), jnp.int32))
