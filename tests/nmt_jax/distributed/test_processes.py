"""Several processes train like one: with the same losses, they stop together, and no run hangs."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

from nmt_jax.checkpoints.reading import load_params
from nmt_jax.distributed.process_spec import free_port
from nmt_jax.distributed.processes import find_difference
from nmt_jax.storage.files import is_complete
from nmt_jax.storage.paths import path_of
from tests.conftest import ROOT, with_devices
from tests.fixtures import toy

STEPS = 30


def start(workdir, processes, devices=1, changes=None, of_one=None):
    """Starts a toy training in several processes; `of_one[i]` are additional settings of process i."""
    environment = with_devices(devices)
    address, started = f"127.0.0.1:{free_port()}", []
    for process in range(processes):
        settings = {"train.steps": STEPS, **(changes or {}), **(of_one or {}).get(process, {})}
        if processes > 1:
            settings = {"process": [address, processes, process], **settings}
        arguments = [f"{key}={json.dumps(value)}" for key, value in settings.items()]
        command = [sys.executable, "-m", "tests.fixtures.toy", str(workdir), *arguments]
        started.append(subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True))
    return started


def finish(started, seconds=120):
    """Returns exit code and stderr of each process; none may hang."""
    deadline = time.monotonic() + seconds
    try:
        return [
            (process.returncode, error)
            for process in started
            for error in [process.communicate(timeout=max(deadline - time.monotonic(), 0.1))[1]]
        ]
    finally:
        for process in started:
            process.kill()
            process.communicate()


def run(workdir, processes, devices=1, **changes):
    results = finish(start(workdir, processes, devices, changes))
    assert [code for code, _ in results] == [0] * processes, results
    return losses(workdir)


def losses(workdir):
    return [row["loss"] for row in toy.rows(workdir) if "loss" in row]


def scores(workdir):
    return [[row["dev/loss"], row["dev/bleu"]] for row in toy.rows(workdir) if "dev/loss" in row]


def wait_for_step(workdir, step, seconds=60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        log = workdir / "metrics.jsonl"
        if log.exists() and any(f'"step": {step},' in line for line in log.read_text().splitlines()):
            return
        time.sleep(0.05)
    raise AssertionError(f"step {step} was never logged")


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The workdir of one process with one device, without interruption."""
    workdir = tmp_path_factory.mktemp("alone")
    toy.train(workdir, **{"train.steps": STEPS})
    return workdir


@pytest.fixture(scope="module")
def expected(alone):
    """The losses of one process with one device, without interruption."""
    return losses(alone)


@pytest.mark.slow
def test_two_processes_log_the_losses_of_one_and_save_all_parameters(alone, expected, tmp_path):
    np.testing.assert_allclose(run(tmp_path, 2, **{"mesh.fsdp": True}), expected, atol=1e-5, rtol=0)
    np.testing.assert_allclose(scores(tmp_path), scores(alone), rtol=1e-5)
    params = load_params(tmp_path, "last")
    assert params["embedding"]["table"].shape == (toy.VOCABULARY, toy.WIDTH)


@pytest.mark.slow
@pytest.mark.parametrize(("processes", "devices"), [(1, 2), (2, 2), (4, 1)])
@pytest.mark.parametrize("model", [1, 2])
def test_any_number_of_processes_logs_the_losses_of_one(alone, expected, tmp_path, processes, devices, model):
    found = run(tmp_path, processes, devices, **{"mesh.model": model})
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=0)
    np.testing.assert_allclose(scores(tmp_path), scores(alone), rtol=1e-5)


@pytest.mark.slow
def test_a_signal_to_one_process_ends_an_evaluation(tmp_path):
    started = start(tmp_path, 2, changes={"toy.evaluations": 1000, "toy.evaluation_pause": 0.05})
    wait_for_step(tmp_path, 8)
    time.sleep(1.0)  # an evaluation takes 50 seconds
    started[1].send_signal(signal.SIGUSR1)
    results = finish(started, seconds=20)
    assert [code for code, _ in results] == [128 + signal.SIGUSR1] * 2, results
    assert "saved at step 8" in results[0][1]
    assert scores(tmp_path) == []


@pytest.mark.slow
def test_a_checkpoint_of_four_processes_continues_in_one_and_in_two(expected, tmp_path):
    run(tmp_path, 4, **{"train.steps": 10, "mesh.fsdp": True})
    run(tmp_path, 1, **{"train.steps": 20})
    np.testing.assert_allclose(run(tmp_path, 2), expected, atol=1e-5, rtol=0)


@pytest.mark.slow
def test_a_run_in_an_object_store_is_killed_and_continues_in_two_processes_and_in_one(expected, bucket):
    workdir = path_of(f"{bucket}/run")
    for step, lost, changes in ((5, 1, {"mesh.fsdp": True}), (15, 0, {"mesh.model": 2})):
        started = start(workdir, 2, changes={"toy.pause": 0.2, **changes})
        while not is_complete(workdir / "checkpoints" / str(step)):
            assert [process.poll() for process in started] == [None, None]
            time.sleep(0.1)
        started[lost].kill()
        assert 0 not in [code for code, _ in finish(started)]
    assert len(losses(workdir)) < STEPS
    np.testing.assert_allclose(run(workdir, 1), expected, atol=1e-5, rtol=0)


@pytest.mark.slow
def test_a_signal_to_one_process_stops_all_at_the_same_step(expected, tmp_path):
    started = start(tmp_path, 2, changes={"toy.pause": 0.05})
    wait_for_step(tmp_path, 3)
    started[1].send_signal(signal.SIGUSR1)
    results = finish(started)
    assert [code for code, _ in results] == [128 + signal.SIGUSR1] * 2
    assert "saved at step" in results[0][1]
    np.testing.assert_allclose(run(tmp_path, 2), expected, atol=1e-5, rtol=0)


@pytest.mark.slow
@pytest.mark.parametrize("killed", [0, 1])
def test_when_one_process_is_killed_the_others_name_it_and_the_next_start_continues(expected, tmp_path, killed):
    started = start(tmp_path, 2, changes={"toy.pause": 0.05})
    wait_for_step(tmp_path, 7)
    started[killed].kill()
    results = finish(started, seconds=30)
    code, error = results[1 - killed]
    assert code not in (0, None)
    assert f"nmt-jax: error: process {killed} of 2 ({socket.gethostname()}) is gone" in error
    np.testing.assert_allclose(run(tmp_path, 2), expected, atol=1e-5, rtol=0)
    assert not [path for path in (tmp_path / "checkpoints").iterdir() if not path.name.isdecimal()]


@pytest.mark.slow
def test_a_process_that_is_silent_is_named(tmp_path):
    started = start(tmp_path, 2, changes={"toy.pause": 0.05})
    wait_for_step(tmp_path, 2)
    os.kill(started[1].pid, signal.SIGSTOP)
    code, error = finish(started[:1], seconds=40)[0]
    started[1].kill()
    started[1].communicate()
    assert code == 1
    assert f"process 1 of 2 ({socket.gethostname()}) has been silent for {toy.LOST_SECONDS:g} s" in error


@pytest.mark.slow
def test_a_different_config_of_one_process_is_an_error_in_all(tmp_path):
    results = finish(start(tmp_path, 2, of_one={1: {"optimizer.learning_rate": 0.5}}))
    for code, error in results:
        assert code == 2
        assert "a different config than process 0" in error
        assert "optimizer.learning_rate=0.5 instead of 0.02" in error


@pytest.mark.slow
def test_an_error_ends_all_processes(tmp_path):
    results = finish(start(tmp_path, 2, changes={"toy.poison": list(range(5, 30))}))
    assert {code for code, _ in results} <= {1, 2}
    assert "no finite loss and gradient in 10 consecutive steps" in results[0][1]


def infos(**changes):
    info = {"code": "a1b2", "versions": {"jax": "1"}, "workdir": "", "config": {"model.d_model": 8, "seed": 1}}
    return [{"process": 0, "host": "a", **info}, {"process": 1, "host": "b", **info, **changes}]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"code": "ffff"}, "process 1 (b) has different code than process 0 (a): ffff instead of a1b2"),
        ({"versions": {"jax": "2"}}, "different versions than process 0 (a): {'jax': '2'} instead of {'jax': '1'}"),
        ({"workdir": "Permission denied"}, "process 1 (b) cannot write the workdir: Permission denied"),
        ({"config": {"model.d_model": 9, "seed": 1}}, "model.d_model=9 instead of 8; start all"),
        ({"config": {"seed": 2}}, "model.d_model=None instead of 8 and 1 more keys"),
    ],
)
def test_processes_must_agree_on_config_code_and_versions(changes, message):
    assert find_difference(infos()) is None
    assert message in find_difference(infos(**changes))
