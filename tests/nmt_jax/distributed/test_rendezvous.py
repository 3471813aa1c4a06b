"""Joining and leaving of processes: errors name the process, and strangers are ignored."""

import contextlib
import functools
import json
import os
import socket
import subprocess
import sys
import threading
import time
from multiprocessing.connection import Connection

import pytest

from nmt_jax.distributed import rendezvous
from nmt_jax.distributed.process_spec import ProcessSpec, free_port
from nmt_jax.distributed.rendezvous import SECRET_FILE, Rendezvous
from nmt_jax.errors import UserError
from tests.conftest import ROOT


@pytest.fixture
def address():
    return f"127.0.0.1:{free_port()}"


@pytest.fixture(autouse=True)
def losses(monkeypatch):
    """Lost processes are collected here instead of ending the test process."""
    found = []
    monkeypatch.setattr(Rendezvous, "_lose", lambda self, process, why: found.append((process, why)))
    return found


def in_threads(calls):
    """Returns the result or the UserError of each call; the calls run at the same time."""
    results = [None] * len(calls)

    def run(number):
        try:
            results[number] = calls[number]()
        except UserError as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
        assert not thread.is_alive()
    return results


def join(specs, workdir, seconds=5.0, check=lambda infos: None, strangers=()):
    """Returns what each process gets from `join`, an address or a UserError, and the rendezvous of each."""
    calls = [Rendezvous(spec, workdir, lost_seconds=5.0) for spec in specs]
    joins = [
        lambda call=call, number=number: call.join({"name": f"number {number}"}, check, seconds)
        for number, call in enumerate(calls)
    ]
    return in_threads([*joins, *strangers])[: len(specs)], calls


def check_works(calls):
    """Process 0 reaches all others, and all leave."""
    calls = sorted(calls, key=lambda call: call.spec.process)
    value = {"dev/bleu": 0.1 + 0.2, "text": "ü\n"}
    assert [call.broadcast(lambda: value) for call in calls] == [value] * len(calls)
    in_threads([call.leave for call in calls])


def wait_for(condition):
    """Returns what a function returns as soon as that is true."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with contextlib.suppress(ConnectionRefusedError, FileNotFoundError):
            if found := condition():
                return found
        time.sleep(0.01)
    raise TimeoutError


def connect(address):
    """Connects to process 0 as soon as it listens."""
    host, _, port = address.rpartition(":")
    return wait_for(lambda: Connection(socket.create_connection((host, int(port))).detach()))


def test_all_processes_get_one_address_and_the_values_of_process_0(address, tmp_path, losses):
    addresses, calls = join([ProcessSpec(address, 3, process) for process in (2, 0, 1)], tmp_path)
    assert len(set(addresses)) == 1
    assert addresses[0].startswith("127.0.0.1:")
    check_works(calls)
    assert losses == []


def test_missing_processes_are_named_in_all_others(address, tmp_path):
    errors, _ = join([ProcessSpec(address, 4, 0), ProcessSpec(address, 4, 2)], tmp_path, seconds=0.5)
    for error in errors:
        assert f"processes 1, 3 of 4 did not join at {address} within 0.5 s" in str(error)


def test_no_answer_at_the_address_of_process_0(address, tmp_path):
    began = time.monotonic()
    errors, _ = join([ProcessSpec(address, 2, 1)], tmp_path, seconds=0.3)
    assert f"process 1: --coordinator={address}: no answer within 0.3 s" in str(errors[0])
    assert time.monotonic() - began < 5


def test_an_address_in_use(address, tmp_path):
    with socket.create_server(("127.0.0.1", int(address.rpartition(":")[2]))):
        errors, _ = join([ProcessSpec(address, 2, 0)], tmp_path)
    assert f"--coordinator={address}: cannot listen" in str(errors[0])


def test_different_numbers_of_processes(address, tmp_path):
    errors, _ = join([ProcessSpec(address, 2, 0), ProcessSpec(address, 3, 1)], tmp_path)
    for error in errors:
        assert "was started with --processes=3, process 0 with --processes=2" in str(error)


def test_the_same_process_twice(address, tmp_path):
    errors, _ = join([ProcessSpec(address, 3, process) for process in (0, 1, 1)], tmp_path)
    assert all("process 1" in str(error) and "joined twice" in str(error) for error in errors)


def test_a_failed_check_is_reported_by_all_processes(address, tmp_path):
    def check(infos):
        assert [info["name"] for info in infos] == ["number 0", "number 1"]
        return "these two differ"

    errors, _ = join([ProcessSpec(address, 2, 0), ProcessSpec(address, 2, 1)], tmp_path, check=check)
    assert [str(error) for error in errors] == ["these two differ"] * 2


def test_the_secret_is_private_and_deleted_after_the_start(address, tmp_path):
    secret, stale, modes = tmp_path / SECRET_FILE, "left by a process that was killed", []
    secret.write_text(stale)
    secret.chmod(0o644)

    def look_and_join():
        wait_for(lambda: secret.read_text() != stale)
        modes.append(secret.stat().st_mode & 0o777)
        late.join({"name": "late"}, lambda infos: None, 5.0)

    late = Rendezvous(ProcessSpec(address, 2, 1), tmp_path, lost_seconds=5.0)
    _, calls = join([ProcessSpec(address, 2, 0)], tmp_path, strangers=[look_and_join])
    assert modes == [0o600]
    assert not secret.exists()
    check_works([*calls, late])


# Every message that would matter if it came from a process of the run.
FORGED = [
    json.dumps(message).encode()
    for message in (
        {"processes": 3, "process": 1, "host": "stranger"},
        {"processes": 2, "process": 1, "host": "stranger"},
        {"failed": "forged"},
        {"lost": 0, "why": "forged"},
        {"bye": True},
        {"value": "forged"},
    )
]


def test_strangers_neither_join_nor_stop_a_run(address, tmp_path, losses):
    connections, joined, all_connected = [], threading.Event(), threading.Barrier(5)

    def stranger(*messages, raw=b""):
        connections.append(connection := connect(address))
        os.write(connection.fileno(), raw)
        send(connection, *messages)
        all_connected.wait(timeout=20)

    def join_late():
        all_connected.wait(timeout=20)
        late.join({"name": "late"}, lambda infos: None, 5.0)
        joined.set()

    late = Rendezvous(ProcessSpec(address, 2, 1), tmp_path, lost_seconds=5.0)
    strangers = [
        stranger,
        functools.partial(stranger, raw=b"GET / HTTP/1.1\r\n\r\n" * 10),
        functools.partial(stranger, *FORGED),
        functools.partial(stranger, b"n" * 32, b"p" * 32, *FORGED),  # a false handshake first
        join_late,
    ]
    replies, calls = join([ProcessSpec(address, 2, 0)], tmp_path, strangers=strangers)
    assert isinstance(replies[0], str), replies
    assert joined.is_set()
    # The start is over: old connections of strangers have no effect, and there can be no new ones.
    for connection in connections:
        send(connection, *FORGED)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])))
    time.sleep(0.2)
    assert losses == []
    check_works([*calls, late])
    assert losses == []


def send(connection, *messages):
    """Sends messages; process 0 may close the connection at any of them."""
    for message in messages:
        with contextlib.suppress(OSError):
            connection.send_bytes(message)


def test_process_0_without_the_secret_is_not_believed(address, tmp_path, monkeypatch):
    monkeypatch.setattr(rendezvous, "VISIBLE_SECONDS", 0.3)
    (tmp_path / SECRET_FILE).write_text("secret")
    with socket.create_server(("127.0.0.1", int(address.rpartition(":")[2]))) as server:
        server.settimeout(5.0)

        def pretend():
            with contextlib.suppress(OSError):
                while True:
                    connection = Connection(server.accept()[0].detach())
                    send(connection, b"n" * 32, b"p" * 32, *FORGED)

        threading.Thread(target=pretend, daemon=True).start()
        errors, _ = join([ProcessSpec(address, 2, 1)], tmp_path)
    assert f"the program there has another {tmp_path / SECRET_FILE}" in str(errors[0])


def test_a_workdir_that_is_not_shared(address, tmp_path, monkeypatch):
    monkeypatch.setattr(rendezvous, "VISIBLE_SECONDS", 0.3)
    calls = []
    for process, name in enumerate(("here", "elsewhere")):
        (tmp_path / name).mkdir()
        calls.append(Rendezvous(ProcessSpec(address, 2, process), tmp_path / name))
    errors = in_threads([lambda call=call: call.join({}, lambda infos: None, 1.0) for call in calls])
    assert "process 1 of 2 did not join" in str(errors[0])
    assert f"the program there has another {tmp_path / 'elsewhere' / SECRET_FILE}" in str(errors[1])


def test_only_the_interface_of_the_coordinator_is_open(address, tmp_path):
    port, refused = int(address.rpartition(":")[2]), []

    def knock():
        connect(address)
        with contextlib.suppress(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port)).close()
            return
        refused.append(True)

    join([ProcessSpec(address, 2, 0)], tmp_path, seconds=0.5, strangers=[knock])
    assert refused


SCRIPT = """
import os, pathlib, sys
from nmt_jax.distributed.process_spec import ProcessSpec
from nmt_jax.distributed.rendezvous import Rendezvous
process = int(sys.argv[3])
call = Rendezvous(ProcessSpec(sys.argv[1], 2, process), pathlib.Path(sys.argv[2]))
call.join({}, lambda infos: None, 60.0)
if process:
    os._exit(9)
call.wait_for_loss()  # as after an error in a computation of both
call.leave(failed="connection reset")
"""


def test_a_failure_caused_by_a_lost_process_names_that_process(address, tmp_path):
    command = [sys.executable, "-c", SCRIPT, address, str(tmp_path)]
    started = [subprocess.Popen([*command, number], cwd=ROOT, stderr=subprocess.PIPE, text=True) for number in "01"]
    (error, _), codes = [one.communicate(timeout=60)[1] for one in started], [one.returncode for one in started]
    assert codes == [1, 9]
    assert f"process 1 of 2 ({socket.gethostname()}) is gone" in error
