"""`nmt-jax launch`: local processes, a real SLURM, and the job files of all launchers."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from nmt_jax.__main__ import main
from tests.conftest import ROOT
from tests.fixtures import config_modules, slurm

TRAIN = ["nmt-jax", "train", f"--config={ROOT}/configs/quickstart.py:smoke=true"]
SETTINGS = {"train.steps": 12, "train.log_every": 1, "train.eval_every": 100, "train.checkpoint_every": 4}
SETTINGS |= {"eval.max_segments": 0, "train.early_stopping_metric": "loss"}


def training(workdir, **changes):
    flags = [f"--config.{key}={value}" for key, value in {**SETTINGS, **changes}.items()]
    return [*TRAIN, f"--workdir={workdir}", *flags]


SCORE = ["nmt-jax", "score", "hypothesis", "--reference=reference"]


def losses(workdir):
    rows = [json.loads(line) for line in (workdir / "metrics.jsonl").read_text().splitlines()]
    return [row["loss"] for row in rows if "loss" in row]


def dry(capsys, *arguments):
    assert main(["launch", "--dry_run", *arguments]) == 0
    return capsys.readouterr().out


# This machine


@pytest.fixture
def environment(tmp_path_factory):
    cache = tmp_path_factory.getbasetemp() / "launch_cache"
    return os.environ | {"NMT_JAX_CACHE": str(cache)}


@pytest.mark.slow
def test_two_local_processes_train_like_one(environment, tmp_path):
    for name, flags in {"one": [], "two": ["--processes=2"]}.items():
        command = [sys.executable, "-m", "nmt_jax", "launch", *flags, "--", *training(tmp_path / name)]
        finished = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)
        assert finished.returncode == 0, finished.stderr
    assert "devices: 2 x cpu (2 processes)" in finished.stderr
    np.testing.assert_allclose(losses(tmp_path / "two"), losses(tmp_path / "one"), atol=1e-5, rtol=0)


@pytest.mark.slow
def test_a_killed_process_is_named_by_launcher_and_training(environment, tmp_path):
    command = [sys.executable, "-m", "nmt_jax", "launch", "--processes=2", "--"]
    command += [*training(tmp_path, **{"train.steps": 100000}), "--lost_seconds=5"]
    started = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 300
    while not ((tmp_path / "metrics.jsonl").exists() and losses(tmp_path)):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    children = subprocess.run(["pgrep", "-P", str(started.pid), "-f", "process=1"], capture_output=True, text=True)
    os.kill(int(children.stdout.split()[0]), signal.SIGKILL)
    _, error = started.communicate(timeout=60)
    assert started.returncode == 128 + signal.SIGKILL
    assert "nmt-jax: error: process 1 of 2 was killed by SIGKILL" in error
    assert re.search(r"nmt-jax: error: process 1 of 2 \(.*\) is gone", error)


def test_local_commands(capsys):
    first, second = dry(capsys, "--processes=2", "--", *training("w")).splitlines()
    address = re.search(r"--coordinator=127\.0\.0\.1:\d+", first)[0]
    assert first.endswith(f"{address} --processes=2 --process=0")
    assert second.endswith(f"{address} --processes=2 --process=1")
    assert dry(capsys, "--", *training("w")).split() == [*training("w")]


# Text


def test_the_script_for_slurm(capsys, tmp_path):
    script = dry(capsys, "--on=slurm", "--processes=2", "--sbatch=time=4:00:00", "--", *training(tmp_path / "a b"))
    assert script.startswith("#!/bin/bash\n#SBATCH --job-name=nmt-jax\n#SBATCH --nodes=2\n#SBATCH --ntasks=2\n")
    assert "#SBATCH --time=4:00:00\n#SBATCH --requeue\n" in script
    assert f"--workdir={tmp_path}/a b'" in script
    assert subprocess.run(["bash", "-n"], input=script, text=True).returncode == 0


def test_a_sweep_is_a_job_array(capsys, tmp_path):
    sweep = ["nmt-jax", "sweep", f"--config={ROOT}/configs/rnn_luong.py", f"--workdir={tmp_path}"]
    script = dry(capsys, "--on=slurm", "--", *sweep, "--only=model.attention=global", "--only=model.score=dot")
    assert "#SBATCH --array=0-1\n" in script
    assert "1) command=(nmt-jax train " in script
    assert "input_feeding=false" in script
    assert subprocess.run(["bash", "-n"], input=script, text=True).returncode == 0


def test_the_manifest_for_kubernetes(capsys):
    flags = ["--on=kubernetes", "--processes=4", "--image=registry/nmt", "--resource=nvidia.com/gpu=8"]
    manifest = json.loads(dry(capsys, *flags, "--volume=claim:/shared", "--name=big", "--", *training("/shared/w")))
    job = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]
    assert (manifest["kind"], job["completions"], job["completionMode"]) == ("JobSet", 4, "Indexed")
    pod = job["template"]["spec"]
    command = pod["containers"][0]["command"]
    assert command[-3:] == [
        "--coordinator=big-workers-0-0.big:50000",
        "--processes=4",
        "--process=$(JOB_COMPLETION_INDEX)",
    ]
    assert pod["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": "8"}}
    assert pod["terminationGracePeriodSeconds"] == 120


def test_the_command_for_a_tpu_pod(capsys):
    printed = dry(capsys, "--on=tpu", "--zone=z", "--name=pod", "--", *training("/w"))
    assert "gcloud compute tpus tpu-vm ssh pod --zone=z --worker=all" in printed
    assert "TPU_WORKER_ID=" in printed
    assert "pip install --quiet --disable-pip-version-check './code[tpu]'\n" in printed
    assert "'./code[tpu,gs]'\n" in dry(capsys, "--on=tpu", "--zone=z", "--name=pod", "--", *training("gs://bucket/w"))
    assert subprocess.run(["bash", "-n"], input=printed, text=True).returncode == 0


def test_logs_of_a_workdir_in_an_object_store_are_local(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert f"#SBATCH --output={tmp_path}/slurm-%j.log\n" in dry(capsys, "--on=slurm", "--", *training("s3://b/w"))


def test_the_script_for_an_array_on_slurm(capsys, tmp_path):
    script = dry(capsys, "--on=slurm", "--array=8", "--", *SCORE, f"--output={tmp_path}/scores")
    assert "#SBATCH --array=0-7\n" in script
    assert f"#SBATCH --output={tmp_path}/scores.slurm-%A_%a.log\n" in script
    line = f'command=({" ".join(SCORE)} --output={tmp_path}/scores --processes=8 --process="$SLURM_ARRAY_TASK_ID")\n'
    assert line in script
    (tmp_path / "scores").touch()
    assert main(["launch", "--on=slurm", "--array=8", "--", *SCORE, f"--output={tmp_path}/scores"]) == 2
    assert "scores: exists and is complete" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "needs a command after `--`"),
        (["--", "nmt-jax", "perplexity"], "'perplexity' is not one of train, sweep"),
        (["--processes=2", "--", *SCORE], "processes write one file: nmt-jax score --output=FILE"),
        (["--on=slurm", "--array=2", "--", *training("w")], "--array divides lines among jobs: it works with"),
        (
            ["--on=slurm", "--array=2", "--processes=2", "--", *SCORE, "--output=o"],
            "--array=2 starts jobs of one process",
        ),
        (["--array=2", "--", *SCORE, "--output=o"], "--array has no effect without --on=slurm"),
        (["--", "nmt-jax", "sweep"], "sweeps need --on=slurm"),
        (["--on=kubernetes", "--", *training("w")], "needs --image"),
        (["--on=kubernetes", "--image=i", "--volume=x", "--", *training("w")], "--volume=x: expected CLAIM:/PATH"),
        (["--on=tpu", "--", *training("w")], "needs --zone"),
        (["--processes=257", "--", *training("w")], "at most 256 are possible on one machine"),
        (["--on=slurm", "--", *TRAIN], "the command needs --workdir=FOLDER"),
        (["--on=slurm", "--", "nmt-jax", "sweep", "--workdir=w"], "nmt-jax sweep needs --config"),
    ],
)
def test_invalid_arguments_are_errors(capsys, arguments, message):
    assert main(["launch", *arguments]) == 2
    assert message in capsys.readouterr().err


# A real SLURM

CREDENTIAL_SECONDS = 3  # SLURM refuses the credential of a job that starts again in the second in which it ended


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    if absent := slurm.missing():
        pytest.skip(f"install the packages slurm-wlm and munge, and run as root: {', '.join(absent)} missing")
    with slurm.running(tmp_path_factory.mktemp("slurm")) as environment:
        yield {**environment, "PATH": f"{os.path.dirname(sys.executable)}:{environment['PATH']}"}


def submit(cluster, *arguments):
    """Returns the number of the job."""
    command = [sys.executable, "-m", "nmt_jax", "launch", "--on=slurm", "--sbatch=mem=500", *arguments]
    finished = subprocess.run(command, cwd=ROOT, env=cluster, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.split()[-1]


def state(cluster, job):
    return set(re.findall(r"JobState=(\w+)", slurm.output_of(cluster, "scontrol", "show", "job", job)))


@pytest.mark.slow
def test_a_job_of_two_processes(cluster, environment, tmp_path):
    cluster = {**environment, **cluster}
    flags = ["--processes=2", "--sbatch=nodes=1", "--sbatch=overcommit="]
    job = submit(cluster, *flags, "--", *training(tmp_path / "job"))
    slurm.wait_for(lambda: state(cluster, job) <= {"COMPLETED", "FAILED"}, 300, "the job does not end")
    log = (tmp_path / "job" / f"slurm-{job}.log").read_text()
    assert state(cluster, job) == {"COMPLETED"}, log
    assert "devices: 2 x cpu (2 processes)" in log
    assert len(losses(tmp_path / "job")) == SETTINGS["train.steps"]


@pytest.mark.slow
def test_sbatch_reads_quoted_values_and_the_log_is_in_a_folder_with_a_strange_name(cluster, tmp_path):
    folder = tmp_path / "a b'\"%j # c"
    job = submit(cluster, '--sbatch=job-name=two "words" # c', "--", "nmt-jax", "train", f"--workdir={folder}")
    slurm.wait_for(lambda: state(cluster, job) <= {"COMPLETED", "FAILED"}, 100, "the job does not end")
    assert 'JobName=two "words" # c\n' in slurm.output_of(cluster, "scontrol", "show", "job", job)
    assert "nmt-jax train needs --config=FILE" in (folder / f"slurm-{job}.log").read_text()


@pytest.mark.slow
def test_an_array_of_three_points(cluster, environment, tmp_path):
    cluster = {**environment, **cluster}
    page = tmp_path / "page.py"
    page.write_text((ROOT / "configs" / "quickstart.py").read_text() + SWEEP)
    config_modules.copy_to(tmp_path)
    changes = [f"--config.{key}={value}" for key, value in SETTINGS.items()]
    sweep = ["nmt-jax", "sweep", f"--config={page}:smoke=true", f"--workdir={tmp_path / 'sweep'}", *changes]
    job = submit(cluster, "--", *sweep)
    slurm.wait_for(lambda: state(cluster, job) <= {"COMPLETED", "FAILED"}, 400, "the array does not end")
    assert state(cluster, job) == {"COMPLETED"}
    for size in (16, 32, 48):
        assert len(losses(tmp_path / "sweep" / f"d_ff={size}")) == SETTINGS["train.steps"]


@pytest.mark.slow
def test_an_array_scores_lines_and_one_job_is_requeued(cluster, environment, tmp_path):
    cluster = {**environment, **cluster}
    chance = np.random.default_rng(0)
    for name in ("hypothesis", "reference"):
        words = chance.integers(0, 500, (100_000, 12))
        (tmp_path / name).write_text("".join(" ".join(map(str, row)) + "\n" for row in words))
    score = ["nmt-jax", "score", str(tmp_path / "hypothesis"), f"--reference={tmp_path / 'reference'}"]
    score += ["--metrics=chrf", "--segments", "--format=tsv"]
    command = [sys.executable, "-m", "nmt_jax", *score[1:]]
    whole = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=True)
    output, parts = tmp_path / "scores", tmp_path / "scores.parts"
    job = submit(cluster, "--array=8", "--", *score, f"--output={output}")

    def part_of(process):
        return any(int(path.stem) % 8 == process for path in parts.glob("*.part"))

    slurm.wait_for(lambda: part_of(3) or output.exists(), 200, "job 3 did not begin")
    slurm.output_of(cluster, "scancel", "--signal=USR1", "--batch", f"{job}_3")
    shown = ["scontrol", "show", "job", f"{job}_3"]
    slurm.wait_for(lambda: "Restarts=1" in slurm.output_of(cluster, *shown), 60, "job 3 was not queued again")
    time.sleep(CREDENTIAL_SECONDS)

    def ended():
        slurm.output_of(cluster, "scontrol", "update", f"JobId={job}_3", "StartTime=now")  # else minutes later
        return state(cluster, job) <= {"COMPLETED", "FAILED"}

    slurm.wait_for(ended, 400, "the array does not end")
    logs = [path.name + "\n" + path.read_text() for path in sorted(tmp_path.glob("scores.slurm-*.log"))]
    assert state(cluster, job) == {"COMPLETED"}, "\n".join(logs)
    assert output.read_bytes() == whole.stdout
    assert not parts.exists()


SWEEP = '''

def sweep(add):
    """Three sizes."""
    for size in (16, 32, 48):
        add({"model.d_ff": size})
'''


@pytest.mark.slow
def test_a_signal_saves_and_the_requeued_job_continues(cluster, environment, tmp_path):
    cluster = {**environment, **cluster}
    steps = {"train.steps": 4000, "train.checkpoint_every": 4000}
    job = submit(cluster, "--", *training(tmp_path, **steps))
    log = tmp_path / "metrics.jsonl"
    slurm.wait_for(lambda: log.exists() and losses(tmp_path), 300, "no step was logged")
    slurm.output_of(cluster, "scancel", "--signal=USR1", "--batch", job)
    slurm.wait_for(lambda: state(cluster, job) == {"PENDING"}, 60, "the job was not queued again")
    saved = int(re.search(r"saved at step (\d+)", (tmp_path / f"slurm-{job}.log").read_text())[1])
    assert saved > 0

    def continued():
        slurm.output_of(cluster, "scontrol", "update", f"JobId={job}", "StartTime=now")  # else minutes later
        return f"continued at step {saved}" in (tmp_path / f"slurm-{job}.log").read_text()

    time.sleep(CREDENTIAL_SECONDS)
    slurm.wait_for(continued, 200, "no restart")
