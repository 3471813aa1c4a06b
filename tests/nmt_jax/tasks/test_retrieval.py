"""Retrieval: the loss of a batch, vectors of single lines, the measures, and the command line."""

import itertools
import json
import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax import config as configs
from nmt_jax.data.vocabulary.vocab import EOS
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.losses.step import Step
from nmt_jax.tasks.retrieval import Retrieval
from nmt_jax.training.run import train
from tests.conftest import ROOT, with_devices
from tests.fixtures.parameters import draw_parameters

PAGE = f"{ROOT}/configs/retrieval.py:smoke=true"


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    return Retrieval(configs.load(PAGE), tmp_path_factory.mktemp("task") / "w", sharding.make_mesh())


@pytest.fixture(scope="module")
def params(task):
    return draw_parameters(task.init, stddev=0.2)


def test_a_vector_depends_on_its_line_alone(task, params):
    lines = ["the old man sleeps .", "", "a dog", "word " * 100]
    together = task.vectors(params, lines, "source")
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), [1, 0, 1, 1], rtol=1e-5)
    for number, line in enumerate(lines):
        np.testing.assert_allclose(task.vectors(params, [line], "source")[0], together[number], atol=1e-6)
    assert np.abs(task.vectors(params, lines[:1], "target") - together[:1]).max() > 1e-3


def test_empty_rows_and_repeated_texts_of_a_batch_are_no_negatives(task, params):
    loss = jax.jit(lambda batch: task.loss_fn(params, batch, None))
    ids = np.array([[5 + row, 6, EOS] for row in range(8)], np.int32)
    batch = {"source": ids, "target": ids}
    total, weight = loss(batch)
    assert weight == 8
    assert total > 0
    padded = {side: np.where(np.arange(8)[:, None] < 1, ids, 0) for side, ids in batch.items()}
    assert loss(padded)[1] == 1
    np.testing.assert_allclose(loss(padded)[0], 0, atol=1e-6)  # one pair has nothing to be told apart from
    for side in batch:  # all pairs are right for each other
        repeated = {**batch, side: np.broadcast_to(batch[side][:1], (8, 3))}
        np.testing.assert_allclose(loss(repeated)[0], 0, atol=1e-5)


def test_the_measures_of_perfect_and_of_equal_vectors(task, monkeypatch):
    params = {"log_scale": jnp.float32(3.0)}
    pairs = task.config.eval.max_pairs
    monkeypatch.setattr(task, "vectors", lambda params, lines, side: np.eye(len(lines), dtype=np.float32))
    measures = task.evaluate(params)
    assert set(measures) == {f"dev/{name}" for name in task.measures}
    assert [measures[f"dev/recall_{k}"] for k in (1, 5, 10)] == [100, 100, 100]
    assert measures["dev/median_rank"] == 1
    monkeypatch.setattr(task, "vectors", lambda params, lines, side: np.ones((len(lines), 4), np.float32))
    measures = task.evaluate(params)
    assert measures["dev/recall_10"] == 0
    assert measures["dev/median_rank"] == pairs
    np.testing.assert_allclose(measures["dev/loss"], np.log(pairs), rtol=1e-5)


def test_the_nearest_candidates(task):
    candidates = np.array([[1, 0], [0, 0], [0, 1], [0.6, 0.8], [0, 1]], np.float32)
    queries = np.array([[0, 1], [0, 0]], np.float32)
    first, second = task.nearest(queries, candidates, 3)
    assert [one.number for one in first] == [2, 4, 3]  # of equal ones, the first line
    assert second == []
    assert first[2].cosine == pytest.approx(0.8)
    assert len(task.nearest(queries, candidates, 10)[0]) == 4  # an empty line is not found


def test_another_model_is_refused(tmp_path):
    config = configs.load(PAGE)
    with config.unlocked():
        config.model_name = "transformer"
    with pytest.raises(UserError, match="task='retrieval' needs dual_encoder"):
        Retrieval(config, tmp_path, sharding.make_mesh())


def loss_and_gradient(folder):
    """The loss of the first training batch, on all devices, and the norm of its gradient for each parameter."""
    mesh = sharding.make_mesh()
    task = Retrieval(configs.load(PAGE, {"data.cache": str(folder / "cache")}), folder, mesh)
    step = Step(jnp.int32(0), jax.random.key(0))

    def mean(params, batch):
        total, weight = task.loss_fn(params, batch, step)
        return total / weight

    batch = sharding.shard_batch(task.batches(1)[0], mesh)
    loss, gradient = jax.jit(jax.value_and_grad(mean))(draw_parameters(task.init, stddev=0.2), batch)
    return [float(loss), *(float(jnp.linalg.norm(leaf)) for leaf in jax.tree.leaves(gradient))]


if __name__ == "__main__":
    print(json.dumps([len(jax.devices()), *loss_and_gradient(pathlib.Path(sys.argv[1]))]))


@pytest.mark.slow
def test_the_negatives_of_eight_devices_are_those_of_one(tmp_path):
    """Eight rows: a device that saw its own row only would have no negatives, and a loss of 0."""
    command = [sys.executable, "-m", "tests.nmt_jax.tasks.test_retrieval", str(tmp_path)]
    output = subprocess.run(command, env=with_devices(8), cwd=ROOT, capture_output=True, text=True, check=True).stdout
    devices, *eight = json.loads(output)
    assert devices == 8
    assert eight[0] > 0.1
    np.testing.assert_allclose(eight, loss_and_gradient(tmp_path), rtol=1e-4)


@pytest.mark.slow
def test_it_learns_and_the_command_finds_either_side(tmp_path, nmt_jax, mistake):
    words = {"red": "rot", "green": "grün", "round": "rund", "big": "groß", "small": "klein", "old": "alt"}
    chosen = [" ".join(three) for three in itertools.permutations(words, 3)]
    translated = [" ".join(words[word] for word in line.split()) for line in chosen]
    for split, lines in (("train", slice(None, None, 2)), ("val", slice(1, None, 4))):
        for side, texts in (("en", chosen), ("de", translated)):
            (tmp_path / f"{split}.{side}").write_text("".join(f"{text}\n" for text in texts[lines]))
    changes = {"data.corpus": "text", "data.directory": tmp_path, "vocab.algorithm": "word", "vocab.size": 20}
    changes |= {"train.steps": 100, "train.eval_every": 100, "train.checkpoint_every": 100, "model.num_layers": 0}
    changes |= {"optimizer.learning_rate": 0.02, "optimizer.warmup_steps": 5, "train.batch_tokens": 256}
    changes |= {"data.cache": tmp_path / "cache"}
    measures = train(PAGE, tmp_path / "w", {key: str(value) for key, value in changes.items()})
    assert measures["dev/recall_10"] > 80  # by chance, 33
    (tmp_path / "candidates").write_text("rot grün rund\n\nalt groß klein\n")
    command = ("retrieve", f"--workdir={tmp_path / 'w'}", f"--candidates={tmp_path / 'candidates'}")
    found = nmt_jax(*command, stdin="old big small\n\nred green round\n")
    assert (found.code, found.lines) == (0, ["alt groß klein", "", "rot grün rund"])
    rows = [line.split("\t") for line in nmt_jax(*command, "--count=2", stdin="old big small\n\n").lines]
    assert [(row[0], row[2]) for row in rows] == [("1", "alt groß klein"), ("1", "rot grün rund")]
    assert float(rows[0][1]) > float(rows[1][1])
    back = nmt_jax(*command, "--queries=target", "--format=json", stdin="alt\n\n").lines
    assert [len(json.loads(line)["candidates"]) for line in back] == [1, 0]
    assert "needs --candidates=FILE" in mistake("retrieve", f"--workdir={tmp_path / 'w'}", stdin="x\n")


def test_the_source_may_be_an_image(tmp_path):
    task = Retrieval(configs.load(f"{PAGE},scenes=true"), tmp_path / "w", sharding.make_mesh())
    params = draw_parameters(task.init, stddev=0.2)
    first, second, again = task.vectors(params, ["scenes:dev:1", "scenes:dev:2", "scenes:dev:1"], "source")
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - second).max() > 1e-3
    with pytest.raises(UserError, match=r"no-such\.png: no such file"):
        task.vectors(params, ["no-such.png"], "source")
