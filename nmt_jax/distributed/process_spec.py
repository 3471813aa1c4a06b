"""Which process of how many this is, and where they meet: from flags, SLURM, Open MPI, or a TPU pod's own variables."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from absl import flags

from nmt_jax.errors import UserError


class ProcessSpec(NamedTuple):
    """Process number `process` of `processes`, which meet process 0 at `coordinator`, HOST:PORT."""

    coordinator: str
    processes: int
    process: int


def define_place_flags(flag_values: flags.FlagValues) -> None:
    """The flags that launchers set; under SLURM, Open MPI and on a TPU pod none is needed."""
    given: dict[str, Any] = {"flag_values": flag_values}
    flags.DEFINE_string("coordinator", None, "HOST:PORT at which process 0 is met, of several processes.", **given)
    flags.DEFINE_integer("processes", None, "How many processes train together.", lower_bound=1, **given)
    flags.DEFINE_integer("process", None, "The number of this one of them, from 0.", lower_bound=0, **given)
    flags.DEFINE_float("join_seconds", 300.0, "How long processes wait for each other at the start.", **given)
    flags.DEFINE_float("lost_seconds", 60.0, "After how long in silence a process is taken for lost.", **given)


def find_place(flag_values: flags.FlagValues, environment: Mapping[str, str]) -> ProcessSpec | None:
    """Where this process belongs; None where it trains alone. UserError for flags that do not fit together."""
    given = (flag_values.coordinator, flag_values.processes, flag_values.process)
    if given == (None, None, None):
        return _of_environment(environment)
    if None in given:
        raise UserError("--coordinator=HOST:PORT, --processes=N and --process=I belong together: give all three")
    place = ProcessSpec(*given)
    if not re.fullmatch(r".+:\d+", place.coordinator):
        raise UserError(f"--coordinator={place.coordinator}: write it as HOST:PORT")
    if place.process >= place.processes:
        raise UserError(f"--process={place.process}: {place.processes} processes count from 0 to {place.processes - 1}")
    return place if place.processes > 1 else None


def _of_environment(environment: Mapping[str, str]) -> ProcessSpec | None:
    if {"SLURM_STEP_NODELIST", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_JOB_ID"} <= environment.keys():
        job = int(environment["SLURM_JOB_ID"]) + int(environment.get("SLURM_STEP_ID", 0))
        host = first_host(environment["SLURM_STEP_NODELIST"])
        place = ProcessSpec(
            _address(host, job), int(environment["SLURM_STEP_NUM_TASKS"]), int(environment["SLURM_PROCID"])
        )
    elif {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_MCA_orte_hnp_uri"} <= environment.keys():
        number, host = re.findall(r"^(\d+)\..*?://\[?([^,:\]]+)", environment["OMPI_MCA_orte_hnp_uri"])[0]
        size, rank = int(environment["OMPI_COMM_WORLD_SIZE"]), int(environment["OMPI_COMM_WORLD_RANK"])
        place = ProcessSpec(
            _address(host, int(number) >> 12), size, rank
        )  # the numbers of its jobs are multiples of 2^12
    elif {"TPU_WORKER_HOSTNAMES", "TPU_WORKER_ID"} <= environment.keys():
        hosts = environment["TPU_WORKER_HOSTNAMES"].split(",")
        place = ProcessSpec(_address(hosts[0], 0), len(hosts), int(environment["TPU_WORKER_ID"]))
    else:
        return None
    return place if place.processes > 1 else None


def _address(host: str, job: int) -> str:
    """Jobs that follow each other on one host meet at different ports, all above those of services."""
    return f"{host}:{50000 + job % 10000}"


def first_host(nodes: str) -> str:
    """The first of SLURM's list of hosts: `gpu[007-009,12],login` -> gpu007."""
    prefix, numbers, rest = re.findall(r"^([^,\[]+)(?:\[([^\]]+)\]([^,]*))?", nodes)[0]
    return prefix + re.split("[-,]", numbers)[0] + rest
