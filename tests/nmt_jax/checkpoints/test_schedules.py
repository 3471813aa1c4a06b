"""Readers and trainings of one workdir in random order: nothing is lost, and nothing is called damaged."""

import functools
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
import pytest

from nmt_jax.checkpoints.reading import load_params
from nmt_jax.checkpoints.writing import Checkpoints
from nmt_jax.errors import UserError
from nmt_jax.workdir import Workdir
from tests.fixtures import toy
from tests.nmt_jax.checkpoints.test_checkpoint import make_state

STEPS = 6
KERNELS: dict[int, np.ndarray] = {}
SEEDS = [range(1), pytest.param(range(1, 10), marks=pytest.mark.slow)]  # of random schedules


def at_once(calls: list[Callable[[], None]]) -> None:
    """Make all calls in threads of their own, and raise the first exception of any."""
    errors: list[Exception] = []

    def guarded(call):
        try:
            call()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(call,), daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 300
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0))
    if errors:
        raise errors[0]
    assert not any(thread.is_alive() for thread in threads)


def write_and_read(saved: Path, folder: Path, seed: int) -> int:
    """Publish the checkpoints of `saved` as training does, while 1 to 10 readers read; returns how often they read.

    The checkpoints are copied: Orbax cannot save and load in threads of one process.
    """
    chance = random.Random(seed)
    checkpoints = Checkpoints(folder / "checkpoints", keep_last=chance.randint(1, 2), keep_best=chance.randint(0, 1))
    first, done = threading.Event(), threading.Event()
    reads: list[int] = []

    def write():
        try:
            for step in [*chance.choices(range(1, STEPS + 1), k=3), *range(1, STEPS + 1)]:
                unfinished, path = (checkpoints.directory / name for name in (f"{step}.unfinished", str(step)))
                shutil.copytree(saved / str(step), unfinished)
                checkpoints.set_aside(step)
                unfinished.rename(path)
                (path / "_CHECKPOINT_METADATA").touch()
                first.set()
                checkpoints.clean()
                time.sleep(chance.choice([0.0, chance.uniform(0, 0.1)]))
        finally:
            first.set()
            done.set()

    def read(which):
        first.wait()
        while not (done.is_set() and reads):
            kernel = np.asarray(load_params(folder, which)["layer"]["kernel"])
            assert which == 2 or any(np.array_equal(kernel, KERNELS[step]) for step in KERNELS)
            reads.append(1)

    whichs = chance.choices(["best", "last", 2], k=chance.choice([1, 2, 10]))
    at_once([write, *(functools.partial(read, which) for which in whichs)])
    assert max(checkpoints.steps()) == STEPS
    return len(reads)


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    with Checkpoints(folder, keep_last=STEPS) as checkpoints:
        for step in range(1, STEPS + 1):
            state = make_state(step)
            checkpoints.save(step, state, None, {"measure": "dev/bleu"}, float(step % 4))
            KERNELS[step] = np.asarray(state.params["layer"]["kernel"])
    return folder


def train_twice(folder: Path, seed: int, expected: Path) -> None:
    """Start two trainings of one workdir: one is refused, or comes after the other."""
    chance = random.Random(seed)
    refused: list[UserError] = []
    done: list[float] = []

    def train(pause):
        time.sleep(pause)
        try:
            done.append(toy.train(folder)["step"])
        except UserError as error:
            refused.append(error)

    at_once([functools.partial(train, chance.choice([0.0, chance.uniform(0, 1)])) for _ in range(2)])
    assert set(done) == {30}
    assert len(done) + len(refused) == 2
    assert all("another training is running in this workdir: process" in str(error) for error in refused)
    assert toy.rows(folder) == toy.rows(expected)
    ours, theirs = (jax.tree.leaves(load_params(workdir, "last")) for workdir in (folder, expected))
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> Path:
    workdir = tmp_path_factory.mktemp("expected")
    toy.train(workdir)
    return workdir


# Orbax leaves coroutines behind when a file that it reads is deleted.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("seeds", SEEDS, ids=["one", "many"])
def test_readers_never_see_damage_while_training_deletes_checkpoints(seeds, saved, tmp_path, capsys):
    assert sum(write_and_read(saved, tmp_path / str(seed), seed) for seed in seeds) > len(seeds)
    assert "damaged" not in capsys.readouterr().err


@pytest.mark.parametrize("seeds", SEEDS, ids=["one", "many"])
def test_of_two_trainings_one_writes(seeds, expected, tmp_path, capsys):
    for seed in seeds:
        train_twice(tmp_path / str(seed), seed, expected)
    assert "damaged" not in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_readers_of_a_training_see_no_damage(tmp_path, capsys):
    settings = ["train.steps=60", "train.checkpoint_every=1", "train.keep_last=1", "toy.pause=0.02"]
    command = [sys.executable, "-m", "tests.fixtures.toy", str(tmp_path), *settings]
    with subprocess.Popen(command, cwd=toy.ROOT, stderr=subprocess.PIPE, text=True) as process:
        while not Workdir(tmp_path).started:
            assert process.poll() is None
            time.sleep(0.01)

        def read(which):
            while process.poll() is None:
                load_params(tmp_path, which)

        at_once([functools.partial(read, which) for which in ("best", "last", 2) * 3])
        assert process.wait() == 0, process.stderr.read()
    assert "damaged" not in capsys.readouterr().err
