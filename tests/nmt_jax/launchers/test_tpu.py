"""The script for TPU pods, with a `gcloud` that runs the commands for each host in a folder of this machine."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest

from tests.conftest import ROOT

# ssh runs the command on two hosts at once, scp copies to both; the first connection that follows a log is cut.
GCLOUD = """#!/bin/bash
echo "$@" >> "$HOSTS/calls"
verb=$4
for argument; do case $argument in --command=*) command=${argument#--command=} ;; esac; done
limit=600
if [[ $verb == ssh && $command == *tail* && ! -e $HOSTS/cut ]]; then touch "$HOSTS/cut"; limit=2; fi
processes=()
for host in 0 1; do
    if [ "$verb" = scp ]; then
        cp "$5" "$HOSTS/$host/${6#*:}" & processes+=($!)
    else
        (export HOME=$HOSTS/$host WORKER=$host; cd "$HOME" && exec timeout $limit bash -c "$command") & processes+=($!)
    fi
done
code=0
for process in "${processes[@]}"; do wait "$process" || code=255; done
exit $code
"""
CURL = """#!/bin/bash
case "${@: -1}" in
    */agent-worker-number) echo "$WORKER" ;;
    */worker-network-endpoints) echo "a:b:127.0.0.1,c:d:127.0.0.1" ;;
esac
"""
PIP = """#!/bin/bash
test -e code/pyproject.toml -a -e code/nmt_jax/__main__.py
"""
PROGRAM = f"""#!/bin/bash
cd ~/nmt-jax/code && PYTHONPATH=$PWD exec {sys.executable} -m nmt_jax "$@"
"""


def write_program(path: pathlib.Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def environment(tmp_path):
    """Two hosts with installed environments, and the tools that reach them."""
    for host in ("0", "1"):
        for name, text in {"pip": PIP, "nmt-jax": PROGRAM}.items():
            write_program(tmp_path / "hosts" / host / "nmt-jax" / "venv" / "bin" / name, text)
    for name, text in {"gcloud": GCLOUD, "curl": CURL}.items():
        write_program(tmp_path / "bin" / name, text)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    hosts, cache = str(tmp_path / "hosts"), str(tmp_path / "cache")
    return os.environ | {"PATH": path, "HOSTS": hosts, "RETRY_SECONDS": "1", "NMT_JAX_CACHE": cache}


def launch(environment, *command):
    start = [sys.executable, "-m", "nmt_jax", "launch", "--on=tpu", "--name=pod", "--zone=z", "--", *command]
    return subprocess.run(start, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=300)


def test_exit_codes_of_all_hosts_are_collected(environment, tmp_path):
    finished = launch(environment, "nmt-jax", "score", "hypothesis", "--reference=missing", "--output=o")
    assert finished.returncode == 2, finished.stderr
    assert set(re.findall(r"worker \d ended with code \d", finished.stdout)) == {
        "worker 0 ended with code 2",
        "worker 1 ended with code 2",
    }
    assert "kill -TERM" in finished.stderr
    for host in ("0", "1"):
        assert (tmp_path / "hosts" / host / "nmt-jax" / "exit_code").read_text() == "2\n"


def test_a_checkout_without_gcloud(environment, tmp_path):
    finished = launch(environment | {"PATH": str(tmp_path)}, "nmt-jax", "train", "--workdir=w")
    assert finished.returncode == 2
    assert (
        finished.stderr == "nmt-jax: error: nmt-jax launch --on=tpu: gcloud not found; install the Google Cloud CLI\n"
    )


@pytest.mark.slow
def test_a_run_survives_a_lost_connection_and_the_end_of_the_launcher(environment, tmp_path):
    train = ["nmt-jax", "train", "--config=configs/quickstart.py:smoke=true", f"--workdir={tmp_path / 'w'}"]
    train += ["--config.train.steps=100000", "--config.train.checkpoint_every=100000"]
    start = [sys.executable, "-m", "nmt_jax", "launch", "--on=tpu", "--name=pod", "--zone=z", "--", *train]
    with open(tmp_path / "first", "w") as log:
        first = subprocess.Popen(start, env=environment, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)
    metrics = tmp_path / "w" / "metrics.jsonl"
    deadline = time.monotonic() + 200
    while not (metrics.exists() and '"loss"' in metrics.read_text()):
        assert time.monotonic() < deadline, (tmp_path / "first").read_text()
        time.sleep(0.5)
    os.killpg(first.pid, signal.SIGKILL)  # the launcher and its connections
    first.wait()
    assert "the connection is lost, the run goes on" in (tmp_path / "first").read_text()
    second = subprocess.Popen(
        start, env=environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    time.sleep(5)
    pid = (tmp_path / "hosts" / "0" / "nmt-jax" / "pid").read_text().strip()
    os.killpg(int(pid), signal.SIGTERM)  # of one host: both save and stop
    output, errors = second.communicate(timeout=120)
    assert "a run goes on here" in output
    assert "devices: 2 x cpu (2 processes)" in (tmp_path / "hosts" / "0" / "nmt-jax" / "log").read_text()
    assert second.returncode == 143, output + errors
    assert len(re.findall(r"worker \d ended with code 143", output)) == 2
