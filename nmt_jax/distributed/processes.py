"""Processes that train as one: they mean the same, hear of each other, and stop at the same step."""

import atexit
import hashlib
import json
import os
import platform
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import metrics_jax
import nmt_jax
from nmt_jax.distributed.process_spec import ProcessSpec
from nmt_jax.distributed.rendezvous import ProcessInfo, Rendezvous
from nmt_jax.errors import UserError
from nmt_jax.interrupts import Interrupted

Made = TypeVar("Made")

PATIENCE = 10  # so many times later than the roll call does JAX take a process for lost: it would say less


class Processes:
    """The processes of one run, of which this is one; alone if there is no `place`.

    Raises UserError, the same in all of them, where they do not meet or would not train the same.
    """

    def __init__(
        self,
        place: ProcessSpec | None = None,
        card: ProcessInfo | None = None,
        *,
        join_seconds: float = 300.0,
        lost_seconds: float = 60.0,
    ):
        """card: what this process says of itself, see `describe`."""
        self.first = place is None or place.process == 0
        self._call: Rendezvous | None = None
        if place:
            self._call = Rendezvous(place, lost_seconds)
            address = self._call.meet(card or {}, find_difference, join_seconds)
            jax.config.update("jax_enable_preemption_service", False)  # SIGTERM is for nmt_jax.interrupts
            jax.distributed.initialize(
                address, place.processes, place.process, heartbeat_timeout_seconds=round(PATIENCE * lost_seconds)
            )

    def broadcast(self, make: Callable[[], Any]) -> Any:
        """What `make`, called in the first process alone, returns there: a value that JSON can hold."""
        return self._call.broadcast(make) if self._call else make()

    def in_turn(self, make: Callable[[], Made]) -> Made:
        """What `make` returns, called in the first process before all others: what it leaves on disk is made once."""
        if not self.first:
            self.broadcast(lambda: None)
            return make()
        made = make()
        self.broadcast(lambda: None)
        return made

    def check_same(self, what: str, value: Any) -> None:
        """UserError where `value`, which JSON can hold, is another in the first process."""
        if (theirs := self.broadcast(lambda: value)) != value:
            raise UserError(
                f"process {jax.process_index()}: the {what} is {value}, for process 0 it is {theirs}: "
                "give all a --workdir on a file system that their hosts share"
            )

    def __enter__(self) -> "Processes":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._call is None:
            return
        if error is None or isinstance(error, Interrupted):  # all stop here
            jax.distributed.shutdown()
            self._call.leave()
        else:
            if not isinstance(error, UserError):
                self._call.hear_of_losses()
            self._call.leave(failed=str(error) or type(error).__name__)
            # Instead of JAX's own farewell, which waits for the others. The last registered is called first.
            atexit.register(os._exit, 2 if isinstance(error, UserError) else 1)


class Vote:
    """Agrees on a number, step by step: each process gives its own and learns the largest that was given a step ago.

    The devices compare them between two steps of the training, so that nobody waits; alone, the answer comes at once.
    """

    def __init__(self, mesh: Mesh):
        self._sharding = NamedSharding(mesh, PartitionSpec(mesh.axis_names))
        self._count = jax.local_device_count()
        self._largest = jax.jit(jnp.max, out_shardings=NamedSharding(mesh, PartitionSpec()))
        self._pending: jax.Array | None = None

    def __call__(self, value: int) -> int:
        """-> the largest value of the call before this one, 0 at first; alone, `value`."""
        if jax.process_count() == 1:
            return value
        before = self._pending
        own = np.full(self._count, value, np.int32)
        self._pending = self._largest(jax.make_array_from_process_local_data(self._sharding, own))
        return 0 if before is None else int(before)


def describe(config: Mapping[str, Any], workdir: Path) -> dict[str, Any]:
    """What processes must agree on, and whether this one can write where all will."""
    return {"config": config, "code": code_hash(), "versions": versions(), "workdir": _write_error(workdir)}


def versions() -> dict[str, str]:
    """Of what the numbers depend on."""
    return {"python": platform.python_version(), "jax": jax.__version__, "jaxlib": jaxlib.__version__}


def code_hash() -> str:
    """SHA-256 of the program's own modules."""
    found = hashlib.sha256()
    for package in (nmt_jax, metrics_jax):
        folder = Path(str(package.__file__)).parent
        for path in sorted(folder.rglob("*.py")):
            found.update(f"{path.relative_to(folder)}\n".encode() + path.read_bytes())
    return found.hexdigest()


def _write_error(workdir: Path) -> str:
    """Why a file cannot be made in `workdir`; empty if it can."""
    probe = workdir / f".{platform.node()}-{os.getpid()}"
    try:
        workdir.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def find_difference(cards: list[ProcessInfo]) -> str | None:
    """What keeps processes that say this of themselves from training as one; None if nothing does."""
    for card in cards:
        who = f"process {card['process']} ({card['host']})"
        if card.get("workdir"):
            return f"{who} cannot write the workdir: {card['workdir']}: give all a --workdir that they share"
        for what in ("code", "versions"):
            if card.get(what) != cards[0].get(what):
                return (
                    f"{who} has other {what} than process 0 ({cards[0]['host']}): {_shown(card.get(what))} instead of "
                    f"{_shown(cards[0].get(what))}: install the same everywhere"
                )
        own, first = (_flat(each.get("config", {})) for each in (card, cards[0]))
        differing = [key for key in {**first, **own} if own.get(key) != first.get(key)]
        if differing:
            key = differing[0]
            more = f" and {len(differing) - 1} more keys" if len(differing) > 1 else ""
            return (
                f"{who} has another config than process 0 ({cards[0]['host']}): {key}={own.get(key)!r} instead of "
                f"{first.get(key)!r}{more}: start all with the same command"
            )
    return None


def _shown(value: Any) -> str:
    return value[:12] if isinstance(value, str) else json.dumps(value)


def _flat(tree: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(tree, Mapping):
        return {prefix: tree}
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        flat |= _flat(value, f"{prefix}.{key}" if prefix else key)
    return flat


def check_shared(processes: Processes, workdir: Path) -> None:
    """UserError where this process does not see in `workdir` what the first has just written there."""
    path = workdir / ".shared"

    def write() -> str:
        token = secrets.token_hex(8)
        path.write_text(token)
        return token

    token = processes.broadcast(write)
    if not path.is_file() or path.read_text() != token:
        raise UserError(
            f"{workdir}: process {jax.process_index()} does not see what process 0 wrote: give all a --workdir on a "
            "file system that their hosts share"
        )
