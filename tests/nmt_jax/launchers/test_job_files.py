"""The job files in launch/ are what `nmt-jax launch --dry_run` prints.

After a deliberate change, `python -m tests.nmt_jax.launchers.test_job_files` writes them again.
"""

import contextlib
import io
import json
import subprocess

import pytest

from nmt_jax import __main__ as cli
from tests.conftest import ROOT

TRAIN = "-- nmt-jax train --config=configs/transformer.py:size=big --workdir=/shared/runs/big"
SWEEP = "-- nmt-jax sweep --config=configs/rnn_luong.py --only=model.attention=global --workdir=/shared/runs/luong"
SCORE = (
    "-- nmt-jax score /shared/hypothesis.txt --reference=/shared/reference.txt --metrics=bertscore "
    "--encoder=/shared/models/bert --segments --output=/shared/scores.tsv"
)
FILES = {
    "slurm.sbatch": f"--on=slurm --processes=4 --sbatch=gpus-per-node=8 --sbatch=time=24:00:00 {TRAIN}",
    "slurm_sweep.sbatch": f"--on=slurm --sbatch=gpus=1 --sbatch=time=4:00:00 {SWEEP}",
    "slurm_array.sbatch": f"--on=slurm --array=8 --sbatch=gpus=1 --sbatch=time=4:00:00 {SCORE}",
    "kubernetes.json": "--on=kubernetes --processes=4 --image=registry.example.com/nmt-jax "
    "--resource=nvidia.com/gpu=8 --node_selector=cloud.google.com/gke-accelerator=nvidia-h100-80gb "
    f"--volume=shared:/shared {TRAIN}",
    "kubernetes_tpu.json": "--on=kubernetes --tpu=v5e:4x4 --image=registry.example.com/nmt-jax "
    f"--volume=shared:/shared {TRAIN}",
    "tpu_pod.sh": f"--on=tpu --name=pod --zone=us-central2-b {TRAIN}",
}


def job_file(name: str) -> str:
    """Returns the content of a job file."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        assert cli.main(["launch", "--dry_run", *FILES[name].split()]) == 0
    return output.getvalue()


@pytest.mark.parametrize("name", FILES)
def test_a_job_file_is_what_a_dry_run_prints(name, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert (ROOT / "launch" / name).read_text(encoding="utf-8") == job_file(name)


def test_job_files_are_valid():
    names = sorted(path.name for path in (ROOT / "launch").iterdir())
    assert names == sorted(FILES)
    for name in names:
        text = (ROOT / "launch" / name).read_text(encoding="utf-8")
        if name.endswith(".json"):
            assert json.loads(text)["kind"] == "JobSet"
        else:
            assert subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0


if __name__ == "__main__":
    for file in FILES:
        (ROOT / "launch" / file).write_text(job_file(file), encoding="utf-8")
