"""The language-modelling task on a small part of the embedded corpus: blocks, loss, perplexity and samples."""

import json

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ml_collections import ConfigDict

from nmt_jax import config as configs
from nmt_jax.data.vocabulary.vocab import EOS, PAD
from nmt_jax.decoding.sampling import Sampling
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.losses.step import Step
from nmt_jax.tasks import language_model
from nmt_jax.tasks.language_model import LanguageModel
from nmt_jax.training.run import train
from tests.conftest import ROOT
from tests.fixtures.parameters import draw_parameters

LINES = ["der alte Mann schläft .", "", "sie sieht das Haus nicht ."]


@pytest.fixture(scope="module", params=["rnn_lm", "pointer_sentinel_lm"])
def task(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("workdir")
    changes = {"data.cache": str(folder / "cache"), "vocab.algorithm": "unigram"}
    config = configs.load(f"{ROOT}/configs/{request.param}.py:smoke=true", changes)
    return LanguageModel(config, folder, sharding.make_mesh())


@pytest.fixture(scope="module")
def params(task):
    return draw_parameters(task.init)


def with_changes(task, **changes):
    """Another task of the same workdir."""
    config = ConfigDict(task.config.to_dict())
    config.update_from_flattened_dict(changes)
    return LanguageModel(config, task.workdir, task.mesh)


def by_hand(task, params, ids) -> np.ndarray:
    """Log-probability of every token of a text, given all tokens before it."""
    logits, _ = jax.jit(task.model.apply)({"params": params}, jnp.array([[EOS, *ids[:-1]]]))
    return np.take_along_axis(np.asarray(jax.nn.log_softmax(logits))[0], np.asarray(ids)[:, None], -1)[:, 0]


def test_the_loss_is_the_weighted_cross_entropy(task, params):
    batch = task.batches(1)[0]
    total, weight = jax.jit(lambda *args: task.loss_fn(*args, None))(params, batch)
    assert float(weight) == batch["weights"].sum() == batch["weights"].size
    logits, _ = jax.jit(task.model.apply)({"params": params}, batch["tokens"][:, :-1])
    log_p = np.take_along_axis(np.asarray(jax.nn.log_softmax(logits)), batch["tokens"][:, 1:, None], -1)
    assert float(total) == pytest.approx(-log_p.sum(), rel=1e-5)
    dropped, _ = jax.jit(lambda *args: task.loss_fn(*args, Step(jnp.int32(0), jax.random.key(0))))(params, batch)
    assert float(dropped) != pytest.approx(float(total), rel=1e-4)


def test_a_short_text_is_scored_with_its_whole_context(task, params):
    ids = task.encode(LINES)[:15]
    nats, tokens = task.surprise(params, ids)
    assert tokens == 15
    assert nats == pytest.approx(-by_hand(task, params, ids).sum(), rel=1e-5)


def test_each_line_has_a_log_probability_of_its_own(task, params):
    lines = [*LINES, " ".join(LINES * 4)]
    assert len(task.encode(lines[-1:])) > task.config.data.block_length  # read in windows
    expected = [-task.surprise(params, task.encode([line]))[0] for line in lines]
    np.testing.assert_allclose(task.log_probabilities(params, lines), expected, rtol=1e-5)


def test_a_text_can_be_scored_as_one_stream(task, params):
    ids = task.encode(LINES * 4)
    reading = with_changes(task, **{"data.carry_state": True})
    nats, tokens = reading.surprise(params, ids)
    assert tokens == len(ids) > 2 * task.config.data.block_length
    assert nats == pytest.approx(-by_hand(task, params, ids).sum(), rel=1e-5)


@pytest.mark.slow
def test_a_batch_continues_from_the_carry_of_the_batch_before(task, params):
    penalties = {"loss.activation_penalty": 0.5, "loss.temporal_penalty": 3.0}
    reading = with_changes(task, **{"data.carry_state": True, "train.batch_tokens": 128, **penalties})
    reading.model = task.model.clone(dropout=0.0)
    batches = reading.batches(3)
    loss = jax.jit(lambda batch, carry: reading.loss_fn(params, batch, Step(jnp.int32(0), jax.random.key(0), carry)))
    carry = jax.jit(reading.init_carry, static_argnums=0)(batches.shapes[0][0])
    total = 0.0
    for n in range(3):
        found, weight, carry = loss(batches[n], carry)
        assert weight == batches[n]["weights"].sum()
        total += float(found)
    tokens = np.concatenate([batches[n]["tokens"][:, 1:] for n in range(3)], axis=1)
    inputs = np.concatenate([batches[0]["tokens"][:, :1], tokens[:, :-1]], axis=1)
    logits, out = jax.jit(task.model.apply)({"params": params}, inputs)
    expected = -np.take_along_axis(np.asarray(jax.nn.log_softmax(logits)), tokens[..., None], -1).sum()
    outputs = np.asarray(out["outputs"])
    expected += 0.5 * np.square(outputs).mean(-1).sum()
    changes = np.square(np.diff(outputs, axis=1)).mean(-1)
    changes[:, batches.shapes[0][1] - 1 :: batches.shapes[0][1]] = 0  # between two blocks
    expected += 3.0 * changes.sum()
    assert total == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
def test_a_resumed_training_continues_from_its_carry(tmp_path):
    settings = {"optimizer.schedule": "constant", "train.log_every": "1", "train.checkpoint_every": "3"}
    page = f"{ROOT}/configs/awd_lstm.py:smoke=true"
    train(page, tmp_path / "whole", {**settings, "train.steps": "5"})
    for steps in ("3", "5"):
        train(page, tmp_path / "cut", {**settings, "train.steps": steps})

    def losses(folder):
        rows = map(json.loads, (tmp_path / folder / "metrics.jsonl").read_text().splitlines())
        return [row["loss"] for row in rows if "loss" in row]

    assert losses("cut") == losses("whole")
    assert len(losses("whole")) == 5


@pytest.mark.slow
def test_perplexity_does_not_depend_on_the_batch_size(task, params):
    measures = task.evaluate(params)
    assert measures["dev/perplexity"] == pytest.approx(np.exp(measures["dev/loss"]))
    again = with_changes(task, **{"eval.batch_tokens": 48}).evaluate(params)
    assert measures["dev/loss"] == pytest.approx(again["dev/loss"], rel=1e-6)
    nearer = with_changes(task, **{"eval.context": 0}).evaluate(params)
    assert measures["dev/loss"] != pytest.approx(nearer["dev/loss"], rel=1e-7)


def test_a_uniform_model_has_the_perplexity_of_the_vocabulary(task, params):
    nothing = jax.tree.map(jnp.zeros_like, params)
    if "pointer" in nothing:  # a sentinel that is sure
        nothing["pointer"]["query"]["bias"] += 1.0
        nothing["pointer"]["sentinel"] += 10.0
    assert task.evaluate(nothing)["dev/perplexity"] == pytest.approx(len(task.vocab), rel=1e-3)


@pytest.mark.slow
def test_a_sample_depends_on_prompt_and_key_only(task, params):
    prompts = ["der alte Mann", "", "sie"]
    keys = jax.random.split(jax.random.key(5), 3)
    together = task.sample(params, prompts, keys, Sampling(), length=12)
    assert together[0].startswith("der alte Mann")
    assert together == task.sample(params, prompts, keys, Sampling(), length=12)
    backwards = task.sample(params, prompts[::-1], keys[::-1], Sampling(), length=12)[::-1]
    assert together == backwards
    assert [
        task.sample(params, [p], k[None], Sampling(), length=12)[0] for p, k in zip(prompts, keys, strict=True)
    ] == together
    many = task.sample(params, [""] * 40, jax.random.split(jax.random.key(4), 40), Sampling(), length=12)
    assert len(set(many)) > 10


@pytest.mark.slow
def test_a_text_with_more_pieces_than_are_read_at_once_is_refused(task, params, monkeypatch):
    monkeypatch.setattr(language_model, "MOST_PIECES", 8)
    assert len(task.predictions(params, np.full(7, EOS, np.int32), 1)[0]) == 7
    with pytest.raises(UserError, match="the text has 8 pieces, but the model reads at most 7"):
        task.predictions(params, np.full(8, EOS, np.int32), 1)


def test_temperature_zero_takes_the_most_probable_piece(task, params):
    text = task.sample(params, ["sie"], jax.random.split(jax.random.key(0), 1), Sampling(temperature=0.0), length=5)[0]
    ids = task.encode(["sie"])[:-1].tolist()
    apply = jax.jit(task.model.apply)
    for _ in range(5):
        logits = np.asarray(apply({"params": params}, jnp.array([[EOS, *ids]]))[0])[0, -1].copy()
        logits[[0, 2]] = -np.inf
        ids.append(int(logits.argmax()))
        if ids[-1] == EOS:
            break
    assert text == task.vocab.decode(ids)


class Bigram(nn.Module):
    """A bigram model, without state."""

    vocab_size: int
    dtype: str = "float32"

    def setup(self):
        self.table = self.param("table", nn.initializers.normal(1.0), (self.vocab_size, self.vocab_size))

    def __call__(self, tokens, train=False):
        return self.table[tokens], {}

    def init_cache(self, batch_size, max_length):
        return ()

    def decode_step(self, tokens, cache):
        return self.table[tokens], cache


def test_any_left_to_right_model_can_be_trained(task):
    other = with_changes(task)
    other.model = Bigram(len(task.vocab))
    params = draw_parameters(other.init)
    ids = other.encode(LINES)
    expected = -by_hand(other, params, ids).sum()
    assert other.surprise(params, ids)[0] == pytest.approx(expected, rel=1e-5)
    assert len(other.sample(params, ["", "sie"], jax.random.split(jax.random.key(0), 2), Sampling(), length=4)) == 2


def test_the_vocabulary_is_saved_in_the_workdir(task):
    again = with_changes(task)
    assert again.vocab.fingerprint == task.vocab.fingerprint
    given = with_changes(task, **{"vocab.model": str(task.workdir / "vocab" / "text.model")})
    given.workdir = task.workdir / "other"
    assert given.vocab.fingerprint == task.vocab.fingerprint


def test_the_dummy_batch_has_the_shape_and_no_padding(task):
    batches = task.batches(1)
    for name, array in task.dummy_batch(batches.shapes[0]).items():
        assert array.shape == batches[0][name].shape
        assert array.dtype == batches[0][name].dtype
        assert (array != PAD).all()


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"data.block_length": 1}, "config.data.block_length=1 must be at least 2"),
        ({"train.batch_tokens": 15}, "config.train.batch_tokens=15 is less than config.data.block_length"),
        ({"eval.batch_tokens": 15}, "config.eval.batch_tokens=15 is less than config.data.block_length"),
        ({"eval.context": 16}, "config.eval.context=16 must be at least 0 and less than config.data.block_length=16"),
    ],
)
def test_invalid_settings_are_reported_at_the_start(task, changes, line):
    other = with_changes(task, **changes)
    with pytest.raises(UserError, match=line):
        other.batches(1)
