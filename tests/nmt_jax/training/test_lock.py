"""One training writes a workdir at a time."""

import json
import os
import shutil
import socket
import time

import pytest

from nmt_jax.errors import UserError
from nmt_jax.training import lock
from nmt_jax.training.lock import WorkdirLock
from tests.fixtures import toy


def leave_owner(workdir, host, process=2**22 + 1, age=0.0):
    """The lock file that a crashed process leaves."""
    path = workdir / lock.FILE
    path.write_text(json.dumps({"host": host, "process": process, "since": "2026-01-01 00:00:00", "token": "x"}))
    os.utime(path, (time.time() - age,) * 2)


def test_the_second_training_is_told_who_trains(tmp_path):
    who = rf"{tmp_path}: another training is running .* process {os.getpid()} on {socket.gethostname()}, since 20"
    with WorkdirLock(tmp_path):
        with pytest.raises(UserError, match=who):
            toy.train(tmp_path)
        with WorkdirLock(tmp_path, needed=False):
            pass  # another process of the same run
    assert not (tmp_path / "checkpoints").exists()
    with WorkdirLock(tmp_path):
        pass


@pytest.mark.parametrize("process", [2**22 + 1, os.getpid()], ids=["gone", "number in use again"])
def test_the_lock_of_a_crashed_process_of_this_host_is_taken_over_at_once(process, tmp_path, capsys):
    leave_owner(tmp_path, socket.gethostname(), process)
    with WorkdirLock(tmp_path):
        assert capsys.readouterr().err == ""  # it did not wait


def test_without_locks_of_the_file_system_the_owner_counts(tmp_path, monkeypatch):
    def unsupported(*_):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(lock.fcntl, "flock", unsupported)
    monkeypatch.setattr(lock, "STALE_SECONDS", 3.0)
    monkeypatch.setattr(lock, "HEARTBEAT_SECONDS", 0.1)
    leave_owner(tmp_path, socket.gethostname())
    with WorkdirLock(tmp_path), pytest.raises(UserError, match="another training"), WorkdirLock(tmp_path):
        pass


def test_another_host_holds_the_lock_as_long_as_it_shows_life(tmp_path, monkeypatch, capsys):
    leave_owner(tmp_path, "elsewhere", age=100)
    with WorkdirLock(tmp_path):
        pass
    assert capsys.readouterr().err == ""
    leave_owner(tmp_path, "elsewhere", age=lock.STALE_SECONDS - 2)
    with WorkdirLock(tmp_path):
        pass
    assert "waiting to see whether process 4194305 on elsewhere still trains" in capsys.readouterr().err
    leave_owner(tmp_path, "elsewhere")
    monkeypatch.setattr(lock.time, "sleep", lambda _: os.utime(tmp_path / lock.FILE, (time.time() + 1,) * 2))
    with pytest.raises(UserError, match="process 4194305 on elsewhere, since 2026-01-01"), WorkdirLock(tmp_path):
        pass


class DeletesWorkdir(toy.Toy):
    """The toy task, which deletes or replaces its workdir at the first evaluation."""

    def __init__(self, config, workdir, replaced):
        super().__init__(config)
        self.workdir, self.replaced = workdir, replaced

    def evaluate(self, params):
        if not self.evaluations:
            shutil.rmtree(self.workdir)
            if self.replaced:
                self.workdir.mkdir()
        return super().evaluate(params)


@pytest.mark.slow
@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("steps", [8, 30])
def test_a_deleted_workdir_ends_the_run(steps, replaced, tmp_path):
    workdir = tmp_path / "w"
    settings = toy.config(**{"train.steps": steps, "train.checkpoint_every": 100})
    task = DeletesWorkdir(settings, workdir, replaced)
    with (
        pytest.raises(UserError, match="the workdir was deleted or replaced during training"),
        WorkdirLock(workdir) as held,
    ):
        toy.loop.run(settings, workdir, task, None, held)
    assert not (workdir / "checkpoints").exists()


def test_a_workdir_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot write the workdir: "), WorkdirLock(tmp_path / "file" / "w"):
        pass
