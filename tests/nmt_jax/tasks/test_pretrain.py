"""The pretraining task on a small part of the embedded corpus: loss, measures and resumed runs."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ml_collections import ConfigDict
from scipy.special import log_softmax

from nmt_jax import config as configs
from nmt_jax.checkpoints.train_state import new_state
from nmt_jax.data import grammar
from nmt_jax.data.batching.segment_pairs import NEXT, RANDOM
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.losses.step import Step
from nmt_jax.pretrained.tokenizer import Tokenizer
from nmt_jax.tasks.pretrain import Pretrain
from nmt_jax.training.optimizers import make_optimizer, make_schedule
from nmt_jax.training.run import train
from nmt_jax.training.train_step import make_train_step
from tests.conftest import ROOT
from tests.fixtures import toy

PAGE = f"{ROOT}/configs/bert_tiny.py:smoke=true"


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workdir")
    plain = {"model.dtype": "float32", "model.dropout": "0.1", "corrupt.share": "0.15", "initialization": "normal"}
    config = configs.load(PAGE, {"data.cache": str(folder / "cache"), **plain})
    return Pretrain(config, folder, sharding.make_mesh())


@pytest.fixture(scope="module")
def params(task):
    """Parameters with noise, for predictions that are far from uniform."""
    random = np.random.default_rng(0)
    noisy = jax.tree.map(
        lambda leaf: np.asarray(leaf) + random.normal(scale=0.2, size=leaf.shape).astype(np.float32),
        jax.jit(task.init)(jax.random.key(0)),
    )
    return jax.device_put(noisy)


def with_changes(task, **changes):
    """Another task of the same workdir."""
    config = ConfigDict(task.config.to_dict())
    config.update_from_flattened_dict(changes)
    return Pretrain(config, task.workdir, task.mesh)


@pytest.mark.slow
def test_normal_and_mimetic_initialization(task):
    mimetic, normal = with_changes(task, initialization="mimetic"), with_changes(task, initialization="normal")
    layers = [jax.jit(one.init)(jax.random.key(0))["encoder"]["layers_0"] for one in (mimetic, normal)]
    same = [np.array_equal(layer["query"]["kernel"], layer["key"]["kernel"]) for layer in layers]
    assert same == [True, False]
    with pytest.raises(UserError, match=r"config\.initialization='warm': use one of normal, mimetic"):
        with_changes(task, initialization="warm").batches(1)


def test_the_loss_adds_masked_tokens_and_next_sentences(task, params):
    batch = task.batches(1)[0]
    total, weight = jax.jit(lambda *args: task.loss_fn(*args, None))(params, batch)
    assert float(weight) == batch["weights"].sum() > 0
    logits, out = jax.jit(task.model.apply)(
        {"params": params}, batch["ids"], batch["ids"] != 0, batch["segments"], batch["positions"]
    )
    log_p = np.take_along_axis(log_softmax(logits, axis=-1), batch["labels"][..., None], -1)[..., 0]
    pairs = batch["next_sentence"]
    pair_log_p = log_softmax(out["next_sentence"], axis=-1)[np.arange(len(pairs)), np.maximum(pairs, 0)]
    expected = -(log_p * batch["weights"]).sum() - batch["labels"].shape[1] * pair_log_p[pairs >= 0].sum()
    assert float(total) == pytest.approx(expected, rel=1e-5)
    dropped, _ = jax.jit(lambda *args: task.loss_fn(*args, Step(jnp.int32(0), jax.random.key(0))))(params, batch)
    assert float(dropped) != pytest.approx(float(total), rel=1e-4)


def test_micro_batches_have_the_loss_of_the_whole_batch(task, params):
    batch = task.batches(1)[0]
    loss = jax.jit(lambda batch: task.loss_fn(params, batch, None))
    whole = loss(batch)
    parts = [loss({name: array[half::2] for name, array in batch.items()}) for half in (0, 1)]
    np.testing.assert_allclose(np.sum(parts, axis=0), whole, rtol=1e-5)


def test_only_predicted_tokens_contribute_to_the_loss(task, params):
    """Labels without weight do not change the loss, and other positions have no gradient."""
    batch = task.batches(1)[0]
    batch["weights"] = batch["weights"] * (np.arange(batch["weights"].shape[1]) % 2)  # not all that are predicted count
    loss = jax.jit(lambda batch: task.loss_fn(params, batch, None)[0])
    other = {**batch, "labels": np.where(batch["weights"] > 0, batch["labels"], 7)}
    assert (other["labels"] != batch["labels"]).any()
    assert float(loss(other)) == float(loss(batch))

    def with_added(change):
        """The loss if `change` is added to the last states of the encoder."""

        def add(function, arguments, options, context):
            found = function(*arguments, **options)
            if context.method_name != "states":
                return found
            states, out = found
            return [*states[:-1], states[-1] + change], out

        with nn.intercept_methods(add):
            return task.loss_fn(params, batch, None)[0]

    asked = np.zeros(batch["ids"].shape, bool)
    gradient = np.asarray(jax.jit(jax.grad(with_added))(np.zeros((*asked.shape, task.model.d_model), np.float32)))
    for row, positions, weights in zip(asked, batch["positions"], batch["weights"], strict=True):
        row[positions[weights > 0]] = True
    assert (gradient[~asked] == 0).all()
    assert (gradient[asked] != 0).any(axis=-1).all()


@pytest.mark.slow
def test_measures_cover_every_development_example(task, params):
    measures = task.evaluate(params)
    right = asked = nats = pairs = pair_right = 0
    for number in range(len(task.dev_batches)):
        batch = task.dev_batches[number]
        logits, out = jax.jit(task.model.apply)(
            {"params": params}, batch["ids"], batch["ids"] != 0, batch["segments"], batch["positions"]
        )
        weights = batch["weights"]
        log_p = np.take_along_axis(log_softmax(logits, axis=-1), batch["labels"][..., None], -1)[..., 0]
        nats -= (log_p * weights).sum()
        right += ((np.argmax(logits, -1) == batch["labels"]) * weights).sum()
        asked += weights.sum()
        pairs += (batch["next_sentence"] >= 0).sum()
        pair_right += (np.argmax(out["next_sentence"], -1) == batch["next_sentence"]).sum()
        assert (batch["ids"][np.arange(len(weights))[:, None], batch["positions"]][weights > 0] == 4).all()  # [MASK]
    assert measures["dev/mlm_loss"] == pytest.approx(nats / asked, rel=1e-5)
    assert measures["dev/perplexity"] == pytest.approx(np.exp(nats / asked), rel=1e-4)
    assert measures["dev/mlm_accuracy"] == pytest.approx(100 * right / asked)
    assert measures["dev/nsp_accuracy"] == pytest.approx(100 * pair_right / pairs)
    assert {name.removeprefix("dev/") for name in measures} == set(task.measures)


@pytest.mark.slow
def test_measures_do_not_depend_on_masking_seed_or_batch_size(task, params):
    measures = task.evaluate(params)
    for changes in (
        {"corrupt.mask": 0.0, "corrupt.random": 1.0, "corrupt.share": 0.5, "corrupt.whole_words": True},
        {"seed": 5},
        {"eval.batch_tokens": 512},
    ):
        for name, value in with_changes(task, **changes).evaluate(params).items():
            assert value == pytest.approx(measures[name], rel=1e-5), (name, changes)


def test_a_uniform_model(task, params):
    measures = task.evaluate(jax.tree.map(np.zeros_like, params))
    assert measures["dev/perplexity"] == pytest.approx(len(task.tokenizer), rel=1e-4)
    assert measures["dev/loss"] - measures["dev/mlm_loss"] == pytest.approx(np.log(2), rel=1e-5)
    assert 40 < measures["dev/nsp_accuracy"] < 60


def test_a_causal_model_predicts_every_next_token(task, params):
    other = with_changes(task, **{"model.causal": True, "model.next_sentence": False})
    few = {name: value for name, value in params.items() if name != "next_sentence_dense"}
    few["encoder"] = {name: value for name, value in params["encoder"].items() if name != "pooler_dense"}
    batch = other.batches(1)[0]
    assert batch["labels"].shape[1] == task.config.data.max_length - 1
    asked = batch["weights"] > 0
    rows = np.arange(len(asked))[:, None]
    assert (batch["ids"][rows, batch["positions"] + 1][asked] == batch["labels"][asked]).all()
    measures = other.evaluate(few)
    assert measures["dev/loss"] == measures["dev/mlm_loss"]
    assert "dev/nsp_accuracy" not in measures
    assert jax.tree.structure(few) == jax.tree.structure(jax.eval_shape(other.init, jax.random.key(0)))


def test_the_dummy_batch_has_the_shape_and_no_padding(task):
    batches = task.batches(1)
    dummy = task.dummy_batch(batches.shapes[0])
    assert {name: (a.shape, a.dtype) for name, a in dummy.items()} == {
        name: (a.shape, a.dtype) for name, a in batches[0].items()
    }
    assert dummy["weights"].all()
    assert dummy["ids"].all()
    assert set(batches[0]["next_sentence"]) <= {-1, NEXT, RANDOM}


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"data.max_length": 65}, "config.data.max_length=65 exceeds config.model.max_positions=64"),
        ({"corrupt.share": 0.0}, "config.corrupt: share=0.0 must be more than 0"),
        ({"corrupt.random": 0.5}, "config.corrupt: mask=0.8 and random=0.5 must be"),
        ({"model.causal": True}, "config.model: causal=True needs next_sentence=False"),
    ],
)
def test_invalid_settings_are_reported_at_the_start(task, changes, line):
    with pytest.raises(UserError, match=line):
        with_changes(task, **changes).batches(1)


def test_a_tokenizer_of_another_kind_is_an_error(task, tmp_path):
    (tmp_path / "vocab.txt").write_text("a\n[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n")
    for content, line in (
        ("a\n[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n", r"\[PAD\] has the id 1; in BERT it is 0"),
        ("[PAD]\n[UNK]\n[CLS]\n[SEP]\n", r"not a tokenizer of BERT: it lacks \[MASK\]"),
    ):
        (tmp_path / "vocab.txt").write_text(content)
        other = with_changes(task, **{"vocab.model": str(tmp_path)})
        other.workdir = tmp_path / content[:1]
        with pytest.raises(UserError, match=line):
            _ = other.tokenizer


@pytest.mark.slow
def test_another_vocabulary_than_that_of_the_weights_is_an_error(tmp_path):
    changes = {"data.cache": str(tmp_path / "cache"), "model.num_layers": "1", "data.size": "400"}
    train(PAGE, tmp_path / "w", changes)
    with pytest.raises(UserError, match=r"vocab\.size was 400, now 500"):
        train(PAGE, tmp_path / "w", {**changes, "vocab.size": "500"})
    larger = Tokenizer.train((german for german, _ in grammar.pairs("train", 400)), size=500)
    larger.save(tmp_path / "w" / "vocab", 32)
    with pytest.raises(UserError, match=r"tokenizer\.json: is not the vocabulary that the checkpoints were"):
        train(PAGE, tmp_path / "w", {**changes, "train.steps": "2"})


@pytest.mark.slow
def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path):
    changes = {"data.cache": str(tmp_path / "cache"), "train.steps": "6", "train.batch_tokens": "4096"}
    changes |= {"train.eval_every": "3", "train.checkpoint_every": "3", "data.size": "200"}  # an epoch is a few steps
    train(PAGE, tmp_path / "whole", changes)
    train(PAGE, tmp_path / "parts", {**changes, "train.minutes": "0.0001"})
    assert len(toy.rows(tmp_path / "parts")) < len(toy.rows(tmp_path / "whole"))
    train(PAGE, tmp_path / "parts", changes)
    whole, parts = (
        {(row["step"], "loss" in row): row for row in toy.rows(tmp_path / name)} for name in ("whole", "parts")
    )
    for key, row in whole.items():
        if key[0] > 0:
            assert parts[key] == row


@pytest.mark.slow
def test_it_can_overfit_a_batch(task):
    """Both heads can, for tokens and pairs."""
    changes = {"model.d_model": 32, "model.dropout": 0.0, "model.attention_dropout": 0.0, "model.init_stddev": 0.1}
    other = with_changes(task, **changes, **{"optimizer.learning_rate": 0.005, "optimizer.schedule": "constant"})
    batch, settings = other.batches(1)[0], other.config.optimizer
    optimizer = make_optimizer(settings)
    state = new_state(jax.jit(other.init)(jax.random.key(0)), optimizer, 0.0)
    schedule = make_schedule(settings, 1)
    step = make_train_step(other.loss_fn, optimizer, schedule, accumulate=1, ema_decay=0.0, seed=0)
    for _ in range(250):
        state, metrics = step(state, batch)
    assert float(metrics["loss"]) < 0.1


@pytest.mark.slow
def test_a_causal_model_learns(tmp_path):
    changes = {"data.cache": str(tmp_path / "cache"), "data.size": "4000", "train.steps": "300", "model.d_model": "32"}
    changes |= {"optimizer.learning_rate": "0.01", "optimizer.warmup_steps": "20", "model.init_stddev": "0.1"}
    changes |= {"train.eval_every": "300", "train.checkpoint_every": "300", "model.dropout": "0.0"}
    changes |= {"model.causal": "true", "model.next_sentence": "false"}
    assert train(PAGE, tmp_path / "w", changes)["dev/perplexity"] < 60  # of 400 pieces; 210 for the unigrams
