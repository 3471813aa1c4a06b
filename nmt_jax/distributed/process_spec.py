"""Which process of a run this is, and where process 0 listens: from flags, SLURM, Open MPI or a TPU pod."""

import re
import socket
from collections.abc import Mapping
from typing import Any, NamedTuple

from absl import flags

from nmt_jax.errors import UserError
from nmt_jax.schema.number_flags import define_float, define_integer

FLAGS = ("coordinator", "processes", "process", "join_seconds", "lost_seconds")


class ProcessSpec(NamedTuple):
    """Process number `process` of `processes`; process 0 listens at `coordinator`, HOST:PORT.

    Without a coordinator, "", the processes do not know of each other, as the tasks of a SLURM array.
    """

    coordinator: str
    processes: int
    process: int


def define_process_flags(flag_values: flags.FlagValues) -> None:
    """Defines the flags that launchers set; SLURM, Open MPI and TPU pods need none of them."""
    options: dict[str, Any] = {"flag_values": flag_values}
    flags.DEFINE_string("coordinator", None, "Address of process 0, HOST:PORT.", **options)
    define_integer(flag_values, "processes", None, "Number of processes that do this job together.", low=1, high=10_000)
    define_integer(flag_values, "process", None, "Number of this process, from 0.", low=0)
    define_float(
        flag_values, "join_seconds", 300.0, "Time to wait at the start for all processes, in seconds.", above=0
    )
    define_float(flag_values, "lost_seconds", 60.0, "A process that is silent for this long counts as lost.", above=0)


def find_process_spec(
    flag_values: flags.FlagValues, environment: Mapping[str, str], coordinated: bool = True
) -> ProcessSpec | None:
    """Returns the process that flags or environment describe, None if it is the only one; UserError for bad flags.

    coordinated: whether processes need a coordinator, that is, work on the same thing at the same time.
    """
    values = (flag_values.coordinator, flag_values.processes, flag_values.process)
    if values == (None, None, None):
        return _from_environment(environment)
    if not coordinated and values[0] is None:
        values = ("", *values[1:])
        if None in values:
            raise UserError("--processes=N and --process=I must be given together")
    if None in values:
        raise UserError("--coordinator=HOST:PORT, --processes=N and --process=I must be given together")
    spec = ProcessSpec(*values)
    if spec.coordinator and not re.fullmatch(r".+:\d+", spec.coordinator):
        raise UserError(f"--coordinator={spec.coordinator}: expected HOST:PORT")
    if spec.process >= spec.processes:
        raise UserError(f"--process={spec.process}: must be less than --processes={spec.processes}")
    return spec if spec.processes > 1 else None


def _from_environment(environment: Mapping[str, str]) -> ProcessSpec | None:
    if {"SLURM_STEP_NODELIST", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_JOB_ID"} <= environment.keys():
        job = int(environment["SLURM_JOB_ID"]) + int(environment.get("SLURM_STEP_ID", 0))
        coordinator = _address(first_host(environment["SLURM_STEP_NODELIST"]), job)
        processes, process = int(environment["SLURM_STEP_NUM_TASKS"]), int(environment["SLURM_PROCID"])
    elif {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_MCA_orte_hnp_uri"} <= environment.keys():
        job_id, host = re.findall(r"^(\d+)\..*?://\[?([^,:\]]+)", environment["OMPI_MCA_orte_hnp_uri"])[0]
        coordinator = _address(host, int(job_id) >> 12)  # Open MPI numbers jobs in multiples of 2^12
        processes, process = int(environment["OMPI_COMM_WORLD_SIZE"]), int(environment["OMPI_COMM_WORLD_RANK"])
    elif {"TPU_WORKER_HOSTNAMES", "TPU_WORKER_ID"} <= environment.keys():
        hosts = environment["TPU_WORKER_HOSTNAMES"].split(",")
        coordinator, processes, process = _address(hosts[0], 0), len(hosts), int(environment["TPU_WORKER_ID"])
    else:
        return None
    return ProcessSpec(coordinator, processes, process) if processes > 1 else None


def _address(host: str, job: int) -> str:
    """Returns HOST:PORT; successive jobs on a host get different ports, all above those of common services."""
    return f"{host}:{50000 + job % 10000}"


def first_host(nodes: str) -> str:
    """Returns the first host of a SLURM node list: `gpu[007-009,12],login` -> gpu007."""
    prefix, numbers, rest = re.findall(r"^([^,\[]+)(?:\[([^\]]+)\]([^,]*))?", nodes)[0]
    return prefix + re.split("[-,]", numbers)[0] + rest


def bind_host(host: str) -> str:
    """Returns the address at which `host` should listen so that other hosts reach it; "" means all interfaces.

    This is the address of the name `host`, except where that means loopback on this machine only, as in Debian's
    /etc/hosts, or is an address of another machine, such as a router.
    """
    try:
        address = socket.gethostbyname(host)
        socket.create_server((address, 0)).close()
    except OSError:
        return ""
    return address if host in ("localhost", address) or not address.startswith("127.") else ""


def free_port() -> int:
    """Returns a port of this machine that no program uses."""
    with socket.create_server(("", 0)) as server:
        return int(server.getsockname()[1])
