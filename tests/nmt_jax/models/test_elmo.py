"""ELMo: neither direction sees its target, words hang on their characters alone, the parts are those of the papers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax.data.vocabulary import word_types
from nmt_jax.models.elmo import CARRY, CharacterEncoder, Highway, Model
from nmt_jax.models.layers.recurrent import ProjectedLSTM
from tests.fixtures.parameters import draw_parameters

B, T, C = 2, 5, 8
TINY = {
    "vocab_size": 7,
    "max_characters": C,
    "d_character": 3,
    "widths": (1, 3),
    "filters": (4, 5),
    "num_highways": 2,
    "num_layers": 2,
    "d_hidden": 6,
    "d_projection": 4,
}
WORDS = ["a", "bc", "déjà", "vu", "anticipating", "the", "word", "at", "its", "end"]
CHARACTERS = word_types.spell(WORDS, C).reshape(B, T, C)


@pytest.fixture(scope="module")
def model():
    return Model(**TINY)


@pytest.fixture(scope="module")
def params(model):
    return draw_parameters(model.init, CHARACTERS, stddev=0.5)["params"]


@pytest.fixture(scope="module")
def states(model, params):
    return jax.jit(lambda characters, mask: model.apply({"params": params}, characters, mask, method="states"))


def softmax_logits(model, params, characters):
    """What each direction says of the words, float[B, T, V] twice."""
    kernel = model.apply({"params": params}, method="output_kernel")
    return [top @ kernel for top in model.apply({"params": params}, characters)]


def test_neither_direction_sees_the_word_it_predicts(model, params, monkeypatch):
    words = np.random.default_rng(0).normal(size=(1, T, 4)).astype(np.float32)
    monkeypatch.setattr(CharacterEncoder, "__call__", lambda self, characters: characters)  # gradients to word vectors

    gradients = jax.jit(jax.jacrev(lambda words: [x[0] for x in softmax_logits(model, params, words)]))(words)
    # [T of the state, T of the word]
    seen = [np.abs(np.asarray(gradient)[:, :, 0]).max(axis=(1, 3)) > 0 for gradient in gradients]
    triangle = np.tril(np.ones((T, T), bool))
    np.testing.assert_array_equal(seen[0], triangle)  # tells of t + 1, has seen up to t
    np.testing.assert_array_equal(seen[1], triangle.T)  # tells of t - 1, has seen from t on


def test_a_changed_word_moves_only_the_states_that_read_it(states):
    mask = np.ones((B, T), bool)
    base = np.asarray(states(CHARACTERS, mask))
    assert base.shape == (3, B, T, 8)
    np.testing.assert_array_equal(base[0, ..., :4], base[0, ..., 4:])  # the word itself, twice
    for t in range(T):
        other = np.array(CHARACTERS)
        other[:, t] = word_types.spell(["x", "yz"], C)
        moved = np.abs(np.asarray(states(other, mask)) - base).max(axis=1) > 0  # [L + 1, T, 2 P]
        places = np.arange(T)
        np.testing.assert_array_equal(moved[0].any(axis=-1), places == t)
        for layer in (1, 2):
            np.testing.assert_array_equal(moved[layer, :, :4].any(axis=-1), places >= t)
            np.testing.assert_array_equal(moved[layer, :, 4:].any(axis=-1), places <= t)


def test_padding_neighbours_and_room_for_characters_have_no_influence(states):
    alone = states(CHARACTERS[:1, :3], np.ones((1, 3), bool))
    mask = np.arange(T) < [[3], [T]]
    together = np.asarray(states(CHARACTERS, mask))  # behind the three words of the first row stand others, masked
    np.testing.assert_allclose(together[:, :1, :3], alone, atol=1e-6)
    wider = np.pad(CHARACTERS, ((0, 0), (0, 0), (0, 5)))
    np.testing.assert_allclose(np.asarray(states(wider, mask))[:, mask], together[:, mask], atol=1e-6)


def test_a_highway_is_a_gate_between_a_layer_and_its_input():
    x = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    layer = Highway()
    fresh = jax.jit(layer.init)(jax.random.key(0), x)
    np.testing.assert_array_equal(fresh["params"]["gate_bias"], CARRY)
    p = jax.tree.map(np.asarray, draw_parameters(layer.init, x, stddev=0.5)["params"])
    gate = 1 / (1 + np.exp(-(x @ p["gate"]["kernel"] + p["gate_bias"])))
    change = np.maximum(x @ p["change"]["kernel"] + p["change"]["bias"], 0)
    np.testing.assert_allclose(jax.jit(layer.apply)({"params": p}, x), gate * change + (1 - gate) * x, atol=1e-5)


def test_a_word_is_the_strongest_answers_of_its_filters():
    encoder = CharacterEncoder(3, (1, 3), (4, 5), 0, 6)
    characters = word_types.spell(["ab", "x"], C)
    p = jax.tree.map(np.asarray, draw_parameters(encoder.init, characters, stddev=0.5)["params"])
    expected = []
    for row in characters:
        letters = [p["table"][c] for c in row if c != word_types.NOTHING]
        answers = []
        for number, width in enumerate((1, 3)):
            filters = p[f"convolutions_{number}"]
            padded = letters + [np.zeros(3)] * (width - 1)
            windows = [np.concatenate(padded[k : k + width]) for k in range(len(letters))]
            strongest = np.max([window @ filters["kernel"] + filters["bias"] for window in windows], axis=0)
            answers.append(np.maximum(strongest, 0))
        expected.append(np.concatenate(answers) @ p["projection"]["kernel"] + p["projection"]["bias"])
    np.testing.assert_allclose(jax.jit(encoder.apply)({"params": p}, characters), expected, atol=1e-5)


def by_hand(layer, p, x, mask):
    """The LSTM with projection step by step, differentiated by JAX's own rules."""
    r, c, outputs = jnp.zeros((len(x), layer.d_projection)), jnp.zeros((len(x), layer.d_hidden)), []
    for t in range(x.shape[1]):
        gates = x[:, t] @ p["input"]["kernel"] + p["input"]["bias"][None] + r @ p["kernel"]
        i, f, o, g = jnp.split(gates, 4, axis=-1)
        new = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        keep = mask[:, t, None]
        r = jnp.where(keep, (jax.nn.sigmoid(o) * jnp.tanh(new)) @ p["projection"], r)
        c = jnp.where(keep, new, c)
        outputs.append(r)
    return jnp.stack(outputs, axis=1)


@pytest.mark.parametrize("reverse", [False, True])
def test_an_lstm_with_projection_and_its_gradient(reverse):
    rng = np.random.default_rng(0)
    layer, x = ProjectedLSTM(6, 4), rng.normal(size=(B, T, 3)).astype(np.float32)
    mask = np.array([[True] * T, [True, True, True, False, False]])
    p = draw_parameters(layer.init, x, mask, stddev=0.5)["params"]
    weight = rng.normal(size=(B, T, 4)).astype(np.float32)

    def ours(p, x):
        return jnp.sum(layer.apply({"params": p}, x, mask, reverse) * weight)

    def theirs(p, x):
        order = slice(None, None, -1 if reverse else 1)
        return jnp.sum(by_hand(layer, p, x[:, order], mask[:, order])[:, order] * weight)

    found, expected = (jax.jit(jax.value_and_grad(f, argnums=(0, 1)))(p, x) for f in (ours, theirs))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), found, expected)


def test_dropout_is_a_function_of_its_key(model, params):
    @jax.jit
    def tops(seed):
        return model.apply({"params": params}, CHARACTERS, train=True, rngs={"dropout": jax.random.key(seed)})[0]

    np.testing.assert_array_equal(tops(0), tops(0))
    assert not np.array_equal(tops(0), tops(1))


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"max_characters": 2}, "max_characters=2 must be at least 3"),
        ({"filters": (4,)}, r"widths=\(1, 3\) and filters=\(4,\) must have the same length"),
        ({"widths": (0, 1)}, r"widths=\(0, 1\)"),
        ({"num_layers": 0}, "num_layers=0 must be at least 1"),
        ({"num_highways": -1}, "num_highways=-1 must not be negative"),
    ],
)
def test_what_cannot_be_meant_is_named(fields, line):
    with pytest.raises(ValueError, match=line):
        Model(**{**TINY, **fields})
