"""TPU pod slices: runs the command on every host over ssh, with the command-line tool of Google Cloud.

It follows the documentation of Cloud TPU: the metadata of each host contain its number and the addresses of all hosts.
"""

import shlex
import subprocess
from collections.abc import Sequence

from absl import flags

from nmt_jax.errors import UserError
from nmt_jax.launchers.names import LABEL, checked

METADATA = "http://metadata.google.internal/computeMetadata/v1/instance/attributes"

SCRIPT = """read_metadata() {{ curl -sf -H 'Metadata-Flavor: Google' {metadata}/"$1"; }}
export TPU_WORKER_ID=$(read_metadata agent-worker-number)
export TPU_WORKER_HOSTNAMES=$(read_metadata worker-network-endpoints | tr , '\\n' | cut -d : -f 3 | paste -s -d ,)
exec {command}"""


def launch(flag_values: flags.FlagValues, command: Sequence[str]) -> int:
    """Runs `command` on every host of the TPU `name` and returns the exit code."""
    if not flag_values.zone:
        raise UserError("nmt-jax launch --on=tpu needs --zone=ZONE, and the --name of the TPU")
    remote = SCRIPT.format(metadata=METADATA, command=shlex.join(["nmt-jax", *command]))
    name, zone = (checked(flag, str(flag_values[flag].value), LABEL, 63) for flag in ("name", "zone"))
    process = ["gcloud", "compute", "tpus", "tpu-vm", "ssh", name, f"--zone={zone}"]
    process += ["--worker=all", f"--command={remote}"]
    if flag_values.dry_run:
        print(shlex.join(process))
        return 0
    try:
        return subprocess.run(process, check=False).returncode
    except FileNotFoundError:
        raise UserError("nmt-jax launch --on=tpu: gcloud not found; install the Google Cloud CLI") from None
