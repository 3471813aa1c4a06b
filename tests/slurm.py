"""A real SLURM of one node on this machine, started and ended by a test; needs root and the programs on the path."""

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "scancel", "squeue")

SETTINGS = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
KillWait=5
JobRequeue=1
SchedulerParameters=sched_interval=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=2000
PartitionName=main Nodes={host} Default=YES State=UP OverSubscribe=FORCE:4
"""


def missing() -> list[str]:
    """What keeps SLURM from being started here."""
    absent = [program for program in PROGRAMS if not shutil.which(program)]
    return absent if os.geteuid() == 0 else [*absent, "root"]


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [server.getsockname()[1] for server in servers]


@contextlib.contextmanager
def running(folder: Path) -> Iterator[dict[str, str]]:
    """-> the environment in which sbatch and the others find it."""
    for name in ("state", "spool"):
        (folder / name).mkdir()
    host = socket.gethostname().split(".")[0]
    (folder / "slurm.conf").write_text(SETTINGS.format(host=host, folder=folder, ports=_free_ports(2)))
    environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
    Path("/run/munge").mkdir(exist_ok=True)
    shutil.chown("/run/munge", "munge", "munge")
    own = subprocess.run(["pgrep", "-x", "munged"], capture_output=True, check=False).returncode != 0
    started = []
    try:
        if own:
            subprocess.run(["runuser", "-u", "munge", "--", "munged", "--force"], check=True, capture_output=True)
        for daemon in ("slurmctld", "slurmd"):
            with (folder / f"{daemon}.out").open("w") as log:
                started.append(subprocess.Popen([daemon, "-D"], env=environment, stdout=log, stderr=log))
        wait_for(lambda: "idle" in say(environment, "sinfo", "--noheader", "--format=%T"), 30, "no idle node")
        yield environment
    finally:
        say(environment, "scancel", "--user=root")
        with contextlib.suppress(AssertionError):  # slurmd waits for jobs
            wait_for(lambda: not say(environment, "squeue", "--noheader"), 60, "jobs stay")
        for process in reversed(started):
            process.terminate()
        for process in started:
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if own:
            subprocess.run(["pkill", "-x", "munged"], check=False)


def say(environment: dict[str, str], *command: str) -> str:
    """What a command prints."""
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stdout


def wait_for(condition, seconds: float, what: str) -> None:
    """Until `condition()` holds; AssertionError after so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)
