"""The processes of a run: checks that they agree, values from process 0, and votes on when to stop."""

import atexit
import os
import platform
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from ml_collections import ConfigDict

from nmt_jax import config as configs
from nmt_jax.distributed.code_version import code_hash
from nmt_jax.distributed.process_spec import ProcessSpec, bind_host
from nmt_jax.distributed.rendezvous import ProcessInfo, Rendezvous
from nmt_jax.errors import UserError, explain
from nmt_jax.interrupts import Interrupted

Value = TypeVar("Value")

PATIENCE = 10  # how many times later than Rendezvous JAX detects a lost process, as it does not report it as clearly


class Processes:
    """All processes of one run; without arguments, this process is the only one.

    Raises UserError, the same in all processes, if they do not find each other or would not train the same model.
    """

    def __init__(
        self,
        spec: ProcessSpec | None = None,
        config: ConfigDict | None = None,
        workdir: Path | None = None,
        *,
        join_seconds: float = 300.0,
        lost_seconds: float = 60.0,
    ):
        self.first = spec is None or spec.process == 0
        self._rendezvous: Rendezvous | None = None
        if spec is None or config is None or workdir is None:
            return
        info = describe(config, workdir)
        if self.first and info["workdir"]:
            raise UserError(find_difference([{"process": 0, "host": socket.gethostname(), **info}]))
        self._rendezvous = Rendezvous(spec, workdir, lost_seconds)
        connect_devices(self._rendezvous.join(info, find_difference, join_seconds), spec, lost_seconds)

    def broadcast(self, make: Callable[[], Any]) -> Any:
        """Returns in all processes what `make`, which is called in process 0 only, returns there: a JSON value."""
        return self._rendezvous.broadcast(make) if self._rendezvous else make()

    def in_turn(self, make: Callable[[], Value]) -> Value:
        """Returns `make()`, called in process 0 before all others, so that they find the files it writes."""
        if not self.first:
            self.broadcast(lambda: None)
            return make()
        value = make()
        self.broadcast(lambda: None)
        return value

    def check_same(self, name: str, value: Any) -> None:
        """Raises UserError if `value`, a JSON value, differs from that in process 0."""
        if (expected := self.broadcast(lambda: value)) != value:
            raise UserError(
                f"process {jax.process_index()}: the {name} is {value}, but {expected} in process 0; give all "
                "processes the same --workdir, on a file system that their hosts share or in an object store"
            )

    def __enter__(self) -> "Processes":
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._rendezvous:
            disconnect_devices(self._rendezvous, error)


def connect_devices(address: str, spec: ProcessSpec, lost_seconds: float) -> None:
    """Connects the devices of all processes through JAX's service at `address`, before JAX is used."""
    host, _, port = address.rpartition(":")
    bound, timeout = f"{bind_host(host) or '[::]'}:{port}", round(PATIENCE * lost_seconds)
    jax.config.update("jax_enable_preemption_service", False)  # nmt_jax.interrupts handles SIGTERM
    jax.distributed.initialize(address, *spec[1:], heartbeat_timeout_seconds=timeout, coordinator_bind_address=bound)


def disconnect_devices(rendezvous: Rendezvous, error: BaseException | None) -> None:
    """Leaves the others after the work, after an interrupt that all of them noticed, or because of an error."""
    if error is None or isinstance(error, Interrupted):
        jax.distributed.shutdown()
        rendezvous.leave()
        return
    if not isinstance(error, UserError):
        rendezvous.wait_for_loss()
    rendezvous.leave(failed=str(error) or type(error).__name__)
    # Registered last, so called first: JAX's own exit function waits for the other processes.
    atexit.register(os._exit, 2 if explain(error) else 1)


class Vote:
    """The largest number that any process passed one call earlier.

    The devices compare the numbers between two training steps, so that no process waits.
    """

    def __init__(self, mesh: Mesh):
        self._sharding = NamedSharding(mesh, PartitionSpec(mesh.axis_names))
        self._largest = jax.jit(jnp.max, out_shardings=NamedSharding(mesh, PartitionSpec()))
        self._pending: jax.Array | None = None

    def __call__(self, value: int) -> int:
        """Returns the largest value of the previous call, at first 0; with a single process, `value` itself."""
        if jax.process_count() == 1:
            return value
        previous, values = self._pending, np.full(jax.local_device_count(), value, np.int32)
        self._pending = self._largest(jax.make_array_from_process_local_data(self._sharding, values))
        return 0 if previous is None else int(previous)


def describe(config: ConfigDict, workdir: Path) -> dict[str, Any]:
    """Returns what processes must agree on, and why this one cannot write the workdir ("" if it can)."""
    versions = {"python": platform.python_version(), "jax": jax.__version__, "jaxlib": jaxlib.__version__}
    workdir_error = _write_error(workdir)
    return {"config": configs.flatten(config), "code": code_hash(), "versions": versions, "workdir": workdir_error}


def _write_error(workdir: Path) -> str:
    """Returns why no file can be written in `workdir`, or ""."""
    probe = workdir / f".{platform.node()}-{os.getpid()}"
    try:
        workdir.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def find_difference(infos: list[ProcessInfo]) -> str | None:
    """Returns why processes with these descriptions cannot train together, or None if they can."""
    first = infos[0]
    for info in infos:
        who, other = f"process {info['process']} ({info['host']})", f"process 0 ({first['host']})"
        if info["workdir"]:
            return f"{who} cannot write the workdir: {info['workdir']}; give all processes the same --workdir"
        for key in ("code", "versions"):
            if info[key] != first[key]:
                values = f"{info[key]} instead of {first[key]}"
                return f"{who} has different {key} than {other}: {values}; install the same version everywhere"
        own, expected = info["config"], first["config"]
        keys = [key for key in {**expected, **own} if own.get(key) != expected.get(key)]
        if keys:
            more = f" and {len(keys) - 1} more keys" if len(keys) > 1 else ""
            return (
                f"{who} has a different config than {other}: {keys[0]}={own.get(keys[0])!r} instead of "
                f"{expected.get(keys[0])!r}{more}; start all processes with the same command"
            )
    return None
