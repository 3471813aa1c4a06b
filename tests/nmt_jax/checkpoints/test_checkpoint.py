"""Checkpoints: exact, atomic, old ones deleted, damage detected."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import SingleDeviceSharding

from nmt_jax.checkpoints.ranking import METADATA, Score, best_first
from nmt_jax.checkpoints.reading import CheckpointChangedError, CheckpointReader, load_params
from nmt_jax.checkpoints.train_state import TrainState, new_state
from nmt_jax.checkpoints.verification import name_differences
from nmt_jax.checkpoints.writing import Checkpoints
from nmt_jax.errors import UserError
from nmt_jax.workdir import Workdir
from tests.fixtures.toy import ROOT

OPTIMIZER = optax.scale_by_adam()


def make_state(step: int, ema_decay: float = 0.0, size: int = 5) -> TrainState:
    keys = jax.random.split(jax.random.key(step), 2)
    params = {"layer": {"kernel": jax.random.normal(keys[0], (size, 3)), "bias": jax.random.normal(keys[1], (3,))}}
    return new_state(params, OPTIMIZER, ema_decay).replace(step=jnp.int32(step))


def abstract(state: TrainState) -> TrainState:
    place = SingleDeviceSharding(jax.devices()[0])
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=place), state)


def assert_same(ours, theirs) -> None:
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)


def save_all(directory: Path, steps, keep_last=10, keep_best=0, scores=None, **options) -> None:
    with Checkpoints(directory, keep_last, keep_best) as checkpoints:
        for step in steps:
            score = scores[step] if scores else None
            checkpoints.save(step, make_state(step, **options), {"next": step}, {"loss": step / 3}, score)


@pytest.mark.parametrize("ema_decay", [0.0, 0.9])
def test_save_and_restore_are_exact(ema_decay, tmp_path):
    state = make_state(7, ema_decay)
    meta = {"best": 1 / 3, "none": None, "nan": float("nan"), "metrics": {"dev/bleu": 0.1 + 0.2}}
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(7, state, {"next_index": 7, "nested": [1, 2]}, meta)
    restored = Checkpoints(tmp_path).restore(abstract(state))
    assert restored.step == 7
    assert_same(restored.state, state)
    assert restored.data_state == {"next_index": 7, "nested": [1, 2]}
    assert repr(restored.meta) == repr(meta)


def test_the_state_may_be_donated_during_a_save(tmp_path):
    state = make_state(1, size=500_000)
    expected = jax.tree.map(np.array, state)
    consume = jax.jit(lambda state: jax.tree.map(lambda leaf: leaf * 0 + 9, state), donate_argnums=0)
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(1, state, None, {})
        for _ in range(5):
            state = consume(state)
        jax.block_until_ready(state)
    assert_same(Checkpoints(tmp_path).restore(abstract(state)).state, expected)


def test_restore_without_checkpoints(tmp_path):
    assert Checkpoints(tmp_path / "never made").restore(abstract(make_state(0))) is None


def test_the_last_and_the_best_are_kept_after_a_restart(tmp_path):
    scores = {1: 0.5, 2: 0.9, 3: 0.1, 4: None, 5: 0.9, 6: 0.2, 7: 0.3}
    save_all(tmp_path, [1, 2, 3, 4], 2, 1, scores)
    assert Checkpoints(tmp_path).steps() == [2, 3, 4]
    save_all(tmp_path, [5, 6, 7], 2, 1, scores)
    assert Checkpoints(tmp_path).steps() == [2, 6, 7]  # 2 and 5 have equal scores
    assert Checkpoints(tmp_path).best_steps() == [2, 7, 6]


def test_nan_is_no_score(tmp_path):
    save_all(tmp_path, [1, 2, 3, 4], 1, 1, {1: -3.2, 2: np.nan, 3: -2.9, 4: np.nan})
    assert Checkpoints(tmp_path).steps() == [3, 4]
    assert Checkpoints(tmp_path).best_steps() == [3]
    assert '"score":null' in (tmp_path / "4" / METADATA).read_text().replace(" ", "")


def test_nan_scores_of_older_versions_are_ignored():
    scores = {500: Score(-3.2, "dev/loss"), 1000: Score(np.nan, "dev/loss"), 1500: Score(-2.9, "dev/loss")}
    assert best_first(scores) == [1500, 500]


def test_an_unfinished_checkpoint_is_ignored(tmp_path):
    save_all(tmp_path, [1, 2])
    (tmp_path / "2").rename(tmp_path / "2.orbax-checkpoint-tmp")  # Orbax renames a checkpoint when it is complete
    checkpoints = Checkpoints(tmp_path)
    assert checkpoints.steps() == [1]
    assert checkpoints.restore(abstract(make_state(1))).step == 1
    with checkpoints:
        checkpoints.save(2, make_state(2), None, {})  # the remains do not interfere
    assert checkpoints.restore(abstract(make_state(2))).step == 2


@pytest.mark.slow
def test_a_kill_during_a_save_leaves_the_previous_checkpoint(tmp_path):
    program = (
        "import sys, os, signal; from tests.nmt_jax.checkpoints.test_checkpoint import *\n"
        "checkpoints = Checkpoints(Path(sys.argv[1]))\n"
        "checkpoints.save(1, make_state(1), None, {}); checkpoints.wait()\n"
        "checkpoints.save(2, make_state(2, size=4_000_000), None, {})\n"
        "while not any(path.name.startswith('2') for path in checkpoints.directory.iterdir()): pass\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert process.returncode == -signal.SIGKILL, process.stderr
    assert any(path.name.startswith("2.") for path in tmp_path.iterdir()), "the kill came too late to test anything"
    checkpoints = Checkpoints(tmp_path)
    assert checkpoints.steps() == [1]
    assert_same(checkpoints.restore(abstract(make_state(1))).state, make_state(1))
    with checkpoints:
        checkpoints.save(2, make_state(2), None, {})  # the remains do not interfere
    assert checkpoints.restore(abstract(make_state(2))).step == 2


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["truncate", "remove", "change", "empty"])
def test_damage_to_any_file_falls_back_to_the_previous_checkpoint(damage, tmp_path, capsys):
    save_all(tmp_path / "good", [1, 2])
    files = [path.relative_to(tmp_path / "good") for path in (tmp_path / "good/2").rglob("*") if path.is_file()]
    assert len(files) > 8
    for number, name in enumerate(files):
        folder = tmp_path / str(number)
        shutil.copytree(tmp_path / "good", folder)
        path = folder / name
        content = path.read_bytes()
        if damage == "remove" or not content:
            path.unlink()
        elif damage == "change":
            path.write_bytes(content[:-3] + bytes(byte ^ 1 for byte in content[-3:]))
        else:
            os.truncate(path, len(content) // 2 if damage == "truncate" else 0)
        if name.name == "sums.json" and damage == "remove":  # also after a kill just before the sums were written
            with pytest.warns(UserWarning, match=r"2: has no sums.json, so that damage cannot be noticed"):
                assert Checkpoints(folder).restore(abstract(make_state(0))).step == 2
            continue
        restored = Checkpoints(folder).restore(abstract(make_state(0)))
        assert restored.step == 1, name
        assert_same(restored.state, make_state(1))
        errors = capsys.readouterr().err
        assert errors.count("\n") == 1
        assert f"{folder / '2'}: damaged, using another checkpoint" in errors
        assert sorted(path.name for path in folder.iterdir()) == ["1", "2.damaged"]


def test_all_damaged_raises_an_error_and_removes_nothing(tmp_path):
    save_all(tmp_path, [1, 2])
    for step in (1, 2):
        shutil.rmtree(tmp_path / str(step) / "rest")
    with pytest.raises(UserError, match="all 2 checkpoints are damaged"):
        Checkpoints(tmp_path).restore(abstract(make_state(0)))
    assert Checkpoints(tmp_path).steps() == [1, 2]


def test_a_checkpoint_of_another_model_is_not_called_damaged(tmp_path):
    save_all(tmp_path, [1])
    with pytest.raises(UserError, match=r"of another shape: params/layer/kernel \[5, 3\] instead of \[6, 3\]"):
        Checkpoints(tmp_path).restore(abstract(make_state(0, size=6)))


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], capture_output=True).returncode:
        pytest.skip("a full disk needs the right to mount a tmpfs")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_raises_an_error_and_keeps_the_last_checkpoint(small_disk, capfd):
    checkpoints = Checkpoints(small_disk / "checkpoints", keep_last=1)
    good = make_state(1, size=50_000)
    checkpoints.save(1, good, None, {})
    checkpoints.save(2, make_state(2, size=1_000_000), None, {})
    with pytest.raises(UserError) as error:
        checkpoints.wait()
    assert str(error.value) == (
        f"{small_disk}/checkpoints: cannot save step 2: the disk is full; the checkpoint of step 1 is intact; "
        "fix the problem and run the same command again"
    )
    assert capfd.readouterr().err == ""
    assert [path.name for path in (small_disk / "checkpoints").iterdir()] == ["1"]
    assert_same(checkpoints.restore(abstract(good)).state, good)
    checkpoints.save(3, make_state(3), None, {})  # the space was freed
    checkpoints.wait()
    assert checkpoints.steps() == [3]


def test_check_raises_the_error_of_a_failed_save(small_disk):
    checkpoints = Checkpoints(small_disk / "checkpoints")
    checkpoints.save(2, make_state(2, size=1_000_000), None, {})
    checkpoints._saving.join()
    with pytest.raises(UserError, match="there is no checkpoint yet"):
        checkpoints.check()
    checkpoints.check()  # raised only once


def test_params_best_last_and_average(tmp_path):
    save_all(tmp_path / "checkpoints", [1, 2, 3], scores={1: 0.1, 2: 0.3, 3: 0.2})
    assert_same(load_params(tmp_path, "best"), make_state(2).params)
    assert_same(load_params(tmp_path, "last"), make_state(3).params)
    mean = jax.tree.map(
        lambda *leaves: np.mean(np.array(leaves, np.float64), 0), *(make_state(n).params for n in (2, 3))
    )
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-7), load_params(tmp_path, 2), mean)
    assert_same(load_params(tmp_path, 1), make_state(3).params)


def test_params_are_the_moving_average_if_there_is_one(tmp_path):
    state = make_state(1, 0.9)
    state = state.replace(ema=jax.tree.map(lambda leaf: leaf + 1, state.ema))
    with Checkpoints(tmp_path / "checkpoints") as checkpoints:
        checkpoints.save(1, state, None, {})
    assert_same(load_params(tmp_path), state.ema)


def test_params_of_a_damaged_checkpoint_fall_back(tmp_path, capsys):
    save_all(tmp_path / "checkpoints", [1, 2, 3], scores={1: 0.1, 2: 0.3, 3: 0.2})
    shutil.rmtree(tmp_path / "checkpoints/2/params/d")
    assert_same(load_params(tmp_path, "best"), make_state(3).params)
    assert "checkpoints/2: damaged" in capsys.readouterr().err
    load_params(tmp_path, 3)
    assert "averaging 2 checkpoints instead of 3" in capsys.readouterr().err
    assert Checkpoints(tmp_path / "checkpoints").steps() == [1, 2, 3]  # reading renames nothing


def test_checkpoints_deleted_after_they_were_listed_are_read_again_later(tmp_path):
    save_all(tmp_path / "checkpoints", [1, 2])
    reader, place = CheckpointReader(tmp_path / "checkpoints"), SingleDeviceSharding(jax.devices()[0])
    steps = reader.steps()
    for step in steps:
        (reader.directory / str(step)).rename(reader.directory / f"{step}.deleted")
    with pytest.raises(CheckpointChangedError):
        reader.average(steps, 2, place)
    with pytest.raises(CheckpointChangedError):
        reader.newest_params(steps, place)


def test_params_of_an_empty_workdir(tmp_path):
    with pytest.raises(UserError, match=r"no checkpoint; train first: `nmt-jax train"):
        load_params(tmp_path)


def test_a_relative_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_all(Path("checkpoints"), [1])
    assert_same(load_params(Path(".")), make_state(1).params)


def test_name_differences():
    expected = {"a": jnp.zeros((2, 3)), "b": {"c": jnp.zeros(4), "d": jnp.zeros(1)}}
    assert name_differences(expected, expected) == ""
    found = {"a": jnp.zeros((3, 2)), "b": {"c": jnp.zeros(4)}, "e": jnp.zeros(1)}
    assert (
        name_differences(expected, found) == "missing: b/d; unexpected: e; of another shape: a [3, 2] instead of [2, 3]"
    )


def test_scores_of_different_metrics_are_not_compared(tmp_path):
    with Checkpoints(tmp_path, keep_last=10) as checkpoints:
        for step, measure, score in ((1, "dev/bleu", 90.0), (2, "dev/loss", -2.0), (3, "dev/loss", -1.0)):
            checkpoints.save(step, make_state(step), None, {"measure": measure}, score)
    assert checkpoints.best_steps() == Checkpoints(tmp_path).best_steps() == [3, 2]
    with Checkpoints(tmp_path, keep_last=10) as checkpoints:
        checkpoints.save(4, make_state(4), None, {"measure": "dev/bleu"})
    assert Checkpoints(tmp_path).best_steps() == [1]


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("which", ["best", "last", 2])
def test_parameters_that_are_not_finite_are_an_error(which, value, tmp_path):
    state = make_state(1)
    state.params["layer"]["kernel"] = state.params["layer"]["kernel"].at[2, 1].set(value)
    with Checkpoints(tmp_path / "checkpoints", 2) as checkpoints:
        checkpoints.save(1, state, None, {})
        checkpoints.save(2, state, None, {})
    with pytest.raises(UserError, match=r"the model has diverged: parameters are not finite \(layer/kernel\)"):
        load_params(tmp_path, which)


def test_a_kill_while_a_step_is_saved_again_keeps_the_old_checkpoint(tmp_path):
    save_all(tmp_path / "checkpoints", [1])
    (tmp_path / "checkpoints/1").rename(tmp_path / "checkpoints/1.replaced")
    assert Workdir(tmp_path).started
    assert Checkpoints(tmp_path / "checkpoints").steps() == [1]
    assert_same(load_params(tmp_path), make_state(1).params)
    save_all(tmp_path / "checkpoints", [1], size=6)
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["1"]
    assert_same(load_params(tmp_path), make_state(1, size=6).params)
