"""A manifest for Kubernetes with JobSet, which restarts all processes together if one fails.

It follows the documentation of Kubernetes (indexed jobs, `$(JOB_COMPLETION_INDEX)`), of JobSet (a headless service,
host names NAME-REPLICATED_JOB-0-INDEX.NAME, failurePolicy), and of Google Kubernetes Engine (labels of TPU nodes).
"""

import json
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from absl import flags

from nmt_jax import config as configs
from nmt_jax.errors import UserError
from nmt_jax.launchers.names import CLAIM, IMAGE, LABEL, NAME, QUANTITY, RESOURCE, checked

PORT = 50000
RESTARTS = 20
TPU_NODES = {  # label of the nodes, and the numbers of chips of one host: "TPUs in GKE", machine types
    "v4": ("tpu-v4-podslice", (4,)),
    "v5e": ("tpu-v5-lite-podslice", (1, 4, 8)),
    "v5p": ("tpu-v5p-slice", (4,)),
    "v6e": ("tpu-v6e-slice", (1, 4, 8)),
}
CHIPS_PER_HOST = 4  # of slices of several hosts


class Slice(NamedTuple):
    """A TPU slice: `accelerator` and `topology` as the nodes are labelled, its hosts, and the chips of each."""

    accelerator: str
    topology: str
    hosts: int
    chips: int


def parse_slice(text: str) -> Slice:
    """Parse TYPE:TOPOLOGY, such as v5e:4x4; raises UserError if there is no such slice."""
    kind, _, topology = text.partition(":")
    dimensions = 2 if kind in ("v5e", "v6e") else 3
    if kind not in TPU_NODES or not re.fullmatch(rf"[1-9]\d*(x[1-9]\d*){{{dimensions - 1}}}", topology):
        raise UserError(
            f"--tpu={text}: expected TYPE:TOPOLOGY of a slice, such as v5e:4x4 or v5p:2x2x4; the types are "
            f"{', '.join(TPU_NODES)}"
        )
    accelerator, single = TPU_NODES[kind]
    chips = math.prod(map(int, topology.split("x")))
    if chips in single:
        return Slice(accelerator, topology, 1, chips)
    if chips % CHIPS_PER_HOST:
        raise UserError(f"--tpu={text}: {chips} chips; a slice of several hosts has {CHIPS_PER_HOST} on each")
    return Slice(accelerator, topology, chips // CHIPS_PER_HOST, CHIPS_PER_HOST)


def launch(flag_values: flags.FlagValues, command: Sequence[str]) -> int:
    """Prints the manifest of `command` as JSON, which `kubectl apply -f -` reads."""
    if not flag_values.image:
        raise UserError("nmt-jax launch --on=kubernetes needs --image=IMAGE, a container image with nmt-jax installed")
    print(json.dumps(write_manifest(flag_values, command), indent=2))
    return 0


def write_manifest(flag_values: flags.FlagValues, command: Sequence[str]) -> dict[str, Any]:
    """Returns the JobSet of `command`: one indexed job with a pod per process; SIGTERM leaves `grace` seconds."""
    tpu = parse_slice(flag_values.tpu) if flag_values.tpu else None
    processes = tpu.hosts if tpu and not flag_values["processes"].present else flag_values.processes
    if tpu and processes != tpu.hosts:
        raise UserError(f"--tpu={flag_values.tpu} has {tpu.hosts} hosts: --processes={processes} does not fit")
    metadata: dict[str, Any] = {}
    longest = 63 - len(f"-workers-0-{processes - 1}-abcde")  # the name of a pod is a host name
    name = checked("name", flag_values.name, LABEL, longest)
    start = ["nmt-jax", *(argument.replace("$", "$$") for argument in command)]  # $(NAME) would be replaced
    if processes > 1:
        start += [f"--coordinator={name}-workers-0-0.{name}:{PORT}", f"--processes={processes}"]
        start.append("--process=$(JOB_COMPLETION_INDEX)")
    image = checked("image", flag_values.image, IMAGE)
    # Processes on one host exchange data in /dev/shm, of which containers have 64 MiB.
    mounts = [{"name": "shm", "mountPath": "/dev/shm"}]
    volumes: list[dict[str, Any]] = [{"name": "shm", "emptyDir": {"medium": "Memory"}}]
    container: dict[str, Any] = {"name": "nmt-jax", "image": image, "command": start, "volumeMounts": mounts}
    pod: dict[str, Any] = {"restartPolicy": "Never", "terminationGracePeriodSeconds": flag_values.grace}
    pod |= {"containers": [container], "volumes": volumes}
    limits = {
        checked("resource", key, RESOURCE): checked("resource", count, QUANTITY)
        for key, count in map(configs.split_override, flag_values.resource)
    }
    selector = {
        checked("node_selector", key, RESOURCE): checked("node_selector", value, NAME)
        for key, value in map(configs.split_override, flag_values.node_selector)
    }
    if tpu:
        limits["google.com/tpu"] = str(tpu.chips)
        selector["cloud.google.com/gke-tpu-accelerator"] = tpu.accelerator
        selector["cloud.google.com/gke-tpu-topology"] = tpu.topology
        # All pods on the nodes of one slice.
        metadata["annotations"] = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "cloud.google.com/gke-nodepool"}
    if limits:
        container["resources"] = {"limits": limits}
    if selector:
        pod["nodeSelector"] = selector
    if flag_values.volume:
        claim, colon, path = flag_values.volume.partition(":")
        if not (claim and colon and path.startswith("/")) or ":" in path:
            raise UserError(f"--volume={flag_values.volume}: expected CLAIM:/PATH")
        checked("volume", claim, CLAIM)
        volumes.append({"name": "shared", "persistentVolumeClaim": {"claimName": claim}})
        mounts.append({"name": "shared", "mountPath": path})
    job = {"completionMode": "Indexed", "completions": processes, "parallelism": processes, "backoffLimit": 0}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name} | metadata,
        "spec": {
            "network": {"enableDNSHostnames": True},  # a headless service, which makes the names of the hosts
            "failurePolicy": {"maxRestarts": RESTARTS},
            "replicatedJobs": [
                {"name": "workers", "replicas": 1, "template": {"spec": {**job, "template": {"spec": pod}}}}
            ],
        },
    }
