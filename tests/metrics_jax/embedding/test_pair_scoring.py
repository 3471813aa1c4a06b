"""Pairs of texts in one program: tokens in, scores out, on all devices."""

import json
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics_jax import WMD, BERTScore, Idf, MoverScore, TemperedWMD, Vectors, YiSi1
from metrics_jax.embedding import pair_scoring, platforms
from metrics_jax.embedding.encoder import read_tokens
from metrics_jax.embedding.pair_batches import PairBatches
from metrics_jax.embedding.token_batches import Units
from nmt_jax.planning import metric_programs
from tests.conftest import ROOT, with_devices
from tests.fixtures import tiny_encoder
from tests.metrics_jax.embedding import test_bertscore, test_moverscore

ENCODER = tiny_encoder.make(max_length=12)
SLOW = pytest.mark.slow
WINDOWS = {"long": "window"}
METRICS = [
    BERTScore(ENCODER, layer=2, idf=Idf({5: 2, 100: 1}, 3), **WINDOWS),
    *(
        pytest.param(MoverScore(ENCODER, n_gram=2, remove_subwords=False, transport=one, **WINDOWS), marks=SLOW)
        for one in ("exact", "sinkhorn")
    ),
    MoverScore(ENCODER, variant="v2", transport="sinkhorn", hypothesis_idf=Idf({5: 2}, 3), **WINDOWS),
    YiSi1(ENCODER, n_gram=2, idf="references", **WINDOWS),
    TemperedWMD(ENCODER, **WINDOWS),
]
LETTERS = "abc ab c. a cab bb ca abc cc b"  # 31 tokens of 12 at most: several windows
HYPOTHESES = ["ab c", "", "cc", "abc abc ab", LETTERS, "b", "ab c", "c"]
REFERENCES = [["ab c", "b"], ["b"], ["a b c a b c", "cc", ""], [" "], [LETTERS[::-1], "a"], ["b"], ["ab"], ["cc", "c"]]

COLLECTIVES = r"all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter"

texts = st.text("ab c", max_size=30)


@pytest.fixture
def one_program(monkeypatch):
    monkeypatch.setattr(platforms, "ONE_PROGRAM", {"cpu": True, "accelerator": True})
    monkeypatch.setattr(platforms, "BATCH_TOKENS", {"cpu": (64, 32)})


@pytest.mark.slow
@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: f"{metric.name} {getattr(metric, 'transport', '')}")
def test_scores_equal_those_of_vectors_on_the_host(metric, one_program, monkeypatch):
    found = metric.statistics(HYPOTHESES, REFERENCES)
    monkeypatch.setattr(platforms, "ONE_PROGRAM", {"cpu": False})
    np.testing.assert_allclose(found, metric.statistics(HYPOTHESES, REFERENCES), atol=2e-6)


@given(
    st.lists(texts, min_size=1, max_size=6), st.data(), st.integers(1, 4), st.sampled_from([(16,), (64, 32), (128, 8)])
)
@settings(max_examples=60, deadline=None)
def test_devices_find_the_tokens_of_their_pairs(some, data, num_devices, sizes):
    number = st.integers(0, len(some) - 1)
    pairs = np.array(data.draw(st.lists(st.tuples(number, number), min_size=1, max_size=20)))
    tokens = read_tokens(ENCODER, some, "window")
    kept = tokens.ids % 3 > 0
    units = Units.of(tokens, kept, kept, Idf({5: 2}, 3)), Units.of(tokens, ~tokens.special, kept, None)
    batches, seen = PairBatches(tokens, *units, (pairs[:, 0], pairs[:, 1]), ENCODER.max_length), []
    for batch in batches(np.arange(len(pairs)), sizes, num_devices):
        seen += batch.pairs.tolist()
        sent = batch.tokens
        table = sent.ids.reshape(num_devices, -1)
        if num_devices == 1:
            assert sent.ids.any(axis=1).sum() <= len(tokens.windows)  # each window once
        for side, (unit, places) in enumerate(zip(units, (sent.left, sent.right), strict=True)):
            part = len(places.at) // num_devices
            for pair, row in zip(batch.pairs, batch.rows, strict=True):
                text, at = pairs[pair, side], places.at[row]
                expected = tokens.ids[unit.rows[unit.starts[text] :][: unit.lengths[text]]]
                np.testing.assert_array_equal(table[row // part][at[at >= 0]], expected)
                assert (places.weights[row][at < 0] == 0).all()
            others = np.setdiff1d(np.arange(len(places.at)), batch.rows)
            assert (places.at[others] == -1).all()
    assert sorted(seen) == [*range(len(pairs))]


def test_pairs_with_common_texts_are_in_one_batch():
    """Three systems and two references of each of four lines: 20 texts, 24 pairs; each text is encoded once."""
    lines = [letter * 4 for letter in "abcdefghijklmnopqrst"]
    left = np.array([4 * system + line for line in range(4) for system in range(3) for _ in range(2)])
    right = np.array([12 + 4 * number + line for line in range(4) for _ in range(3) for number in range(2)])
    order = np.random.default_rng(0).permutation(24)
    tokens = read_tokens(ENCODER, lines, "error")
    units = Units.of(tokens, tokens.ids > 0, tokens.ids > 0, None)
    batches = PairBatches(tokens, units, units, (left[order], right[order]), ENCODER.max_length)
    (batch,) = batches(np.arange(24), (256,), 1)
    assert np.count_nonzero(batch.tokens.lengths > 1) == 20
    several = [*batches(np.arange(24), (64,), 2)]
    assert sum(np.count_nonzero(batch.tokens.lengths > 1) for batch in several) <= 30  # 48 if no text were shared


def test_the_length_of_the_rows_alone_decides_the_program():
    """Texts of which a metric compares one token or all of them have one shape; lengths up to 32 have four."""
    lines = ["abcdefghijklmnopqrstuvwxyzabcdefgh"[:length] for length in range(1, 29)]
    tokens = read_tokens(tiny_encoder.make(max_length=32), lines, "error")
    numbers, shapes = np.arange(len(lines)), set()
    for kept in (tokens.ids > 0, tokens.ids == tokens.ids[1]):
        units = Units.of(tokens, kept, kept, None)
        for batch in PairBatches(tokens, units, units, (numbers, numbers), 32)(numbers, (256,), 1):
            shapes.add((batch.tokens.ids.shape[1], batch.tokens.left.at.shape[1]))
    assert shapes == {(length, length) for length in (8, 16, 24, 32)}


def test_no_new_programs_for_other_texts_of_the_same_lengths(one_program):
    metric, found = BERTScore(ENCODER, layer=3), []
    for letter in "acd":
        metric([f"{letter}b{letter}", letter], [f"{letter}{letter}b", "b"])
        found.append(pair_scoring.match_pairs._cache_size())
    assert len({*found}) == 1


def test_batches_are_halved_when_memory_runs_out(one_program, monkeypatch):
    metric, usual, rows = METRICS[0], pair_scoring.match_pairs, []
    hypotheses, references = HYPOTHESES[:4], REFERENCES[:4]
    expected = metric.statistics(hypotheses, references)

    def limited(embed, tokens, *, scoring):
        rows.append(len(tokens.ids))
        if rows[-1] > most:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 1 bytes.")
        return usual(embed, tokens, scoring=scoring)

    monkeypatch.setattr(pair_scoring, "match_pairs", limited)
    most = 2
    np.testing.assert_allclose(metric.statistics(hypotheses, references), expected, atol=1e-6)
    assert max(rows) > most
    most = 0
    with pytest.raises(MemoryError, match="not enough memory for pairs of 12 tokens"):
        metric.statistics(hypotheses, references)
    monkeypatch.setattr(pair_scoring, "match_pairs", lambda *arguments, **options: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        metric.statistics(hypotheses, references)


def test_damaged_weights_and_missing_layers_raise_errors(one_program):
    table = np.full((3 + 2 * tiny_encoder.LETTERS, tiny_encoder.D), np.nan)
    with pytest.raises(ValueError, match="NaN or infinity"):
        BERTScore(tiny_encoder.make(table=table))(["ab", "b"], ["ab", "a"])
    with pytest.raises(ValueError, match=r"layers .*to 5"):
        BERTScore(ENCODER, layer=6)(["a"], ["a"])


def shares(tree):
    """The distinct sets of (number of devices, whether they divide the rows) of arrays."""
    found = set()
    for leaf in jax.tree.leaves(tree):
        parts = leaf.addressable_shards
        found.add((len({part.device for part in parts}), len(parts) * len(parts[0].data) == len(leaf)))
    return sorted(found)


def transfers(metric, hypotheses, references):
    """Statistics of the pairs, and the transfers in order, each with its direction and the shares of its arrays.

    Transfers that are not explicit raise errors.
    """
    calls, put, fetch = [], jax.device_put, jax.device_get

    def recorded_put(tree, where):
        placed = put(tree, where)
        calls.append(("in", shares(placed)))
        return placed

    def recorded_fetch(tree):
        calls.append(("out", shares(tree)))
        return fetch(tree)

    with pytest.MonkeyPatch.context() as patch, jax.transfer_guard("disallow"):
        with pytest.raises(Exception, match="Disallowed"):
            jax.jit(jnp.negative)(np.ones(3))
        patch.setattr(jax, "device_put", recorded_put)
        patch.setattr(jax, "device_get", recorded_fetch)
        return metric.statistics(hypotheses, references), calls


def compiled(metric, num_devices):
    """The program of a batch with 16 rows and 8 pairs for each device."""
    mesh = jax.make_mesh((num_devices,), ("data",), (jax.sharding.AxisType.Auto,), devices=jax.devices()[:num_devices])
    program = metric_programs.scoring(metric, mesh, (16 * num_devices, 8)).trace().lower().compile()
    return {"flops": program.cost_analysis()["flops"], "collectives": re.findall(COLLECTIVES, program.as_text())}


def report():
    """What the test of eight devices looks at, as JSON."""
    platforms.BATCH_TOKENS["cpu"] = (128,)
    generator, found = np.random.default_rng(0), []
    lines = ["".join(generator.choice([*"abc "], size=size)) for size in generator.integers(2, 30, size=2 * 120)]
    words = Vectors(tuple("abc"), generator.normal(size=(3, 4)))
    metrics = [
        BERTScore(tiny_encoder.make(), layer=3),
        MoverScore(tiny_encoder.make(), transport="sinkhorn", remove_subwords=False),
        WMD(words, transport="sinkhorn", missing=0.0),
    ]
    for metric in metrics:
        for one_program in (True, False):
            platforms.ONE_PROGRAM["cpu"] = one_program
            statistics, calls = transfers(metric, lines[:120], lines[120:])
            found.append({"one_program": one_program, "statistics": statistics.tolist(), "calls": calls})
            if not isinstance(metric, WMD):
                found[-1]["programs"] = [compiled(metric, count) for count in (1, jax.device_count())]
    return json.dumps([jax.device_count(), found])


@SLOW
def test_eight_devices_share_encoding_matching_and_transport():
    """In one program per batch: one transfer in and one out, and no device waits for or repeats work of another."""
    script = "from tests.metrics_jax.embedding import test_pair_scoring as test; print(test.report())"
    reports = []
    for count in (1, 8):
        command = [sys.executable, "-c", script]
        finished = subprocess.run(
            command, env=with_devices(count), cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert finished.returncode == 0, finished.stderr
        reports.append(json.loads(finished.stdout))
    (_, alone), (num_devices, together) = reports
    assert num_devices == 8
    for one, found in zip(alone, together, strict=True):
        np.testing.assert_allclose(found["statistics"], one["statistics"], atol=1e-6)
        if "programs" in found:
            same_rows, of_each = found["programs"]
            assert of_each["flops"] < 1.5 * same_rows["flops"]
            assert same_rows["collectives"] == of_each["collectives"] == []
        batches = [call for call in found["calls"] if call != ["in", [[8, False]]]]
        assert len(found["calls"]) - len(batches) <= 1  # weights, or word vectors
        fetched = [shares for direction, shares in batches if direction == "out"]
        assert fetched == len(fetched) * [[[8, True]]]  # every device has a part of the rows of all results
        if found["one_program"]:
            assert fetched
            assert [shares for direction, shares in batches if direction == "in"] == fetched  # one in and one out each


@SLOW
@pytest.mark.filterwarnings("ignore:.*only tokens of idf weight 0")
def test_golden_values(shared, one_program):
    test_bertscore.test_equals_bert_score_end_to_end(shared)
    test_moverscore.test_equals_the_published_programs_end_to_end(shared)
