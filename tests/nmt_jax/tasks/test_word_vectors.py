"""The word-vector task on the embedded corpus: loss, resumed runs, learning, unseen words."""

import json

import jax
import numpy as np
import pytest
from ml_collections import ConfigDict

from metrics_jax.embedding.nearest import Neighbours
from nmt_jax import config as configs
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.losses.step import Step
from nmt_jax.tasks.word_vectors import WordVectors
from nmt_jax.training.run import train
from nmt_jax.training.trained import open_trained
from nmt_jax.workdir import Workdir
from tests.conftest import ROOT
from tests.fixtures.parameters import draw_parameters

PAGES = ["word2vec", "fasttext"]
CLASSES = ["two four five", "gardener painter waiter", "simon clara laura", "oft selten immer", "sofa bett stuhl"]


def settings(folder, **changes) -> dict[str, str]:
    return {"data.cache": str(folder / "cache"), **changes}


@pytest.fixture(scope="module", params=PAGES)
def task(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("workdir")
    config = configs.load(f"{ROOT}/configs/{request.param}.py:smoke=true", settings(folder))
    return WordVectors(config, folder, sharding.make_mesh())


def test_the_loss_is_negative_sampling_with_its_draws(task):
    params = jax.jit(task.init)(jax.random.key(0))
    batch = task.batches(1)[0]
    loss = jax.jit(lambda *args: task.loss_fn(*args, None))
    total, weight = loss(params, batch)
    assert float(weight) == batch["weights"].sum() > 0
    assert float(total) == float(loss(params, batch)[0])
    # What predicts is zero at first: every pair costs log 2, and each of its negatives.
    pairs = jax.jit(lambda words: task.model.apply({"params": params}, words, method="near"))(batch["words"])
    pairs = np.asarray(pairs) * batch["weights"][:, :, None]
    assert float(total) == pytest.approx(pairs.sum() * np.log(2) * 6, rel=1e-5)
    moved = jax.tree.map(
        lambda leaf: leaf + np.linspace(-1, 1, leaf.size, dtype=np.float32).reshape(leaf.shape), params
    )
    drawn = [
        float(jax.jit(lambda *args: task.loss_fn(*args, Step(0, jax.random.key(seed))))(moved, batch)[0])  # noqa: B023
        for seed in (1, 2)
    ]
    assert len({*drawn, float(loss(moved, batch)[0])}) == 3


def test_the_dummy_batch_has_the_shape_and_no_padding(task):
    batches = task.batches(1)
    for name, array in task.dummy_batch(batches.shapes[0]).items():
        assert array.shape == batches[0][name].shape
        assert array.dtype == batches[0][name].dtype
        assert (array != 0).all()


@pytest.mark.slow
def test_evaluation_is_deterministic(task):
    params = draw_parameters(task.init)
    assert task.evaluate(params) == task.evaluate(params)


def test_an_unseen_word_has_the_mean_vector_of_its_n_grams(task):
    params = draw_parameters(task.init)
    vectors = task.vectors(params)
    assert vectors.words == task.words.words
    if not task.model.num_buckets:
        assert task.compose(params, "Hausboote") is None
        return
    first = task.words.words[0]
    count = (task.subwords[0] == 1).sum()
    both = (count * task.compose(params, first) + np.asarray(params["words"])[1]) / (count + 1)
    np.testing.assert_allclose(both, vectors.matrix[0], rtol=1e-4, atol=1e-7)
    assert np.isfinite(task.compose(params, "Hausboote")).all()
    assert task.compose(params, "") is None  # "<>" is shorter than an n-gram


@pytest.mark.slow
@pytest.mark.parametrize("page", ["word2vec", "fasttext"])
def test_words_of_a_class_become_neighbours(page, tmp_path):
    changes = settings(tmp_path, **{"data.size": "4000", "vocab.size": "1000", "model.d_model": "24"})
    changes |= {"train.steps": "300", "train.batch_tokens": "2048", "train.eval_every": "300"}
    changes |= {"train.checkpoint_every": "300"} | ({"model.num_buckets": "2000"} if page == "fasttext" else {})
    measured = train(f"{ROOT}/configs/{page}.py:smoke=true", tmp_path / "w", changes)
    task, params = open_trained(Workdir(tmp_path / "w"), "word_vectors", checkpoint="last")
    neighbours = Neighbours(task.vectors(params))
    known = set(" ".join(CLASSES).split())
    right = 0
    for words in map(str.split, CLASSES):
        for word in words:
            nearest = next(other for other, _ in neighbours(word, len(task.words)) if other in known)
            right += nearest in words
    assert right / len(known) > 0.8  # by chance 2 of 14: 0.14
    assert np.isfinite(measured["dev/loss"])


def losses(folder) -> list[float]:
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [row["loss"] for row in rows if "loss" in row]


SHORT = {"optimizer.schedule": "constant", "train.eval_every": "1000", "train.checkpoint_every": "1000"}


@pytest.mark.slow
def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path):
    page, changes = f"{ROOT}/configs/fasttext.py:smoke=true", settings(tmp_path, **SHORT)
    train(page, tmp_path / "whole", changes | {"train.steps": "10"})
    whole = losses(tmp_path / "whole")
    assert len(whole) == 10
    assert whole[-1] < whole[0]
    for steps in (4, 10):
        train(page, tmp_path / "halves", changes | {"train.steps": str(steps)})
    np.testing.assert_array_equal(losses(tmp_path / "halves"), whole)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"loss.shared_negatives": 0},
            "config.loss.negatives=5, config.loss.shared_negatives=0: each must be",
        ),
        ({"data.subsample": -1.0}, "config.data.subsample=-1.0: use a threshold"),
        ({"train.batch_tokens": 15}, "config.train.batch_tokens=15 is less than config.data.block_length"),
    ],
)
def test_invalid_settings_are_reported_at_the_start(task, changes, line):
    config = ConfigDict(task.config.to_dict())
    config.update_from_flattened_dict(changes)
    with pytest.raises(UserError, match=line):
        WordVectors(config, task.workdir, task.mesh).batches(1)
