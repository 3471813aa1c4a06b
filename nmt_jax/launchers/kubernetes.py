"""A manifest for Kubernetes with JobSet, which restarts all processes together if one fails.

It follows the documentation of Kubernetes (indexed jobs, `$(JOB_COMPLETION_INDEX)`) and of JobSet (host names
NAME-REPLICATED_JOB-0-INDEX.NAME, failurePolicy).
"""

import json
from collections.abc import Sequence
from typing import Any

from absl import flags

from nmt_jax import config as configs
from nmt_jax.errors import UserError
from nmt_jax.launchers.names import CLAIM, IMAGE, LABEL, QUANTITY, RESOURCE, checked

PORT = 50000
RESTARTS = 20


def launch(flag_values: flags.FlagValues, command: Sequence[str]) -> int:
    """Prints the manifest of `command` as JSON, which `kubectl apply -f -` reads."""
    if not flag_values.image:
        raise UserError("nmt-jax launch --on=kubernetes needs --image=IMAGE, a container image with nmt-jax installed")
    print(json.dumps(write_manifest(flag_values, command), indent=2))
    return 0


def write_manifest(flag_values: flags.FlagValues, command: Sequence[str]) -> dict[str, Any]:
    """Returns the JobSet of `command`: one indexed job with a pod per process; SIGTERM leaves `grace` seconds."""
    processes = flag_values.processes
    longest = 63 - len(f"-workers-0-{processes - 1}-abcde")  # the name of a pod is a host name
    name = checked("name", flag_values.name, LABEL, longest)
    start = ["nmt-jax", *(argument.replace("$", "$$") for argument in command)]  # $(NAME) would be replaced
    if processes > 1:
        start += [f"--coordinator={name}-workers-0-0.{name}:{PORT}", f"--processes={processes}"]
        start.append("--process=$(JOB_COMPLETION_INDEX)")
    container: dict[str, Any] = {"name": "train", "image": checked("image", flag_values.image, IMAGE), "command": start}
    pod: dict[str, Any] = {"restartPolicy": "Never", "terminationGracePeriodSeconds": flag_values.grace}
    pod["containers"] = [container]
    if flag_values.resource:
        limits = map(configs.split_override, flag_values.resource)
        container["resources"] = {
            "limits": {
                checked("resource", key, RESOURCE): checked("resource", count, QUANTITY) for key, count in limits
            }
        }
    if flag_values.volume:
        claim, colon, path = flag_values.volume.partition(":")
        if not (claim and colon and path.startswith("/")) or ":" in path:
            raise UserError(f"--volume={flag_values.volume}: expected CLAIM:/PATH")
        checked("volume", claim, CLAIM)
        pod["volumes"] = [{"name": "shared", "persistentVolumeClaim": {"claimName": claim}}]
        container["volumeMounts"] = [{"name": "shared", "mountPath": path}]
    job = {"completionMode": "Indexed", "completions": processes, "parallelism": processes, "backoffLimit": 0}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": {"maxRestarts": RESTARTS},
            "replicatedJobs": [
                {"name": "workers", "replicas": 1, "template": {"spec": {**job, "template": {"spec": pod}}}}
            ],
        },
    }
