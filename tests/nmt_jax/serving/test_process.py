"""`nmt-jax serve` as a process: many clients, memory, signals."""

import concurrent.futures
import http.client
import json
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

import pytest

from tests.fixtures.serving import Client

pytestmark = pytest.mark.slow


@pytest.fixture
def process(translator_workdir):
    """The process of a server, and a client."""
    arguments = ["serve", f"--workdir={translator_workdir}", "--port=0", "--metrics=chrf"]
    with subprocess.Popen([sys.executable, "-m", "nmt_jax", *arguments], stderr=subprocess.PIPE, text=True) as process:
        try:
            for line in process.stderr:
                if found := re.search(r"serving at http://127\.0\.0\.1:(\d+)/", line):
                    break
            yield process, Client(int(found.group(1)))
        finally:
            process.kill()


def resident(process):
    """Memory of a process in MiB."""
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) / 1024


WORDS = ["the", "old", "man", "girl", "dog", "sees", "sleeps", "sings", "a", "song", "today", "whom", "anna", "."]


def leave(port, line, seconds):
    """Send a request, and close the connection after some time."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("POST", "/api/translate", json.dumps({"lines": [line]}), {"Content-Type": "application/json"})
    time.sleep(seconds)
    connection.close()


def test_64_clients_get_the_translations_of_the_command_line_and_memory_stays_flat(
    process, translator_workdir, nmt_jax
):
    server, client = process
    draw = random.Random(0)
    lines = [" ".join(draw.choices(WORDS, k=draw.randrange(1, 12))) for _ in range(400)]
    arguments = [f"--workdir={translator_workdir}", "--format=json"]
    finished = nmt_jax("translate", *arguments, stdin="\n".join(lines) + "\n")
    expected = [json.loads(line)["hypotheses"][0] for line in finished.lines]

    def ask(number):
        if draw.random() < 0.25:
            leave(client.port, draw.choice(lines), draw.uniform(0, 0.1))
        answer = client.post("/api/translate", {"lines": [lines[number]]})
        assert answer.status == 200, answer.body
        return answer.json["results"][0][0]

    memory = []
    with concurrent.futures.ThreadPoolExecutor(64) as threads:
        for _ in range(3):  # the first compiles programs
            for found, one in zip(threads.map(ask, range(len(lines))), expected, strict=True):
                assert found == {"text": one["text"], "score": round(one["score"], 6)}
            memory.append(resident(server))
    assert memory[2] - memory[1] < 20
    assert re.search(r"^nmt_jax_waiting_lines 0$", client.get("/metrics").body.decode(), re.M)
    server.terminate()
    assert server.wait(60) == 0
    assert server.stderr.read().splitlines() == ["nmt-jax: stopped"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_server_after_the_requests_that_have_begun(number, process):
    server, client = process
    body = {"lines": ["the old man sees the dog"] * 200, "n_best": 5}
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        answer = threads.submit(client.post, "/api/translate", body)
        while json.loads(client.get("/health").body)["status"] == "ok" and not answer.done():
            if re.search(r"nmt_jax_waiting_lines [1-9]|lines_total [2-9]", client.get("/metrics").body.decode()):
                break
        server.send_signal(number)
        assert len(answer.result(60).json["results"]) == 200
    assert server.wait(60) == 0
    assert server.stderr.read().splitlines()[-1] == "nmt-jax: stopped"
