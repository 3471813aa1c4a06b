"""The line between processes that train together: who is there, whether all mean the same, and who was lost.

JAX's own service ends a process with a dump of its stack where another does not come or is lost; this one knows names.
Messages are JSON, one a line, over one TCP connection of every process to process 0, which stays open.
"""

import contextlib
import json
import os
import queue
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from nmt_jax.distributed.process_spec import ProcessSpec
from nmt_jax.errors import UserError

LOST = 1  # exit code of those that another process left alone
FAREWELL_SECONDS = 2.0  # for the last words to reach everybody

ProcessInfo = Mapping[str, Any]  # what a process says of itself
Check = Callable[[list[ProcessInfo]], str | None]  # the cards of all -> what is wrong with them, if anything


class _Line:
    """A connection on which messages are sent from several threads and read from one."""

    def __init__(self, connection: socket.socket):
        self._connection = connection
        self._file = connection.makefile("rb")
        self._lock = threading.Lock()

    def send(self, **message: Any) -> None:
        with self._lock, contextlib.suppress(OSError):  # the other side is gone: reading will say so
            self._connection.sendall(json.dumps(message).encode() + b"\n")

    def receive(self, seconds: float | None = None) -> dict[str, Any] | None:
        """The next message; None where either side has gone. TimeoutError after so many seconds of silence."""
        try:
            self._connection.settimeout(seconds)  # fails where another thread has closed the line meanwhile
            line = self._file.readline()
        except TimeoutError:
            raise
        except OSError:
            return None
        return json.loads(line) if line.endswith(b"\n") else None

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)  # ends the reading of another thread
        self._file.close()
        self._connection.close()


class Rendezvous:
    """The processes of one run; every process makes the same calls in the same order."""

    def __init__(self, place: ProcessSpec, lost_seconds: float = 60.0):
        self.place = place
        self._lost_seconds = lost_seconds
        self._lines: dict[int, _Line] = {}  # of process 0 to each other one; of the others to process 0
        self._hosts: list[str] = []
        self._heard: queue.Queue[Any] = queue.Queue()
        self._gone: set[int] = set()  # those that have said goodbye
        self._ending = threading.Event()
        self._all_gone = threading.Event()

    # Meeting

    def meet(self, card: ProcessInfo, check: Check, seconds: float) -> Any:
        """Wait for all processes, let process 0 `check` what they say of themselves -> its answer to all.

        The answer is an address for JAX's service. UserError, the same for all, where one does not come in time, comes
        twice, counts another number of processes, or `check` finds something.
        """
        card = {"processes": self.place.processes, "process": self.place.process, "host": socket.gethostname(), **card}
        deadline = time.monotonic() + seconds
        if self.place.process == 0:
            cards = self._gather(card, deadline, seconds)
            if wrong := check(cards):
                self._fail(wrong)
            self._hosts = [card["host"] for card in cards]
            answer = f"{self.place.coordinator.rpartition(':')[0]}:{_free_port()}"
            for line in self._lines.values():
                line.send(answer=answer, hosts=self._hosts)
        else:
            line = self._connect(deadline, seconds)
            line.send(**card)
            reply = self._first_reply(line, seconds)
            answer, self._hosts, self._lines = reply["answer"], reply["hosts"], {0: line}
        for process, line in self._lines.items():
            threading.Thread(target=self._listen, args=(process, line), daemon=True).start()
        threading.Thread(target=self._beat, daemon=True).start()
        return answer

    def _gather(self, own: ProcessInfo, deadline: float, seconds: float) -> list[ProcessInfo]:
        """Process 0: the cards of all, in order."""
        port, cards = int(self.place.coordinator.rpartition(":")[2]), {0: own}
        try:
            server = socket.create_server(("", port), backlog=self.place.processes)
        except OSError as error:
            raise UserError(f"--coordinator={self.place.coordinator}: cannot listen there: {error.strerror}") from None
        with server:
            while len(cards) < self.place.processes:
                server.settimeout(max(deadline - time.monotonic(), 0.01))
                try:
                    line = _Line(server.accept()[0])
                except TimeoutError:
                    missing = [process for process in range(self.place.processes) if process not in cards]
                    self._fail(
                        f"{_named(missing)} of {self.place.processes} did not come to {self.place.coordinator} within "
                        f"{seconds:g} s: see what their logs say, or whether the launcher started as many"
                    )
                try:
                    card = line.receive(FAREWELL_SECONDS)
                except (TimeoutError, ValueError):
                    card = None
                if card is None or "process" not in card:  # somebody else
                    line.close()
                    continue
                who = f"process {card['process']} ({card['host']})"
                if card["processes"] != self.place.processes:
                    wrong = f"{who} was started as one of {card['processes']}, process 0 as one of "
                    wrong += f"{self.place.processes}: start all with the same --processes"
                elif card["process"] in cards:
                    wrong = f"{who} came twice, also from {cards[card['process']]['host']}: give each its own --process"
                else:
                    cards[card["process"]], self._lines[card["process"]] = card, line
                    continue
                line.send(failed=wrong)
                line.close()
                self._fail(wrong)
        return [cards[process] for process in range(self.place.processes)]

    def _connect(self, deadline: float, seconds: float) -> _Line:
        host, _, port = self.place.coordinator.rpartition(":")
        while True:
            try:
                return _Line(
                    socket.create_connection((host, int(port)), timeout=max(deadline - time.monotonic(), 0.01))
                )
            except OSError as error:
                if time.monotonic() >= deadline:
                    raise UserError(
                        f"process {self.place.process}: nobody answered at --coordinator={self.place.coordinator} in "
                        f"{seconds:g} s ({error.strerror or error}): is process 0 started, is this its host and port?"
                    ) from None
                time.sleep(min(0.2, max(deadline - time.monotonic(), 0.0)))

    def _first_reply(self, line: _Line, seconds: float) -> dict[str, Any]:
        try:
            reply = line.receive(seconds + FAREWELL_SECONDS)  # process 0 began to wait later than this one
        except TimeoutError:
            reply = None
        if reply is not None and "failed" not in reply:
            return reply
        line.close()
        told = reply["failed"] if reply else None
        raise UserError(told or f"process {self.place.process}: process 0 left before all had met: see its log")

    def _fail(self, wrong: str) -> None:
        """Process 0: tell all that have come, and raise it here."""
        for line in self._lines.values():
            line.send(failed=wrong)
            line.close()
        raise UserError(wrong)

    # Being there

    def broadcast(self, make: Callable[[], Any]) -> Any:
        """What `make` returns in process 0, a value that JSON can hold, in all of them; the others wait for it."""
        if self.place.process:
            return self._heard.get()
        value = make()
        for line in self._lines.values():
            line.send(value=value)
        return value

    def _beat(self) -> None:
        while not self._ending.wait(self._lost_seconds / 4):
            for line in list(self._lines.values()):
                line.send()

    def _listen(self, process: int, line: _Line) -> None:
        while True:
            try:
                message = line.receive(self._lost_seconds)
            except TimeoutError:
                return self._alone(process, f"has said nothing for {self._lost_seconds:g} s")
            except ValueError:
                return self._alone(process, "sends what cannot be read")
            if message is None:
                if process in self._gone or self._ending.is_set():
                    return None
                return self._alone(process, "is gone: it was killed, or its host or network failed")
            if "value" in message:
                self._heard.put(message["value"])
            if "failed" in message:
                return self._alone(process, f"stopped: {message['failed']}")
            if "lost" in message:
                return self._alone(message["lost"], message["why"])
            if "bye" in message:
                self._gone.add(process)
                if len(self._gone) == len(self._lines):
                    self._all_gone.set()

    def _alone(self, process: int, why: str) -> None:
        """Without one of them none can go on: say which, pass it on, and leave at once, as nothing can be saved."""
        if self._ending.is_set():
            return
        self._ending.set()
        text = f"nmt-jax: error: process {process} of {self.place.processes} ({self._hosts[process]}) {why}; the last "
        text += "finished checkpoint stays: start all again with the same command\n"
        os.write(sys.stderr.fileno(), text.encode())
        if self.place.process == 0:
            for other, line in self._lines.items():
                if other != process:
                    line.send(lost=process, why=why)
            time.sleep(FAREWELL_SECONDS)  # the others leave first: with this process JAX's service ends
        os._exit(LOST)

    # Leaving

    def hear_of_losses(self) -> None:
        """Wait a moment for the news that another is gone, which ends this process with its name.

        For a process that has failed itself: a computation on the devices of all breaks with any of them.
        """
        if self._lines and self._ending.wait(FAREWELL_SECONDS):
            threading.Event().wait()  # until `_alone` has said it

    def leave(self, failed: str | None = None) -> None:
        """Say goodbye, or why this process stops before the others; process 0 waits until all have."""
        if self._ending.is_set() or not self._lines:
            return
        for line in self._lines.values():
            line.send(**({"failed": failed} if failed else {"bye": True}))
        if not failed:
            self._all_gone.wait(self._lost_seconds)
        self._ending.set()
        for line in self._lines.values():
            line.close()


def _free_port() -> int:
    with socket.create_server(("", 0)) as server:
        return int(server.getsockname()[1])


def _named(processes: list[int]) -> str:
    return ("process " if len(processes) == 1 else "processes ") + ", ".join(map(str, processes))
