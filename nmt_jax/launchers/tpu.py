"""TPU pod slices: installs the code on every host, starts the command there, and follows it until all have ended.

The script talks to the hosts through the command-line tool of Google Cloud, as the documentation of Cloud TPU describes
it: the metadata of each host contain its number and the addresses of all hosts. The command runs on without the
connection; the script connects again when it is lost, and the same command attaches to a run that goes on.
"""

import pathlib
import shlex
import shutil
import subprocess
from collections.abc import Sequence

from absl import flags

from nmt_jax.errors import UserError
from nmt_jax.launchers.names import LABEL, checked
from nmt_jax.storage.paths import PACKAGES

METADATA = "http://metadata.google.internal/computeMetadata/v1/instance/attributes"
PACKED = ("pyproject.toml", "README.md", "nmt_jax", "metrics_jax", "configs")  # of the checkout

INSTALL = """set -e
cd ~/nmt-jax
if [ -e pid ] && grep -qs nmt-jax "/proc/$(cat pid)/cmdline"; then
    echo 'nmt-jax: a run goes on here; it keeps its code'
    exit
fi
rm -rf code exit_code && mkdir code && tar -xzf code.tar.gz -C code
if [ ! -e venv ]; then
    for python in python3.13 python3.12 python3.11 python3; do command -v $python > /dev/null && break; done
    $python -m venv venv
fi
venv/bin/pip install --quiet --disable-pip-version-check './code[{extras}]'"""

START = """cd ~/nmt-jax
[ -e pid ] && grep -qs nmt-jax "/proc/$(cat pid)/cmdline" && exit
read_metadata() {{ curl -sf -H 'Metadata-Flavor: Google' {metadata}/"$1"; }}
export TPU_WORKER_ID=$(read_metadata agent-worker-number)
export TPU_WORKER_HOSTNAMES=$(read_metadata worker-network-endpoints | tr , '\\n' | cut -d : -f 3 | paste -s -d ,)
export PATH=~/nmt-jax/venv/bin:$PATH
echo "$TPU_WORKER_ID" > worker
cd code
setsid bash -c 'trap : TERM INT USR1; "$@"; echo $? > ~/nmt-jax/exit_code' nmt-jax {command} > ../log 2>&1 < /dev/null &
echo $! > ../pid"""

FOLLOW = """cd ~/nmt-jax
tail -n 20 -F log 2> /dev/null & tail=$!
trap 'kill $tail' EXIT
while [ ! -e exit_code ]; do
    grep -qs nmt-jax "/proc/$(cat pid)/cmdline" || [ -e exit_code ] || echo 137 > exit_code
    sleep 1
done
sleep 1
echo "nmt-jax: worker $(cat worker) ended with code $(cat exit_code)\""""

SCRIPT = """# Written by `nmt-jax launch --on=tpu`. Run it again to continue or to follow the run.
on_all_hosts() {{ gcloud compute tpus tpu-vm ssh {name} --zone={zone} --worker=all --command="$1"; }}

install=$(cat << 'END'
{install}
END
)

start=$(cat << 'END'
{start}
END
)

follow=$(cat << 'END'
{follow}
END
)

folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
tar -czf "$folder/code.tar.gz" -C {source} {packed}
on_all_hosts 'mkdir -p nmt-jax' &&
    gcloud compute tpus tpu-vm scp "$folder/code.tar.gz" {name}:nmt-jax/code.tar.gz --zone={zone} --worker=all &&
    on_all_hosts "$install" &&
    on_all_hosts "$start" || exit 1

stop='kill -TERM -$(cat nmt-jax/pid)'
echo "nmt-jax: Ctrl-C ends this command, but not the run; to save and stop it, run on its hosts: $stop" >&2
lost=0
until on_all_hosts "$follow" | tee "$folder/codes"; [ "${{PIPESTATUS[0]}}" -eq 0 ]; do
    lost=$((lost + 1))
    if [ "$lost" -gt {tries} ]; then
        echo 'nmt-jax: error: {name} does not answer; run this again to follow the run, if it goes on' >&2
        exit 1
    fi
    echo 'nmt-jax: the connection is lost, the run goes on; connecting again' >&2
    sleep "${{RETRY_SECONDS:-10}}"
done
codes=$(sed -n 's/^nmt-jax: worker .* ended with code //p' "$folder/codes" | sort -n)
exit "$(tail -n 1 <<< "${{codes:-1}}")"
"""
TRIES = 100  # times that the connection may be lost


def launch(flag_values: flags.FlagValues, command: Sequence[str]) -> int:
    """Runs `command` on every host of the TPU `name`; returns the largest exit code."""
    if not flag_values.zone:
        raise UserError("nmt-jax launch --on=tpu needs --zone=ZONE, and the --name of the TPU")
    script = write_script(flag_values, command)
    if flag_values.dry_run:
        print(f"#!/bin/bash\n{script}", end="")
        return 0
    if not shutil.which("gcloud"):
        raise UserError("nmt-jax launch --on=tpu: gcloud not found; install the Google Cloud CLI")
    return subprocess.run(["bash", "-c", script], check=False).returncode


def write_script(flag_values: flags.FlagValues, command: Sequence[str]) -> str:
    """Returns the script that installs, starts and follows; raises UserError if the code is not a checkout."""
    root = pathlib.Path(__file__).parents[2]
    if not (root / "pyproject.toml").exists():
        raise UserError(
            "nmt-jax launch --on=tpu installs the code of a checkout on the hosts, but nmt-jax runs from "
            f"{root}: clone the repository, and install it with `pip install -e .`"
        )
    name, zone = (checked(flag, str(flag_values[flag].value), LABEL, 63) for flag in ("name", "zone"))
    source = "." if flag_values.dry_run and root == pathlib.Path.cwd() else str(root)
    schemes = (scheme for scheme in PACKAGES if any(f"{scheme}://" in argument for argument in command))
    install = INSTALL.format(extras=",".join(["tpu", *schemes]))
    start = START.format(metadata=METADATA, command=shlex.join(["nmt-jax", *command]))
    return SCRIPT.format(
        name=name,
        zone=zone,
        source=shlex.quote(source),
        packed=" ".join(PACKED),
        install=install,
        start=start,
        follow=FOLLOW,
        tries=TRIES,
    )
