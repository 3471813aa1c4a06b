"""Encoding: vectors of a text are independent of other texts, batches, order and devices."""

import contextlib
import dataclasses
import io
import json
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics_jax.embedding import encoder as encoder_module
from metrics_jax.embedding import platforms
from metrics_jax.embedding.encoder import Encoder, encode
from metrics_jax.embedding.forward import Forward
from metrics_jax.embedding.lengths import bucket
from tests.conftest import ROOT, with_devices

V, D, LAYERS = 60, 6, 3
TRACES = []  # one shape per compilation of `embed`


def tokenize(texts):
    """One token per letter, between two special tokens."""
    rows = [[1, *(3 + ord(letter) % (V - 3) for letter in text), 2] for text in texts]
    mask = np.arange(max(map(len, rows)))[None] < np.array([[len(row)] for row in rows])
    ids, special = np.zeros(mask.shape, int), np.zeros(mask.shape, bool)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = row
        special[number, [0, len(row) - 1]] = True
    return ids, mask, special


def embed(table, ids, mask):
    """Hidden states; state n depends on n tokens to either side."""
    TRACES.append(ids.shape)
    x = jnp.where(mask[..., None], table[ids], 0.0)
    states = [x]
    for _ in range(LAYERS - 1):
        left, right = jnp.roll(x, 1, axis=1).at[:, 0].set(0.0), jnp.roll(x, -1, axis=1).at[:, -1].set(0.0)
        x = jnp.where(mask[..., None], jnp.tanh(x + 0.5 * left - 0.25 * right), 0.0)
        states.append(x)
    return jnp.stack(states)


compiled = jax.jit(embed)


def make(max_length=1000, seed=0, function=compiled, cache=None) -> Encoder:
    table = np.random.default_rng(seed).normal(size=(V, D)).astype(np.float32)
    partial = jax.tree_util.Partial(function, jnp.asarray(table))
    return Encoder(tokenize, partial, lambda ids: [str(one) for one in ids], max_length, f"{seed:064}", cache=cache)


TEXTS = ["the old man", "", "a", "the old man sleeps in the garden", "nobody knows", "the old man", "x" * 14]


def assert_same(one, other, atol=1e-6):
    np.testing.assert_array_equal(one.lengths, other.lengths)
    for text in range(len(one)):
        for left, right in zip(one[text], other[text], strict=True):
            np.testing.assert_allclose(left, right, atol=atol, rtol=0)


def test_vectors_of_a_text_equal_those_of_the_text_alone():
    encoder = make()
    together = encode(encoder, TEXTS, (1,), normalize=False)
    for number, text in enumerate(TEXTS):
        ids, mask, special = tokenize([text])
        vectors, found, marks = together[number]
        np.testing.assert_allclose(vectors, encoder.embed(ids, mask)[1][0], atol=1e-6)
        np.testing.assert_array_equal(found, ids[0])
        np.testing.assert_array_equal(marks, special[0])


@given(st.permutations(range(len(TEXTS))), st.integers(1, len(TEXTS)))
@settings(max_examples=10, deadline=None)
def test_vectors_are_bit_identical_whatever_the_other_texts_and_their_order(order, count):
    encoder, kept = make(), order[:count]
    some, everything = encode(encoder, [TEXTS[number] for number in kept], (2,)), encode(encoder, TEXTS, (2,))
    for place, number in enumerate(kept):
        np.testing.assert_array_equal(some[place][0], everything[number][0])


def test_all_batches_of_a_length_have_the_shape_of_least_work(monkeypatch):
    shapes, start = [], Forward._start
    monkeypatch.setattr(
        Forward, "_start", lambda self, rows, batch: (shapes.append(batch), start(self, rows, batch))[1]
    )
    monkeypatch.setattr(platforms, "BATCH_TOKENS", {"cpu": (64, 24), "accelerator": (64, 24)})
    texts = [chr(ord("a") + number % 26) * 5 + chr(ord("a") + number // 26) for number in range(64)]  # 8 tokens each
    # Of 8 or of 3 rows, with an overhead of 2 tokens a batch: 3 * 66 and 7 * 26 tokens; 8 * 66 and 22 * 26 tokens.
    for count, expected in ((21, [(3, 3)] * 7), (64, [(8, 8)] * 8), (7, [(7, 8)])):
        del shapes[:]
        found = encode(make(), texts[:count])
        assert [(len(one.numbers), one.height) for one in shapes] == expected
        assert_same(found, encode(make(), texts[:count], batch_tokens=24), atol=0)


def test_vectors_are_independent_of_the_batch_size():
    assert_same(encode(make(), TEXTS, (2,), batch_tokens=24), encode(make(), TEXTS, (2,)))


def test_equal_texts_are_encoded_once():
    encoded = encode(make(), ["abc", "de", "abc"])
    assert len(encoded) == 3
    assert len(encoded.vectors) == 9
    assert encoded.starts.tolist() == [0, 5, 0]


def test_few_shapes_are_compiled_and_weights_are_not_compiled_in():
    texts = ["y" * length for length in range(1, 31)]  # 3 to 32 tokens
    new = jax.jit(lambda *arguments: embed(*arguments))
    del TRACES[:]
    encode(make(function=new), texts, batch_tokens=64)
    shapes = [
        (1, 8),
        (2, 24),
        (2, 28),
        (2, 32),
        (3, 20),
        (4, 16),
        (5, 12),
        (8, 8),
    ]  # (1, 8) to find the number of layers
    assert sorted(set(TRACES)) == shapes
    del TRACES[:]
    encode(make(seed=1, function=new), texts[::-1], batch_tokens=64)
    assert not TRACES  # other weights, the same programs


@given(st.integers(1, 5000))
def test_buckets(length):
    assert length <= bucket(length) <= max(8, 4 / 3 * length)
    assert bucket(length, max_length=5000) == min(bucket(length), 5000)
    assert bucket(length, steps=8) <= bucket(length) <= bucket(length, steps=2) <= max(8, 2 * length)


def test_steps_of_buckets():
    assert sorted({bucket(length, steps=2) for length in range(1, 129)}) == [8, 16, 24, 32, 48, 64, 96, 128]
    twice = [*range(8, 32, 2), *range(32, 64, 4), *range(64, 129, 8)]
    assert sorted({bucket(length, steps=8) for length in range(1, 129)}) == twice


def test_a_generator_computes_only_the_needed_layers():
    asked = []

    def states(ids, mask):
        for number, state in enumerate(make().embed(ids, mask)):
            if not isinstance(ids, jax.core.Tracer):  # abstract evaluation
                asked.append(number)
            yield state

    one_by_one = dataclasses.replace(make(), embed=states)
    assert_same(encode(one_by_one, ["some text"], (1, 0)), encode(make(), ["some text"], (1, 0)), atol=0)
    assert asked == [0, 1]


def test_combinations_of_layers():
    encoder = make()
    ids, mask, _ = tokenize(["some text"])
    states = np.asarray(encoder.embed(ids, mask), np.float64)[:, 0]
    unit = states / np.linalg.norm(states, axis=-1, keepdims=True)

    def of(*layers, **options):
        return encode(encoder, ["some text"], layers, **options).vectors

    np.testing.assert_allclose(of(-1), unit[2], atol=1e-6)
    np.testing.assert_allclose(of(2, normalize=False), states[2], atol=1e-6)
    np.testing.assert_allclose(of(0, 2), np.concatenate([unit[0], unit[2]], axis=-1), atol=1e-6)
    np.testing.assert_allclose(of(1, 2, combine="mean"), unit[1:].mean(axis=0), atol=1e-6)
    powers = np.concatenate([unit.min(axis=0), unit.mean(axis=0), unit.max(axis=0)], axis=-1)
    np.testing.assert_allclose(of(-3, -2, -1, combine="power_means"), powers, atol=1e-6)


def test_zero_vectors_stay_zero():
    encoder = dataclasses.replace(make(), embed=lambda ids, mask: jnp.zeros((1, *ids.shape, D)))
    assert (encode(encoder, ["ab"]).vectors == 0).all()  # no NaN


def test_windows_equal_the_whole_text_if_context_suffices():
    text = "".join(chr(97 + place * place % 26) for place in range(90))
    whole = encode(make(), [text, "short"], (2,))
    parts = encode(make(max_length=12), [text, "short"], (2,), long="window")  # a state sees two tokens on each side
    assert_same(whole, parts, atol=1e-6)
    assert parts.long.tolist() == [True, False]
    assert not whole.long.any()


@given(st.integers(0, 60), st.integers(3, 20), st.integers(0, 1), st.integers(0, 1))
def test_windows_cover_every_token_once(length, max_length, before, after):
    ids = np.arange(1, length + before + after + 1, dtype=np.int32)
    special = np.zeros(len(ids), bool)
    special[:before] = True
    special[len(ids) - after :] = True
    table = np.zeros((len(ids), 1), np.float32)
    for window in encoder_module._windows(ids, special, 0, max_length):
        assert len(window.ids) == min(max_length, len(ids))
        assert window.ids[:before].tolist() == ids[:before].tolist()
        window.write(window.ids[:, None].astype(np.float32), table)
        if len(ids) > max_length:  # at least a quarter of a window is context on either side, except at the ends
            inner = np.arange(window.start, window.start + window.count)
            inner = inner[(ids[window.target] > 1 + before) & (inner < max_length - after)]
            assert window.target == 0 or (inner >= before + (max_length - before - after) // 4).all()
    assert table[:, 0].tolist() == ids.tolist()


def test_truncation_keeps_the_special_tokens():
    encoded = encode(make(max_length=6), ["abcdefgh", "abcdXXX", "ab"], long="truncate")
    assert encoded.lengths.tolist() == [6, 6, 4]
    assert encoded.long.tolist() == [True, True, False]
    assert_same(encode(make(), ["abcd", "abcd", "ab"]), encoded)
    assert encoded.starts[0] == encoded.starts[1]


def test_a_text_that_is_too_long_raises_an_error():
    with pytest.raises(
        ValueError, match=r'text 1 has 8 tokens, but the encoder reads at most 6: choose long="truncate" or'
    ):
        encode(make(max_length=6), ["ab", "abcdef"])
    with pytest.raises(ValueError, match="no room for text beside 2 special tokens"):
        encode(make(max_length=2), ["ab", "abcdef"], long="window")


def test_invalid_options_and_texts_raise_errors():
    for options, words in (
        ({"long": "cut"}, "long='cut' is none of error, truncate, window"),
        ({"combine": "sum"}, "combine='sum' is none of"),
        ({"layers": (3,)}, r"layers \(3,\): the encoder has layers 0 \(embeddings\) to 2"),
        ({"layers": ()}, r"layers \(\)"),
    ):
        with pytest.raises(ValueError, match=words):
            encode(make(), ["a"], **options)
    for texts in ("a text", ["a", None]):
        with pytest.raises(TypeError, match="sequence of strings"):
            encode(make(), texts)


def test_nothing_to_encode():
    encoded = encode(make(), [], (0, 1))
    assert (len(encoded), encoded.vectors.shape) == (0, (0, 2 * D))
    no_tokens = dataclasses.replace(make(), tokenize=lambda texts: (np.zeros((len(texts), 0), int),) * 3)
    assert encode(no_tokens, ["", ""]).lengths.tolist() == [0, 0]


def limited(monkeypatch, most, started):
    """Simulates devices with memory for `most` rows."""
    start = Forward._start

    def with_limit(self, rows, batch):
        started.append(len(batch.numbers))
        if len(batch.numbers) > most:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 1 bytes.")
        return start(self, rows, batch)

    monkeypatch.setattr(Forward, "_start", with_limit)


def test_batches_are_halved_when_memory_runs_out(monkeypatch):
    texts = [f"text {number:02}" for number in range(40)]
    expected, started = encode(make(), texts), []
    limited(monkeypatch, 5, started)
    assert_same(encode(make(), texts, batch_tokens=12 * 32), expected, atol=1e-6)
    assert started[:4] == [32, 16, 8, 4]
    assert sum(count for count in started if count <= 5) == 40


class Lost:
    """An array whose computation ran out of memory, which shows only when it is fetched."""

    def __array__(self, dtype=None, copy=None):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 1 bytes.")


@pytest.mark.parametrize("when", ["started", "fetched"])
def test_running_batches_are_repeated_after_running_out_of_memory(monkeypatch, when):
    texts = [f"text {number:02}" for number in range(40)]
    expected, start, calls = encode(make(), texts), Forward._start, []

    def second_fails(self, rows, batch):
        calls.append(len(batch.numbers))
        if len(calls) != 2:
            return start(self, rows, batch)
        return Lost() if when == "fetched" else Lost().__array__()

    monkeypatch.setattr(Forward, "_start", second_fails)
    assert_same(encode(make(), texts, batch_tokens=96), expected)
    assert calls[:2] == [8, 8]
    assert calls[-1] == 4


def test_too_little_memory_for_one_row_raises_an_error(monkeypatch):
    limited(monkeypatch, 0, [])
    with pytest.raises(MemoryError, match="not enough memory for one row of 9 tokens"):
        encode(make(), ["longest", "short"])


def test_other_errors_are_not_treated_as_out_of_memory(monkeypatch):
    monkeypatch.setattr(Forward, "_start", lambda *arguments: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        encode(make(), ["a"])


def test_cached_vectors_are_not_computed_again(tmp_path, monkeypatch):
    expected, started = encode(make(max_length=20), TEXTS, (1, 2), long="window"), []
    limited(monkeypatch, 1000, started)
    for cached in (False, True):
        encoded = encode(make(max_length=20, cache=tmp_path), TEXTS, (1, 2), long="window")
        assert_same(encoded, expected, atol=0)
        assert bool(started) != cached
        del started[:]
    encode(make(max_length=20, cache=tmp_path), ["a new one", *TEXTS], (1, 2), long="window")
    assert started == [1]
    for options in ({"layers": (1,)}, {"combine": "mean"}, {"normalize": False}):  # none of these is in the cache
        del started[:]
        encode(make(cache=tmp_path), ["a"], **{"layers": (1, 2), **options})
        assert started == [1]
    del started[:]
    encode(make(seed=1, cache=tmp_path), ["a"], (1, 2))
    assert started == [1]


@pytest.mark.parametrize("file", ["keys", "ends", "vectors"])
def test_a_damaged_shard_is_skipped(tmp_path, file):
    expected = encode(make(cache=tmp_path), TEXTS)
    (path,) = tmp_path.glob(f"*/shard-*/{file}.npy")
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.warns(UserWarning, match="damaged, not used"):
        assert_same(encode(make(cache=tmp_path), TEXTS), expected)


def test_a_cache_that_cannot_be_created_raises_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="file: cannot create the cache folder"):
        encode(make(cache=tmp_path / "file"), TEXTS)


def test_a_numpy_callback_can_be_an_encoder():
    table = np.random.default_rng(0).normal(size=(V, D)).astype(np.float32)

    def embed(ids, mask):
        shape = jax.ShapeDtypeStruct((1, *ids.shape, D), np.float32)
        return jax.pure_callback(lambda ids: table[np.asarray(ids)][None], shape, ids)

    function = dataclasses.replace(make(), embed=embed)
    (vectors, ids, _) = encode(function, ["the old man"], normalize=False)[0]
    np.testing.assert_array_equal(vectors, table[ids])


def test_a_cache_is_not_unpickled(tmp_path):
    encode(make(cache=tmp_path), TEXTS)
    (path,) = tmp_path.glob("*/shard-*/keys.npy")
    np.save(path, np.array([{}], object), allow_pickle=True)
    with pytest.warns(UserWarning, match="allow_pickle=False"):
        encode(make(cache=tmp_path), TEXTS)


def test_an_interrupted_run_keeps_its_vectors(tmp_path, monkeypatch):
    texts, started = [f"text {number}" for number in range(8)], []
    limited(monkeypatch, 1000, started)
    whole = Forward._start

    def interrupted(self, rows, batch):
        if len(started) == 3:
            raise KeyboardInterrupt
        return whole(self, rows, batch)

    monkeypatch.setattr(Forward, "_start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        encode(make(cache=tmp_path), texts, batch_tokens=16)
    del started[:]
    monkeypatch.setattr(Forward, "_start", whole)
    encode(make(cache=tmp_path), texts, batch_tokens=16)
    assert sum(started) == 4  # two of four batches were stored; the third was still on the device


def test_progress_is_shown_on_a_terminal_only(capsys, monkeypatch):
    encode(make(), TEXTS)
    assert capsys.readouterr() == ("", "")

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    with contextlib.redirect_stderr(terminal):
        encode(make(), TEXTS)
    assert "encoding" in terminal.getvalue()


SCRIPT = """
import json, jax
from tests.metrics_jax.embedding import test_encoder
print(json.dumps([jax.device_count(), test_encoder.many().vectors.tolist()]))
"""


def many():
    """Vectors of batches that do not fill all devices, and of a text in windows."""
    texts = [f"text {number:02}" for number in range(11)]
    return encode(make(max_length=20), [*texts, "a longer text than it takes"], long="window", batch_tokens=24)


def test_eight_devices_give_the_vectors_of_one():
    command = [sys.executable, "-c", SCRIPT]
    finished = subprocess.run(command, env=with_devices(8), cwd=ROOT, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    devices, vectors = json.loads(finished.stdout)
    assert devices == 8
    np.testing.assert_allclose(vectors, many().vectors, atol=1e-6)


def test_import_loads_no_large_libraries():
    code = "import sys, metrics_jax.embedding.encoder; "
    code += "print({'jax', 'flax', 'torch', 'tokenizers', 'rich'} & sys.modules.keys())"
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert finished.stdout == "set()\n"
