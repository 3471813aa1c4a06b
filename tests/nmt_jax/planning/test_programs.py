"""Programs need no data: their shapes are those of training with data of the assumed sizes."""

import json
import subprocess
import sys

import jax
import pytest

from nmt_jax import config as configs
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.planning import programs
from nmt_jax.tasks.registry import TASKS, make_task
from nmt_jax.training import loop
from tests.conftest import ROOT, with_devices

PAGES = (  # one of each task
    *("quickstart", "rnn_lm", "ag_news", "glue", "ner", "squad", "bert_tiny", "word2vec", "elmo", "elmo_tagger"),
    *("ruse", "retrieval"),
)


def prepared(page, workdir=None, **changes):
    spec = str(ROOT / "configs" / f"{page}.py:smoke=true")
    config = configs.load(spec, {key.replace("__", "."): str(value) for key, value in changes.items()})
    return config, programs.prepare_task(config, sharding.make_mesh(1, jax.devices()[:1]), workdir)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_programs_without_data(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config, task = prepared(page)
    shapes = programs.batch_shapes(task, None, from_data=False)
    assert programs.num_parameters(task) > 0
    for program in (programs.training_step(task, config, shapes.frequent), programs.evaluation_loss(task, config)):
        assert program.tokens == task.num_tokens(program.shape)
        for value in jax.eval_shape(program.model, *program.arguments):
            assert value.shape == ()
    assert not [*tmp_path.iterdir()]


def test_a_page_of_every_task():
    assert {configs.load(str(ROOT / "configs" / f"{page}.py:smoke=true")).task for page in PAGES} == set(TASKS)


def test_a_workdir_gives_its_vocabulary_and_corpus(tmp_path):
    """The parameters of a task without data have the shapes of one with data, but for the size of the vocabulary."""
    config, task = prepared("quickstart", tmp_path / "w")
    shapes = programs.batch_shapes(task, None, from_data=True)
    assert shapes.origin == "the corpus"
    source = make_task(config, tmp_path / "w", task.mesh).batches(1)
    assert {shapes.largest, shapes.frequent} <= set(map(tuple, source.shapes))
    size = len(task.vocabularies[0])
    _, stand_in = prepared("quickstart", vocab__size=size)
    assert programs.num_parameters(stand_in) == programs.num_parameters(task)


def test_the_most_frequent_shape(tmp_path):
    _, task = prepared("quickstart", tmp_path / "w")
    source = task.batches(200)
    drawn = [source[number]["target"].shape for number in range(source.batches_per_epoch)]
    frequent = programs.batch_shapes(task, None, from_data=True).frequent
    counts = {shape: drawn.count((shape[0], shape[2])) for shape in map(tuple, source.shapes)}
    assert counts[frequent] == max(counts.values())


def test_given_shapes():
    _, task = prepared("quickstart", train__accumulate=3)
    assert programs.batch_shapes(task, (6, 9, 7), from_data=False)[:2] == ((6, 9, 7), (6, 9, 7))
    with pytest.raises(UserError, match="needs 3 numbers, as in 24x"):
        programs.batch_shapes(task, (6, 9), from_data=False)
    with pytest.raises(UserError, match="8 rows cannot be divided into 3 equal parts"):
        programs.batch_shapes(task, (8, 9, 7), from_data=False)


@pytest.mark.slow
def test_the_step_is_that_of_the_training_loop(tmp_path, monkeypatch):
    """The programs are the same, text by text."""
    config, task = prepared("quickstart", tmp_path / "w", train__steps=1)
    shape = programs.batch_shapes(task, None, from_data=True).largest
    planned = programs.training_step(task, config, shape).trace().lower().as_text()

    class StoppedError(Exception):
        pass

    def stop(training):
        batch = sharding.shard_batch(training.task.dummy_batch(training._largest), training.mesh)
        raise StoppedError(training.train_step.lower(training.state, batch).as_text())

    monkeypatch.setattr(loop._Training, "_compile_largest", stop)
    with pytest.raises(StoppedError) as stopped:
        loop.run(config, tmp_path / "w", make_task(config, tmp_path / "w", task.mesh))
    assert str(stopped.value) == planned


def test_beam_search_is_bounded_by_its_longest_translation():
    config, task = prepared("quickstart", decode__max_length_ratio=2.0, decode__max_length_offset=5)
    program = programs.beam_search(task, config)
    assert program.trips == 2 * config.data.max_length + 5
    tokens, scores = jax.eval_shape(program.model, *program.arguments)
    assert scores.shape == (program.shape[0], 1)
    assert tokens.shape == (program.shape[0], 1, program.trips)


SCRIPT = """
import json, sys
from nmt_jax import config as configs
from nmt_jax.distributed import sharding
from nmt_jax.planning import programs
from nmt_jax.planning.program_text import ProgramText
from nmt_jax.planning.replica_groups import axes_of

def collectives(shape=(16, 8, 8), **changes):
    # A tied table has a gradient for each of its uses.
    overrides = {"model.tie_embeddings": "none"} | {key.replace("__", "."): value for key, value in changes.items()}
    config = configs.load("configs/quickstart.py:smoke=true", overrides)
    mesh = sharding.make_mesh(config.mesh.model)
    task = programs.prepare_task(config, mesh, None)
    text = ProgramText(programs.training_step(task, config, shape).trace().lower().compile().as_text())
    return [[one.kind, axes_of(one.groups, mesh.devices.shape, mesh.axis_names), one.times * one.size]
            for one in text.collectives], programs.num_parameters(task)

print(json.dumps([collectives(), collectives(mesh__fsdp="true"), collectives(mesh__model="2"),
                  collectives(train__accumulate="2"), collectives((512, 16, 16), mesh__fsdp="true")]))
"""


@pytest.mark.slow
def test_communication_of_eight_devices():
    """Data parallelism sums the gradients once per step, and FSDP gathers the parameters as well."""
    command = [sys.executable, "-c", SCRIPT]
    finished = subprocess.run(command, env=with_devices(8), cwd=ROOT, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    (plain, size), (fsdp, _), (tensor, _), (accumulated, _), (large, _) = json.loads(finished.stdout)
    assert {(kind, *axes) for kind, axes, _ in plain} == {("all-reduce", "data")}
    assert sum(sent for *_, sent in plain) == pytest.approx(4 * size, rel=0.02)
    assert {tuple(axes) for _, axes, _ in fsdp} == {("data",)}
    gathered = sum(sent for kind, _, sent in fsdp if kind == "all-gather")
    assert gathered > 0.75 * 4 * size  # vectors are not divided
    assert sum(sent for kind, _, sent in large if kind == "all-gather") <= 4 * size  # no activations
    assert ("model",) in {tuple(axes) for _, axes, _ in tensor}
    assert sum(sent for *_, sent in accumulated) >= sum(sent for *_, sent in plain)
