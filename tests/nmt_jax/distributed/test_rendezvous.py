"""The roll call: who does not come, comes twice, or counts another number is told by name."""

import json
import socket
import subprocess
import sys
import threading
import time

import pytest

from nmt_jax.distributed.process_spec import ProcessSpec
from nmt_jax.distributed.rendezvous import Rendezvous, _Line
from nmt_jax.errors import UserError


@pytest.fixture
def address():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def meet(places, seconds=5.0, check=lambda cards: None):
    """What each of `places` hears: an answer or a UserError."""
    heard = [None] * len(places)
    calls = [Rendezvous(place, lost_seconds=5.0) for place in places]

    def call(number):
        try:
            heard[number] = calls[number].meet({"name": f"card {number}"}, check, seconds)
        except UserError as error:
            heard[number] = error

    threads = [threading.Thread(target=call, args=(number,)) for number in range(len(places))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return heard, calls


def test_all_hear_one_answer_and_what_the_first_says(address):
    heard, calls = meet([ProcessSpec(address, 3, process) for process in (2, 0, 1)])
    assert len(set(heard)) == 1
    assert heard[0].startswith("127.0.0.1:")
    value = {"dev/bleu": 0.1 + 0.2, "text": "ü\n"}
    assert calls[1].broadcast(lambda: value) == value
    assert [calls[number].broadcast(lambda: "never called") for number in (0, 2)] == [value] * 2
    leaving = [threading.Thread(target=call.leave) for call in calls]
    for thread in leaving:
        thread.start()
    for thread in leaving:
        thread.join(timeout=10)
        assert not thread.is_alive()


def test_who_does_not_come_is_named_to_all(address):
    heard, _ = meet([ProcessSpec(address, 4, 0), ProcessSpec(address, 4, 2)], seconds=1.0)
    for error in heard:
        assert f"processes 1, 3 of 4 did not come to {address} within 1 s" in str(error)


def test_nobody_at_the_address(address):
    began = time.monotonic()
    heard, _ = meet([ProcessSpec(address, 2, 1)], seconds=0.5)
    assert f"process 1: nobody answered at --coordinator={address} in 0.5 s" in str(heard[0])
    assert time.monotonic() - began < 5


def test_an_address_of_somebody_else(address):
    with socket.create_server(("127.0.0.1", int(address.rpartition(":")[2]))):
        heard, _ = meet([ProcessSpec(address, 2, 0)])
    assert f"--coordinator={address}: cannot listen there" in str(heard[0])


def test_other_counts_and_the_same_number_twice(address):
    heard, _ = meet([ProcessSpec(address, 2, 0), ProcessSpec(address, 3, 1)])
    for error in heard:
        assert "was started as one of 3, process 0 as one of 2" in str(error)
    heard, _ = meet([ProcessSpec(address, 3, 0), ProcessSpec(address, 3, 1), ProcessSpec(address, 3, 1)])
    assert all("process 1" in str(error) and "came twice" in str(error) for error in heard)


def test_what_is_wrong_with_the_cards_is_told_to_all(address):
    def check(cards):
        assert [card["name"] for card in cards] == ["card 0", "card 1"]
        return "these two do not fit"

    heard, _ = meet([ProcessSpec(address, 2, 0), ProcessSpec(address, 2, 1)], check=check)
    assert [str(error) for error in heard] == ["these two do not fit"] * 2


def test_strangers_are_passed_over(address):
    host, _, port = address.rpartition(":")

    def stranger():
        while True:
            try:
                connection = socket.create_connection((host, int(port)))
                break
            except OSError:
                time.sleep(0.01)
        connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
        connection.close()
        with socket.create_connection((host, int(port))) as other:
            other.sendall(json.dumps({"hello": 1}).encode() + b"\n")

    thread = threading.Thread(target=stranger)
    thread.start()
    heard, calls = meet([ProcessSpec(address, 2, 0)], seconds=1.0)
    thread.join()
    assert "process 1 of 2 did not come" in str(heard[0])
    assert calls[0].leave() is None


def test_a_line_closed_between_two_messages_has_none_left():
    here, there = socket.socketpair()
    with there:
        there.sendall(b'{"bye": true}\n')
        line = _Line(here)
        assert line.receive(1.0) == {"bye": True}
        line.close()  # as the thread that leaves does while another listens
        assert line.receive(1.0) is None


SCRIPT = """
import os, sys
from nmt_jax.distributed.place import ProcessSpec
from nmt_jax.distributed.roll_call import Rendezvous
process = int(sys.argv[2])
call = Rendezvous(ProcessSpec(sys.argv[1], 2, process))
call.meet({}, lambda cards: None, 60.0)
if process:
    os._exit(9)
call.hear_of_losses()  # as after an error of a computation of both
call.leave(failed="connection reset")
"""


def test_who_fails_for_want_of_another_names_it(address):
    command = [sys.executable, "-c", SCRIPT, address]
    started = [subprocess.Popen([*command, number], stderr=subprocess.PIPE, text=True) for number in "01"]
    (error, _), codes = [one.communicate(timeout=60)[1] for one in started], [one.returncode for one in started]
    assert codes == [1, 9]
    assert f"process 1 of 2 ({socket.gethostname()}) is gone" in error
