"""Hostile names and arguments: refused, or passed on unchanged by the scripts, which are run here."""

import json
import os
import shlex
import subprocess

import pytest

from nmt_jax.launchers.names import IMAGE, LABEL, NAME, checked, value_of
from tests.conftest import ROOT

HOSTILE = ["x; touch pwned", "$(touch pwned)", "`touch pwned`", "a b", "'", '"', "\\", "#", "-x", "é%j", "a\nb", ""]
ARGUMENTS = ["--config.x=a b", "--config.y='\"\\", "--config.z=$(touch pwned)`touch pwned`", "--config.p=*;#&|{}%j"]
RECORD = """#!/bin/bash
printf '%s\\0' "$@" >> "$RECORD"
"""


@pytest.fixture
def run_script(tmp_path):
    """Run a script with programs that only record their arguments; returns these."""
    programs, folder = tmp_path / "programs", tmp_path / "folder"
    programs.mkdir()
    folder.mkdir()
    for name in ("srun", "scontrol", "nmt-jax"):
        (programs / name).write_text(RECORD)
        (programs / name).chmod(0o755)
    (programs / "curl").symlink_to("/bin/true")

    def run(script: str) -> list[str]:
        record = tmp_path / "record"
        environment = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}", "RECORD": str(record)}
        finished = subprocess.run(["bash"], input=script, text=True, cwd=folder, env=environment, capture_output=True)
        assert (finished.returncode, finished.stderr) == (0, "")
        assert list(folder.iterdir()) == []
        return record.read_text().split("\0")[:-1]

    return run


@pytest.fixture
def dry(nmt_jax, tmp_path):
    """What `nmt-jax launch --dry_run` prints for a training with hostile arguments."""

    def run(*flags: str, workdir: str = "a b'$(touch pwned)%j") -> str:
        finished = nmt_jax("launch", "--dry_run", *flags, "--", "nmt-jax", *training(tmp_path / workdir))
        assert (finished.code, finished.stderr) == (0, "")
        return "\n".join(finished.lines) + "\n"

    return run


def training(workdir):
    return ["train", f"--config={ROOT}/configs/quickstart.py", f"--workdir={workdir}", *ARGUMENTS]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("flags", [("--on=slurm",), ("--on=kubernetes", "--image=i"), ("--on=tpu", "--zone=z")])
def test_a_hostile_name_is_refused(flags, name, mistake):
    assert "--name" in mistake("launch", *flags, f"--name={name}", "--", "nmt-jax", "train", "--workdir=w")


@pytest.mark.parametrize("name", ["Foo_Bar", "foo.bar", "x" * 60, "1a"])
def test_kubernetes_names_are_parts_of_host_names(name, mistake, dry):
    flags = ("--on=kubernetes", "--image=i")
    assert name in mistake("launch", *flags, f"--name={name}", "--", "nmt-jax", "train", "--workdir=w")
    assert json.loads(dry(*flags, "--name=foo-bar"))["metadata"] == {"name": "foo-bar"}


@pytest.mark.parametrize(
    "flags",
    [
        ("--on=slurm", "--sbatch=a b=c"),
        ("--on=kubernetes", "--image=a b"),
        ("--on=kubernetes", "--image=-x"),
        ("--on=kubernetes", "--image=i", "--resource=a b=1"),
        ("--on=kubernetes", "--image=i", "--resource=cpu=many"),
        ("--on=kubernetes", "--image=i", "--volume=A_b:/x"),
        ("--on=kubernetes", "--image=i", "--volume=a:/x:y"),
        ("--on=tpu", "--zone=z --project=other"),
        ("--on=local", "--sbatch=time=1"),
        ("--on=slurm", "--devices=2"),
    ],
)
def test_other_values_are_checked(flags, mistake):
    assert flags[-1].split("=")[0] in mistake("launch", *flags, "--", "nmt-jax", "train", "--workdir=w")


def test_an_argument_of_two_lines_is_refused(mistake):
    error = mistake("launch", "--on=slurm", "--", "nmt-jax", "train", "--workdir=a\nb")
    assert "'--workdir=a\\nb' contains a control character" in error
    error = mistake(
        "launch", "--on=slurm", "--sbatch=time=1\n#SBATCH --wrap=x", "--", "nmt-jax", "train", "--workdir=w"
    )
    assert "'time=1\\n#SBATCH --wrap=x' contains a control character" in error


def test_the_script_for_slurm_passes_arguments_on(dry, run_script, tmp_path):
    script = dry("--on=slurm", '--sbatch=comment=two "words" # \\', "--sbatch=exclusive=")
    expected = training(tmp_path / "a b'$(touch pwned)%j")
    assert run_script(script) == ["--kill-on-bad-exit=1", "nmt-jax", *expected]
    lines = [line for line in script.splitlines() if line.startswith("#SBATCH")]
    options = [shlex.split(line)[1:] for line in lines]
    assert all(len(words) == 1 for words in options)
    assert f"--output={tmp_path}/a b'$(touch pwned)%%j/slurm-%j.log" in [words[0] for words in options]
    assert '--comment=two "words" # \\' in [words[0] for words in options]


def test_the_manifest_for_kubernetes_replaces_no_variables(dry, tmp_path):
    manifest = json.loads(dry("--on=kubernetes", "--image=i"))
    pod = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    command = pod["containers"][0]["command"]
    assert [argument.replace("$$", "$") for argument in command[1:]] == training(tmp_path / "a b'$(touch pwned)%j")
    assert "$(" not in "".join(command).replace("$$", "")


def test_commands_for_a_tpu_pod_and_this_machine_pass_arguments_on(dry, run_script, tmp_path):
    expected = training(tmp_path / "a b'$(touch pwned)%j")
    script = dry("--on=tpu", "--zone=z", "--name=pod")
    start = script.partition("start=$(cat << 'END'\n")[2].partition("\nEND\n")[0]
    (tmp_path / "nmt-jax" / "code").mkdir(parents=True)
    assert run_script(f"{start.replace('~', shlex.quote(str(tmp_path)))}\nwait") == expected
    (tmp_path / "record").unlink()
    assert run_script(dry()) == expected


def test_names_that_are_usual():
    for pattern, text in ((NAME, "nmt-jax"), (NAME, "Big_run.2"), (LABEL, "big"), (IMAGE, "ghcr.io/a/b:1@sha256:0")):
        assert checked("name", text, pattern) == text


def test_the_last_value_of_a_flag_counts():
    assert value_of("output", ["translate", "--output=a", "--input", "x", "-output", "b"]) == "b"
    assert value_of("output", ["translate", "--output", "a", "--output=b"]) == "b"
    assert value_of("output", ["translate", "--outputs=a"]) is None
