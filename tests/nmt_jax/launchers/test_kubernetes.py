"""Manifests: valid by the schemas of JobSet and of Kubernetes, and on the nodes that were asked for."""

import importlib.resources
import json

import jsonschema
import pytest

from nmt_jax.launchers.kubernetes import parse_slice
from tests.conftest import ROOT

VERSION = "1.35"  # of Kubernetes, as in tests/fixtures/jobset_schema.json
TRAIN = ("--", "nmt-jax", "train", "--config=c", "--workdir=/shared/w")


@pytest.fixture(scope="module")
def check():
    """Raise ValidationError for an invalid JobSet; its template is checked as the job that it makes."""
    of_set = json.loads((ROOT / "tests" / "fixtures" / "jobset_schema.json").read_text())
    folder = importlib.resources.files("kubernetes_validate") / "kubernetes-json-schema"
    name = next(one.name for one in folder.iterdir() if one.name.startswith(f"v{VERSION}.") and "strict" in one.name)
    definitions = json.loads((folder / name / "_definitions.json").read_text())
    schema = {**definitions, "$ref": "#/$defs/io.k8s.api.batch.v1.Job"}
    of_job = jsonschema.Draft202012Validator(schema)

    def run(manifest):
        jsonschema.validate(manifest, of_set)
        for job in manifest["spec"]["replicatedJobs"]:
            of_job.validate({"apiVersion": "batch/v1", "kind": "Job", **job["template"]})

    return run


@pytest.fixture
def manifest(nmt_jax):
    def run(*flags):
        finished = nmt_jax("launch", "--dry_run", "--on=kubernetes", "--image=i", *flags, *TRAIN)
        assert (finished.code, finished.stderr) == (0, "")
        return json.loads("\n".join(finished.lines))

    return run


def pod_of(manifest):
    return manifest["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]


@pytest.mark.parametrize(
    "flags",
    [
        (),
        ("--processes=4", "--resource=nvidia.com/gpu=8", "--resource=memory=64Gi", "--volume=claim:/shared"),
        ("--tpu=v5e:4x4", "--volume=claim:/shared"),
        ("--processes=2", "--node_selector=cloud.google.com/gke-accelerator=nvidia-h100-80gb", "--grace=30"),
    ],
)
def test_manifests_are_valid(flags, manifest, check):
    check(manifest(*flags))


def test_an_invalid_manifest_is_found(manifest, check):
    for change in (
        lambda found: found["spec"].update(netwrok={}),
        lambda found: found["spec"]["failurePolicy"].update(maxRestarts="20"),
        lambda found: pod_of(found).update(nodeSelectors={}),
        lambda found: pod_of(found)["containers"][0].update(volumeMount=[]),
        lambda found: pod_of(found)["volumes"][0]["emptyDir"].update(medium=1),
    ):
        wrong = manifest()
        change(wrong)
        with pytest.raises(jsonschema.ValidationError):
            check(wrong)


def test_shared_memory_and_nodes(manifest):
    pod = pod_of(manifest("--node_selector=cloud.google.com/gke-accelerator=nvidia-h100-80gb"))
    assert pod["nodeSelector"] == {"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}
    assert {"name": "shm", "mountPath": "/dev/shm"} in pod["containers"][0]["volumeMounts"]
    assert {"name": "shm", "emptyDir": {"medium": "Memory"}} in pod["volumes"]


@pytest.mark.parametrize(
    ("text", "accelerator", "hosts", "chips"),
    [
        ("v5e:1x1", "tpu-v5-lite-podslice", 1, 1),
        ("v5e:2x2", "tpu-v5-lite-podslice", 1, 4),
        ("v5e:2x4", "tpu-v5-lite-podslice", 1, 8),
        ("v5e:16x16", "tpu-v5-lite-podslice", 64, 4),
        ("v5p:2x2x1", "tpu-v5p-slice", 1, 4),
        ("v5p:2x2x4", "tpu-v5p-slice", 4, 4),
        ("v6e:4x8", "tpu-v6e-slice", 8, 4),
        ("v4:2x2x2", "tpu-v4-podslice", 2, 4),
    ],
)
def test_tpu_slices(text, accelerator, hosts, chips, manifest):
    assert parse_slice(text) == (accelerator, text.partition(":")[2], hosts, chips)
    found = manifest(f"--tpu={text}")
    pod = pod_of(found)
    assert pod["containers"][0]["resources"]["limits"] == {"google.com/tpu": str(chips)}
    assert pod["nodeSelector"]["cloud.google.com/gke-tpu-topology"] == text.partition(":")[2]
    assert found["spec"]["replicatedJobs"][0]["template"]["spec"]["completions"] == hosts


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--tpu=v5e",), "--tpu=v5e: expected TYPE:TOPOLOGY"),
        (("--tpu=v5e:2x2x2",), "expected TYPE:TOPOLOGY"),
        (("--tpu=v5p:4x4",), "expected TYPE:TOPOLOGY"),
        (("--tpu=v9:4x4",), "the types are v4, v5e, v5p, v6e"),
        (("--tpu=v5e:3x3",), "9 chips; a slice of several hosts has 4 on each"),
        (("--tpu=v5e:4x4", "--processes=2"), "--tpu=v5e:4x4 has 4 hosts: --processes=2 does not fit"),
        (("--node_selector=a b=c",), "--node_selector"),
    ],
)
def test_wrong_slices(flags, words, mistake):
    assert words in mistake("launch", "--on=kubernetes", "--image=i", *flags, *TRAIN)
