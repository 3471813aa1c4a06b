"""The bidirectional language-modelling task on a small part of the embedded corpus."""

import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ml_collections import ConfigDict

from nmt_jax import config as configs
from nmt_jax.data.vocabulary.word_types import WordTypes, split
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.losses.step import Step
from nmt_jax.tasks.bidirectional_language_model import END, UNKNOWN
from nmt_jax.tasks.registry import make_task
from nmt_jax.training.run import train
from tests.conftest import ROOT
from tests.fixtures.parameters import draw_parameters

PAGE = f"{ROOT}/configs/elmo.py:smoke=true"
LINES = ["der alte Mann schläft .", "", "sie sieht das Haus nicht .", "das Blubberwort"]


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    return make_task(
        configs.load(PAGE, {"model.dtype": "float32"}), tmp_path_factory.mktemp("workdir"), sharding.make_mesh()
    )


@pytest.fixture(scope="module")
def params(task):
    return draw_parameters(task.init)


def with_changes(task, **changes):
    """Another task of the same workdir."""
    config = ConfigDict(task.config.to_dict())
    config.update_from_flattened_dict(changes)
    return make_task(config, task.workdir, task.mesh)


@functools.cache
def log_probs_program(task):
    """Compiled once per task and shape: parameters and characters of rows -> log-probabilities of both directions."""

    def both(params, characters):
        tops = task.model.apply({"params": params}, characters)
        kernel = task.model.apply({"params": params}, method="output_kernel")
        return [jax.nn.log_softmax(top @ kernel) for top in tops]

    return jax.jit(both)


def log_probs(task, params, characters):
    """Log-probabilities of both directions, float[T, V], of one row of words."""
    return [np.asarray(rows[0]) for rows in log_probs_program(task)(params, characters[None])]


def test_batches_hold_characters_and_classes_of_the_text(task):
    batch = task.batches(2)[1]
    text = task._text("train")
    rows = {tuple(row): word for row, word in zip(text.characters(12)[4:].tolist(), text.words, strict=True)}
    for characters, number in zip(batch["characters"].reshape(-1, 12), batch["classes"].ravel(), strict=True):
        word = rows.get(tuple(characters.tolist()))
        assert (word is None) == (number == END)
        if number > UNKNOWN:
            assert task.words.words[number - UNKNOWN - 1][:9] == word[:9]
    dummy = task.dummy_batch(task.batches(1).shapes[0])
    assert {n: (a.shape, a.dtype) for n, a in dummy.items()} == {n: (a.shape, a.dtype) for n, a in batch.items()}


def test_the_loss_is_the_mean_of_both_directions(task, params):
    batch = task.batches(1)[0]
    assert batch["weights"].all()
    total, weight = jax.jit(lambda *args: task.loss_fn(*args, None))(params, batch)
    assert float(weight) == batch["weights"].size
    expected = 0.0
    for characters, classes in zip(batch["characters"], batch["classes"], strict=True):
        forward, backward = log_probs(task, params, characters)
        places = np.arange(len(classes) - 1)
        expected -= forward[places, classes[1:]].sum() + backward[places + 1, classes[:-1]].sum()
    assert float(total) == pytest.approx(expected / 2, rel=1e-4)


def test_every_word_is_scored_once_in_each_direction(task, params):
    text = WordTypes.read(map(split, LINES))
    characters, classes = text.characters(12), task._classes(text)
    assert classes[text.ids].tolist().count(END) == 4
    assert UNKNOWN in classes
    ids = text.ids[:13]  # one window of 16
    short = WordTypes(np.append(ids, 3), text.words)
    forward, backward = task.surprise(params, short)
    read = log_probs(task, params, characters[[3, *short.ids]])  # an end of line stands before a text
    places = np.arange(len(short.ids))
    assert forward == pytest.approx(-read[0][places, classes[short.ids]].mean(), rel=1e-5)
    before = [3, *short.ids[:-1]]
    assert backward == pytest.approx(-read[1][places + 1, classes[before]].mean(), rel=1e-5)


@pytest.mark.slow
def test_perplexities_do_not_depend_on_the_batch_size(task, params):
    measures = task.evaluate(params)
    assert measures["dev/perplexity"] == pytest.approx(np.exp(measures["dev/loss"]))
    assert measures["dev/perplexity"] ** 2 == pytest.approx(
        measures["dev/forward_perplexity"] * measures["dev/backward_perplexity"]
    )
    again = with_changes(task, **{"eval.batch_tokens": 48}).evaluate(params)
    for name, value in measures.items():
        assert value == pytest.approx(again[name], rel=1e-6)
    nothing = jax.tree.map(jnp.zeros_like, params)
    assert task.evaluate(nothing)["dev/forward_perplexity"] == pytest.approx(task.num_classes, rel=1e-5)


@pytest.mark.slow
def test_the_softmax_is_sampled_in_training_only(task, params):
    sampled = with_changes(task, **{"loss.num_sampled": 16, "model.dropout": 0.0})
    whole = with_changes(task, **{"loss.num_sampled": 0, "model.dropout": 0.0})
    batch = task.batches(1)[0]
    step = Step(jnp.int32(0), jax.random.key(3))
    losses = [
        float(jax.jit(lambda p, b, t=t, s=s: t.loss_fn(p, b, s)[0])(params, batch))
        for t, s in ((sampled, step), (sampled, None), (whole, step), (whole, None))
    ]
    assert losses[1] == losses[2] == losses[3]
    assert losses[0] != losses[1]


@pytest.mark.slow
def test_a_resumed_run_equals_an_uninterrupted_one_and_learns(tmp_path):
    changes = {
        "train.steps": "8",
        "train.eval_every": "8",
        "train.checkpoint_every": "4",
        "optimizer.warmup_steps": "1",
    }
    changes |= {"optimizer.learning_rate": "0.01", "optimizer.schedule": "constant"}
    whole = train(PAGE, tmp_path / "a", changes)
    train(PAGE, tmp_path / "b", {**changes, "train.steps": "4"})
    assert train(PAGE, tmp_path / "b", changes) == whole
    first = json.loads((tmp_path / "a" / "metrics.jsonl").read_text().split("\n")[0])
    assert whole["loss"] < first["loss"] - 0.3


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"data.block_length": 1}, "config.data.block_length=1 must be at least 2"),
        ({"eval.context": 16}, "config.eval.context=16 must be at least 0"),
        ({"loss.num_sampled": -1}, "config.loss.num_sampled=-1: the number of sampled words, or 0 for all"),
    ],
)
def test_invalid_settings_are_reported_at_the_start(task, changes, line):
    with pytest.raises(UserError, match=line):
        with_changes(task, **changes).batches(1)


def test_a_text_without_words_is_an_error(tmp_path):
    (tmp_path / "train.txt").write_text("a b\n" * 20 + "\n" * 20)
    changes = {
        "data.corpus": "text",
        "data.directory": str(tmp_path),
        "data.train": "train.txt",
        "data.dev_share": "0.4",
    }
    with pytest.raises(UserError, match="no text, only empty lines"):
        make_task(configs.load(PAGE, changes), tmp_path / "w", sharding.make_mesh()).batches(1)
