"""All hosts of a TPU pod slice: the command is run on each over ssh, by the tool that Google Cloud comes with.

Written after the documentation of Cloud TPU: each host finds its number and the addresses of all in its metadata.
"""

import shlex
import subprocess
from collections.abc import Sequence

from absl import flags

from nmt_jax.errors import UserError

METADATA = "http://metadata.google.internal/computeMetadata/v1/instance/attributes"

SCRIPT = """read_metadata() {{ curl -sf -H 'Metadata-Flavor: Google' {metadata}/"$1"; }}
export TPU_WORKER_ID=$(read_metadata agent-worker-number)
export TPU_WORKER_HOSTNAMES=$(read_metadata worker-network-endpoints | tr , '\\n' | cut -d : -f 3 | paste -s -d ,)
exec {command}"""


def launch(flag_values: flags.FlagValues, command: Sequence[str]) -> int:
    """Run `command` on every host of the TPU `name` -> the exit code; again, it goes on where the run stopped."""
    if not flag_values.zone:
        raise UserError("nmt-jax launch --on=tpu needs --zone=ZONE, and --name=NAME of the TPU")
    remote = SCRIPT.format(metadata=METADATA, command=shlex.join(["nmt-jax", *command]))
    process = ["gcloud", "compute", "tpus", "tpu-vm", "ssh", flag_values.name, f"--zone={flag_values.zone}"]
    process += ["--worker=all", f"--command={remote}"]
    if flag_values.dry_run:
        print(shlex.join(process))
        return 0
    try:
        return subprocess.run(process, check=False).returncode
    except FileNotFoundError:
        raise UserError("nmt-jax launch --on=tpu: there is no gcloud here: install the Google Cloud CLI") from None
