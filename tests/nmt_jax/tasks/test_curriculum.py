"""Training with a curriculum: which tasks have one, and runs that are stopped in it and continued."""

import math

import numpy as np
import pytest

from nmt_jax import config as configs
from nmt_jax.data.batching.batches import Batches
from nmt_jax.data.batching.curriculum import CurriculumBatches
from nmt_jax.data.batching.packed_lines import PackedLines
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.tasks.registry import make_task
from nmt_jax.training.run import train
from nmt_jax.workdir import Workdir
from tests.conftest import ROOT

PAIRS = ("quickstart", {})
PACKED = ("quickstart", {"data.packing": "true"})
LINES = ("gpt", {"data.packing": "true", "data.block_length": "32"})


def make(page, changes, folder):
    return make_task(configs.load(f"{ROOT}/configs/{page}.py:smoke=true", changes), folder, sharding.make_mesh())


@pytest.mark.parametrize(("page", "changes"), [PAIRS, PACKED, LINES], ids=["pairs", "packed", "lines"])
def test_early_batches_are_of_short_examples(page, changes, tmp_path):
    curriculum = {"data.curriculum.difficulty": "length", "data.curriculum.growth_steps": "20"}
    batches = make(page, {**changes, **curriculum}, tmp_path).batches(100)
    assert isinstance(batches, CurriculumBatches)
    assert (batches.competence.schedule, batches.competence.initial) == ("square_root", 0.01)
    name = "labels" if page == "gpt" else "source"
    numbers = [batch.get(f"{name}_packing", batch.get("packing")) for batch in map(batches.__getitem__, (0, 25))]
    if numbers[0] is None:
        longest = [(batches[t][name] != 0).sum(axis=1).max() for t in (0, 25)]
    else:
        longest = [max(np.bincount(row[row > 0], minlength=1).max() for row in rows) for rows in numbers]
    assert longest[0] < 0.6 * longest[1]


def test_the_rarity_of_pairs_is_that_of_their_source_pieces(tmp_path):
    changes = {"data.curriculum.difficulty": "rarity", "data.cache": str(tmp_path / "cache")}
    task = make("quickstart", changes, tmp_path)
    batches = task.batches(10)
    sources = [source for source, _ in task.train_corpus.__getitems__(range(len(task.train_corpus)))]
    pieces = np.concatenate(sources)
    frequencies = np.bincount(pieces) / len(pieces)
    rarity = [-sum(math.log(frequencies[piece]) for piece in source) for source in sources]
    assert (np.diff(np.array(rarity)[batches.order]) > -1e-4).all()
    assert len(list((tmp_path / "cache" / "corpora").glob("rarity-*"))) == 1


def test_without_a_curriculum_there_is_none(tmp_path):
    assert type(make(*PAIRS, tmp_path).batches(2)) is Batches
    assert type(make(*LINES, tmp_path).batches(2)) is PackedLines


@pytest.mark.slow
def test_a_run_continues_in_its_curriculum(tmp_path):
    page, changes = LINES
    every = {"train.log_every": "1", "train.checkpoint_every": "1", "train.eval_every": "6", **changes}
    every |= {"data.curriculum.difficulty": "rarity", "data.curriculum.growth_steps": "4"}

    def run(name, steps):
        train(f"{ROOT}/configs/{page}.py:smoke=true", tmp_path / name, {**every, "train.steps": str(steps)})
        return [row["loss"] for row in Workdir(tmp_path / name).metrics() if "loss" in row]

    whole = run("whole", 6)
    run("stopped", 2)
    run("stopped", 5)
    assert run("stopped", 6) == whole
    assert len(whole) == 6


@pytest.mark.parametrize(
    ("page", "changes", "message"),
    [
        ("gpt", {"difficulty": "length"}, r"config\.data\.curriculum\.difficulty='length': .* set data\.packing=true"),
        ("glue", {"difficulty": "length"}, "'data.curriculum.difficulty': task 'sentences' does not have it, only tra"),
        ("quickstart", {"difficulty": "hard"}, r"config\.data\.curriculum\.difficulty='hard': use one of none, length"),
        ("quickstart", {"initial_competence": "0"}, r"config\.data\.curriculum\.initial_competence=0\.0: must be more"),
        ("quickstart", {"growth_steps": "0"}, r"config\.data\.curriculum\.growth_steps=0: must be at least 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(page, changes, message):
    with pytest.raises(UserError, match=message):
        configs.load(f"{ROOT}/configs/{page}.py", {f"data.curriculum.{name}": text for name, text in changes.items()})
