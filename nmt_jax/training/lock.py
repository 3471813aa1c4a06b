"""The lock of a workdir: one training writes it at a time."""

import contextlib
import datetime
import errno
import fcntl
import json
import os
import pathlib
import secrets
import socket
import sys
import threading
import time
from typing import IO, Any

from nmt_jax.errors import UserError
from nmt_jax.storage.paths import is_remote

FILE = ".lock"
HEARTBEAT_SECONDS = 10.0
STALE_SECONDS = 30.0  # without a heartbeat, a process on another host counts as gone


class WorkdirLock:
    """Context manager that holds `workdir/.lock`, which names the host and the process that trains.

    The operating system releases the lock of a process that is gone. Hosts that share a workdir may not see each
    other's locks; a process on another host holds the workdir as long as it touches the file. Object stores have no
    locks: there, only the owner in the file counts, and of two processes that start at the same moment, the one that
    writes first stops at its next `check`. Raises UserError if another process holds the workdir, or if the file cannot
    be written. needed: False for all but the first process of a run, which take no lock.
    """

    def __init__(self, workdir: pathlib.Path, needed: bool = True):
        self.path, self._needed = workdir / FILE, needed
        self._owner = {
            "host": socket.gethostname(),
            "process": os.getpid(),
            "since": datetime.datetime.now().isoformat(" ", "seconds"),
            "token": secrets.token_hex(8),
        }
        self._file: IO[str] | None = None  # None in object stores
        self._held = False
        self._leaving = threading.Event()

    def __enter__(self) -> "WorkdirLock":
        if self._needed:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                if not is_remote(self.path):
                    self._file = self.path.open("a+", encoding="utf-8")
                self._acquire()
            except OSError as error:
                self._close()
                raise UserError(f"{self.path.parent}: cannot write the workdir: {error.strerror or error}") from None
            except BaseException:
                self._close()
                raise
            self._held = True
            threading.Thread(target=self._send_heartbeats, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._leaving.set()
        if self._held:
            # Emptied, not deleted: another process may have opened it already.
            with contextlib.suppress(OSError):
                if self._file or _read(self.path) == self._owner:
                    self._write("")
            self._close()

    def check(self) -> None:
        """Raises UserError if the workdir was deleted or replaced since the lock was taken."""
        if not self._held:
            return
        try:
            ours = _read(self.path) == self._owner
        except FileNotFoundError:
            ours = False
        except OSError:  # of a network file system, for example; whatever is written next reports it
            return
        if not ours:
            raise UserError(
                f"{self.path.parent}: the workdir was deleted or replaced during training; nothing more is written"
            )

    def _acquire(self) -> None:
        locked = self._file is not None
        try:
            if self._file:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise self._held_by_other() from None
            locked = False  # the file system has no locks: only the owner in the file counts
        # An owner that is still there has crashed, or is on another host.
        if (owner := self._read_owner()) and not (
            _on_this_host(owner) and (locked or not _alive(owner.get("process")))
        ):
            self._wait_for_heartbeat(owner)
        self._write(json.dumps(self._owner))

    def _read_owner(self) -> dict[str, Any] | None:
        """Returns the owner in the file, if there is one."""
        try:
            return _read(self.path)
        except FileNotFoundError:  # not written yet, in an object store
            return None

    def _wait_for_heartbeat(self, owner: dict[str, Any]) -> None:
        """Raise UserError if the owner touches the file within `STALE_SECONDS` of the last time."""
        heartbeat, deadline = self.path.stat().st_mtime, time.monotonic() + STALE_SECONDS
        if time.time() - heartbeat < STALE_SECONDS:
            who = f"process {owner.get('process')} on {owner.get('host')}"
            print(f"nmt-jax: {self.path.parent}: waiting to see whether {who} still trains", file=sys.stderr)
        while time.time() - heartbeat < STALE_SECONDS and time.monotonic() < deadline:
            time.sleep(min(1.0, STALE_SECONDS / 4))
            if self.path.stat().st_mtime != heartbeat:
                raise self._held_by_other()

    def _held_by_other(self) -> UserError:
        owner = self._read_owner() or {}
        who = f"process {owner.get('process', 'unknown')} on {owner.get('host', 'this host')}"
        return UserError(
            f"{self.path.parent}: another training is running in this workdir: {who}, since "
            f"{owner.get('since', 'just now')}; wait for it or stop it, or use a new --workdir"
        )

    def _write(self, text: str) -> None:
        if self._file is None:
            self.path.write_text(text, encoding="utf-8")
            return
        self._file.truncate(0)
        self._file.write(text)
        self._file.flush()

    def _close(self) -> None:
        if self._file:
            with contextlib.suppress(OSError):  # writes what could not be written before
                self._file.close()
            self._file = None

    def _send_heartbeats(self) -> None:
        while not self._leaving.wait(HEARTBEAT_SECONDS):
            with contextlib.suppress(OSError):  # deleted, which `check` reports
                if self._file:
                    os.utime(self.path)
                elif _read(self.path) == self._owner:
                    self._write(json.dumps(self._owner))


def is_held(workdir: pathlib.Path) -> bool:
    """Returns whether a process trains in a workdir, judged by the owner and the heartbeat in its lock file.

    The lock is not touched, so that a training that starts at this moment gets it.
    """
    path = workdir / FILE
    try:
        owner, heartbeat = _read(path), path.stat().st_mtime
    except OSError:
        return False
    if owner is None or time.time() - heartbeat >= STALE_SECONDS:
        return False
    return not _on_this_host(owner) or _alive(owner.get("process"))


def _read(path: pathlib.Path) -> dict[str, Any] | None:
    """Returns the owner in a lock file; None if there is none."""
    try:
        owner = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return None
    return owner if isinstance(owner, dict) else None


def _on_this_host(owner: dict[str, Any]) -> bool:
    return bool(owner.get("host") == socket.gethostname())


def _alive(process: object) -> bool:
    """Returns whether this host has a process of this number."""
    try:
        os.kill(int(str(process)), 0)
    except (ValueError, ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # of another user
        pass
    return True
