"""Connections between the processes of a run: joining, broadcasts, and detection of lost processes.

`jax.distributed` detects missing and lost processes too, but only after missed heartbeats, and it aborts with a stack
trace of C++. Here each process keeps a TCP connection to process 0 for messages in JSON: a loss shows as soon as the
connection breaks, and the others report which process it was. Both ends of a connection prove that they know a secret,
which process 0 writes into a shared folder; nobody else can join a run or stop it.
"""

import contextlib
import hmac
import json
import os
import pathlib
import queue
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.connection import Connection
from typing import Any, NoReturn

from nmt_jax.distributed.process_spec import ProcessSpec, bind_host, free_port
from nmt_jax.errors import UserError

SECRET_FILE = ".rendezvous"
LOST = 1  # exit code after the loss of another process
FAREWELL_SECONDS = 2.0  # until last messages have arrived everywhere
HANDSHAKE_SECONDS, HANDSHAKE_BYTES = 10.0, 64  # limits for messages of unknown programs
STRANGERS = 100  # unknown connections that may wait to be accepted; the system drops those that are too many
VISIBLE_SECONDS = 30.0  # until other hosts see a new file on a network file system

COORDINATOR, MEMBER = b"coordinator", b"member"  # roles in the handshake

ProcessInfo = Mapping[str, Any]  # what a process reports about itself
Check = Callable[[list[ProcessInfo]], str | None]  # what is wrong with the reports of all, if anything


class Rendezvous:
    """The connections of one process; all processes of a run make the same calls in the same order."""

    def __init__(
        self, spec: ProcessSpec, folder: pathlib.Path, lost_seconds: float = 60.0, folder_flag: str = "--workdir"
    ):
        """folder: shared by the hosts of all processes. folder_flag: the flag that names it, for errors."""
        self.spec = spec
        self._secret_file, self._folder_flag = folder / SECRET_FILE, folder_flag
        self._lost_seconds = lost_seconds
        self._connections: dict[int, Connection] = {}  # process 0: to all others; others: to process 0
        self._sending = threading.Lock()
        self._hosts: list[str] = []
        self._values: queue.Queue[Any] = queue.Queue()
        self._finished: set[int] = set()  # processes that have said goodbye
        self._all_finished, self._ending = threading.Event(), threading.Event()

    def _send(self, *connections: Connection, **message: Any) -> None:
        for connection in connections:
            with self._sending, contextlib.suppress(OSError):  # `_listen` reports broken connections
                connection.send_bytes(json.dumps(message).encode())

    # Joining

    def join(self, info: ProcessInfo, check: Check, seconds: float) -> str:
        """Waits for all processes and returns an address for JAX's own service, the same in all of them.

        Process 0 calls `check` with the reports of all. Raises UserError, the same in all processes, if one does not
        join in time, joins twice or expects another number of processes, or if `check` finds an error.
        """
        info = {"processes": self.spec.processes, "process": self.spec.process, "host": socket.gethostname(), **info}
        if self.spec.process == 0:
            reply = self._gather(info, check, seconds)
        else:
            connection = self._connections[0] = self._connect(seconds)
            self._send(connection, **info)
            reply = {"failed": f"process {self.spec.process}: process 0 stopped before all had joined; see its log"}
            with contextlib.suppress(OSError, EOFError):  # process 0 may have started to wait later
                reply = json.loads(_receive(connection, seconds + FAREWELL_SECONDS))
            if "failed" in reply:
                raise UserError(reply["failed"])
        self._hosts = reply["hosts"]
        for process, connection in self._connections.items():
            threading.Thread(target=self._listen, args=(process, connection), daemon=True).start()
        threading.Thread(target=self._send_heartbeats, daemon=True).start()
        return str(reply["address"])

    def _gather(self, info: ProcessInfo, check: Check, seconds: float) -> dict[str, Any]:
        """Process 0: accepts all others and returns what it replies to them."""
        host, _, port = self.spec.coordinator.rpartition(":")
        deadline = time.monotonic() + seconds
        infos: dict[int, ProcessInfo] = {0: json.loads(json.dumps(info))}  # tuples become lists, as in other processes
        joined: queue.Queue[tuple[Connection, ProcessInfo]] = queue.Queue()
        try:
            server = socket.create_server((bind_host(host), int(port)), backlog=self.spec.processes + STRANGERS)
        except OSError as failure:
            raise UserError(f"--coordinator={self.spec.coordinator}: cannot listen: {failure.strerror}") from None
        with server, _new_secret(self._secret_file) as secret:
            server.settimeout(0.05)
            while len(infos) < self.spec.processes:
                with contextlib.suppress(OSError):  # no connection yet, or one that cannot be accepted
                    connection = Connection(server.accept()[0].detach())
                    threading.Thread(target=_admit, args=(connection, secret, joined), daemon=True).start()
                while not joined.empty():
                    self._add(infos, *joined.get())
                if time.monotonic() > deadline:
                    missing = ", ".join(str(process) for process in range(self.spec.processes) if process not in infos)
                    self._fail(
                        f"process{'es' if ',' in missing else ''} {missing} of {self.spec.processes} did not join at "
                        f"{self.spec.coordinator} within {seconds:g} s; see their logs, and check that the launcher "
                        "started all of them"
                    )
        ordered = [infos[process] for process in range(self.spec.processes)]
        if error := check(ordered):
            self._fail(error)
        reply = {"address": f"{host}:{free_port()}", "hosts": [info["host"] for info in ordered]}
        self._send(*self._connections.values(), **reply)
        return reply

    def _add(self, infos: dict[int, ProcessInfo], connection: Connection, info: ProcessInfo) -> None:
        """Process 0: adds a process that has joined; fails if it cannot belong to this run."""
        who, process = f"process {info['process']} ({info['host']})", info["process"]
        if info["processes"] != self.spec.processes:
            error = f"{who} was started with --processes={info['processes']}, process 0 with "
            self._fail(f"{error}--processes={self.spec.processes}; start all with the same number", connection)
        if process in infos:
            error = f"{who} joined twice, also from {infos[process]['host']}"
            self._fail(f"{error}; give each process its own --process", connection)
        infos[process], self._connections[process] = info, connection

    def _fail(self, error: str, *more: Connection) -> NoReturn:
        """Process 0: raises UserError in all processes that have joined, and in those behind `more` connections."""
        self._send(*self._connections.values(), *more, failed=error)
        raise UserError(error)

    def _connect(self, seconds: float) -> Connection:
        """Other processes: connects to process 0 as soon as it listens."""
        host, _, port = self.spec.coordinator.rpartition(":")
        deadline, answered = time.monotonic() + seconds, float("inf")
        while True:
            try:
                plain = socket.create_connection((host, int(port)), max(deadline - time.monotonic(), 0.01))
                plain.settimeout(None)
                connection, answered = Connection(plain.detach()), min(answered, time.monotonic())
                if _shake_hands(connection, self._secret_file.read_bytes(), MEMBER, COORDINATOR):
                    return connection
            except (OSError, EOFError) as error:
                reason = getattr(error, "strerror", "") or str(error)
            now = time.monotonic()
            if now >= min(deadline, answered + VISIBLE_SECONDS):
                start = f"process {self.spec.process}: --coordinator={self.spec.coordinator}:"
                if answered <= now:
                    raise UserError(
                        f"{start} the program there has another {self._secret_file}; give all processes the same "
                        f"{self._folder_flag}, on a file system that their hosts share, and the address of process 0"
                    )
                raise UserError(
                    f"{start} no answer within {seconds:g} s ({reason}); check that process 0 runs, and that this is "
                    "its host and port"
                )
            time.sleep(0.1)

    # Training

    def broadcast(self, make: Callable[[], Any]) -> Any:
        """Returns in all processes what `make` returns in process 0, a JSON value; the others wait for it."""
        if self.spec.process:
            return self._values.get()
        value = make()
        self._send(*self._connections.values(), value=value)
        return value

    def _send_heartbeats(self) -> None:
        while not self._ending.wait(self._lost_seconds / 4):
            self._send(*self._connections.values())

    def _listen(self, process: int, connection: Connection) -> None:
        while True:
            try:
                message = json.loads(_receive(connection, self._lost_seconds))
            except TimeoutError:
                return self._lose(process, f"has been silent for {self._lost_seconds:g} s")
            except (OSError, EOFError):
                if process not in self._finished:
                    self._lose(process, "is gone: it was killed, or its host or network failed")
                return None
            if "value" in message:
                self._values.put(message["value"])
            if "failed" in message:
                return self._lose(process, f"stopped: {message['failed']}")
            if "lost" in message:
                return self._lose(message["lost"], message["why"])
            if "bye" in message:
                self._finished.add(process)
                if len(self._finished) == len(self._connections):
                    self._all_finished.set()

    def _lose(self, process: int, why: str) -> None:
        """Reports the loss of a process here and to all others, and exits: without it no step can finish."""
        if self._ending.is_set():
            return
        self._ending.set()
        text = f"nmt-jax: error: process {process} of {self.spec.processes} ({self._hosts[process]}) {why}; to "
        text += "continue, start all processes again with the same command\n"
        os.write(sys.stderr.fileno(), text.encode())
        if self.spec.process == 0:
            others = [connection for other, connection in self._connections.items() if other != process]
            self._send(*others, lost=process, why=why)
            time.sleep(FAREWELL_SECONDS)  # the others exit first: JAX's service ends with this process
        os._exit(LOST)

    # Leaving

    @property
    def all_finished(self) -> bool:
        """Whether all other processes have left."""
        return self._all_finished.is_set()

    def wait_for_loss(self) -> None:
        """Waits a moment for the report of a lost process, which ends this one.

        Called after an error: a computation on the devices of all processes fails everywhere if one is lost.
        """
        if self._ending.wait(FAREWELL_SECONDS):
            threading.Event().wait()  # `_lose` exits

    def leave(self, failed: str | None = None) -> None:
        """Tells the others why this process `failed`, or else that it has finished, and waits until all have."""
        if self._ending.is_set():
            return
        self._send(*self._connections.values(), **({"failed": failed} if failed else {"bye": True}))
        if not failed:
            self._all_finished.wait(self._lost_seconds)
        self._ending.set()


@contextlib.contextmanager
def _new_secret(path: pathlib.Path) -> Iterator[bytes]:
    """Yields a new secret, and keeps it in `path` meanwhile, where only this user can read it."""
    secret = secrets.token_hex(32).encode()
    try:
        path.unlink(missing_ok=True)  # left by a process that was killed
        path.touch(mode=0o600)
        path.write_bytes(secret)
        yield secret
    finally:
        path.unlink(missing_ok=True)


def _admit(connection: Connection, secret: bytes, joined: queue.Queue[tuple[Connection, ProcessInfo]]) -> None:
    """Process 0: puts a new connection into `joined`, with the report of its process, if that knows the secret."""
    with contextlib.suppress(OSError, EOFError):
        if _shake_hands(connection, secret, COORDINATOR, MEMBER):
            joined.put((connection, json.loads(_receive(connection))))


def _shake_hands(connection: Connection, secret: bytes, own: bytes, other: bytes) -> bool:
    """Proves to the other side, which has the role `other`, that this one knows the secret; whether it does, too."""
    nonce = secrets.token_bytes(32)
    connection.send_bytes(nonce)
    other_nonce = _receive(connection, HANDSHAKE_SECONDS, HANDSHAKE_BYTES)
    connection.send_bytes(hmac.digest(secret, own + nonce + other_nonce, "sha256"))
    proof = _receive(connection, HANDSHAKE_SECONDS, HANDSHAKE_BYTES)
    return hmac.compare_digest(proof, hmac.digest(secret, other + other_nonce + nonce, "sha256"))


def _receive(connection: Connection, seconds: float | None = None, limit: int | None = None) -> bytes:
    """Returns the next message. Raises TimeoutError after `seconds` of silence, OSError if it is over `limit` bytes."""
    if not connection.poll(seconds):
        raise TimeoutError
    return connection.recv_bytes(limit)
