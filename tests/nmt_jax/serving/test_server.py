"""The server answers as the command line does, many clients at a time, and refuses what it should."""

import concurrent.futures
import contextlib
import http.client
import itertools
import json
import random
import re
import socket
import threading
import time

import numpy as np
import pytest

from nmt_jax.serving import connections, guards
from nmt_jax.serving.bodies import read_body
from nmt_jax.serving.endpoints import ENDPOINTS, translate
from nmt_jax.serving.models import Models
from nmt_jax.translation.translator import EMPTY
from tests.fixtures.serving import Client, running

LINES = ["the old man sleeps .", "the girl sees the dog", "a dog", "", "the woman whom anna knows sings a song today ."]
SYSTEMS = {"A": ["the old man sleeps", "a dog ran"], "B": ["an old man is sleeping", "a dog runs"]}
REFERENCES = ["the old man sleeps", "a dog runs"]


@pytest.fixture(scope="module")
def models(translator_workdir) -> Models:
    return Models.open([[translator_workdir]], ["bleu", "chrf"])


@pytest.fixture(scope="module")
def client(models):
    with running(models) as client:
        yield client


def texts(answer):
    assert answer.status == 200, answer.body
    return [[one["text"] for one in found] for found in answer.json["results"]]


@pytest.mark.parametrize(
    ("flags", "fields"),
    [
        ([], {}),
        *(
            pytest.param(flags, fields, marks=pytest.mark.slow)
            for flags, fields in (
                (["--beam_size=2", "--length_penalty=1"], {"beam_size": 2, "length_penalty": 1}),
                (["--nbest=3"], {"n_best": 3}),
                (
                    ["--num_samples=3", "--temperature=0.7", "--seed=4"],
                    {"num_samples": 3, "temperature": 0.7, "seed": 4},
                ),
            )
        ),
    ],
)
def test_translations_are_those_of_the_command_line(flags, fields, client, nmt_jax, translator_workdir):
    finished = nmt_jax(
        "translate", f"--workdir={translator_workdir}", "--format=json", *flags, stdin="\n".join(LINES) + "\n"
    )
    expected = [json.loads(line)["hypotheses"] for line in finished.lines]
    answer = client.post("/api/translate", {"lines": LINES, **fields})
    assert texts(answer) == [[one["text"] for one in found] for found in expected]
    scores = [one["score"] for found in answer.json["results"] for one in found]
    np.testing.assert_allclose(scores, [one["score"] for found in expected for one in found], atol=1e-5)


def test_only_lines_of_the_same_padded_length_share_batches(models):
    endpoint = ENDPOINTS["/api/translate"]

    def call(*lines):
        return endpoint.parse(models, read_body(endpoint, json.dumps({"lines": lines}).encode()))[0]

    assert call("a dog") == call("the dog") == call("") != call("a dog " * 5)
    assert call("a dog", "a dog " * 5) == call("a dog " * 5)
    assert call("a dog " * 400) == call("a dog " * 1000)  # so long that they are not encoded before their turn


def test_a_translation_begins_with_its_prefix_and_contains_its_constraints(client):
    prefix, phrase = "Der alte", "Hund"
    body = {"lines": LINES[:2], "prefixes": [prefix, ""], "constraints": ["", phrase]}
    (first,), (second,) = texts(client.post("/api/translate", body))
    assert first.startswith(prefix)
    assert phrase in second


def test_attention_is_between_the_words_of_both_sides(client):
    answer = client.post("/api/translate", {"lines": LINES[:1], "attention": True})
    (found,) = answer.json["results"][0]
    assert found["source_words"] == LINES[0].split()
    assert np.shape(found["attention"]) == (len(found["words"]), len(found["source_words"]))
    whole = client.post("/api/attention", {"line": LINES[0], "translation": found["text"]}).json
    pieces = len(whole["target_pieces"]), len(whole["source_pieces"])
    assert np.shape(whole["cross"])[2:] == pieces
    np.testing.assert_allclose(np.sum(whole["cross"], axis=-1), 1.0, atol=1e-3)
    assert client.post("/api/attention", {"line": LINES[0]}).json["translation"] == found["text"]


@pytest.mark.parametrize("lines", [LINES[:1], LINES[1:3]], ids=["one", "two"])
def test_too_many_attention_weights_are_refused(lines, client, monkeypatch):
    monkeypatch.setattr(translate, "MOST_WEIGHTS", 1)
    answer = client.post("/api/translate", {"lines": lines, "attention": True})
    assert answer.status == 400
    assert "attention: more than 1 weights; send fewer or shorter lines" in answer.json["error"]
    streamed = client.post("/api/translate", {"lines": lines, "attention": True, "stream": True})
    assert "attention: more than 1 weights" in streamed.body.decode()
    assert client.post("/api/translate", {"lines": lines}).status == 200


def test_the_attention_weights_of_a_request_are_counted_together(client, monkeypatch):
    body = {"lines": LINES[1:2], "attention": True}
    (found,) = client.post("/api/translate", body).json["results"][0]
    whole = client.post("/api/attention", {"line": LINES[1], "translation": found["text"]}).json
    monkeypatch.setattr(translate, "MOST_WEIGHTS", len(whole["source_pieces"]) * len(whole["target_pieces"]))
    monkeypatch.setattr(translate, "GROUP", 1)
    assert client.post("/api/translate", body).status == 200
    assert client.post("/api/translate", body | {"lines": LINES[1:2] * 2}).status == 400


def test_scores_are_those_of_the_command_line(client, nmt_jax, tmp_path):
    for name, lines in {**SYSTEMS, "reference": REFERENCES}.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    flags = ["--metrics=bleu,chrf", "--paired=bootstrap", "--segments", "--format=json"]
    finished = nmt_jax("score", *(tmp_path / name for name in SYSTEMS), f"--reference={tmp_path / 'reference'}", *flags)
    rows = client.post("/api/score", {"systems": SYSTEMS, "references": REFERENCES, "paired": True}).json
    expected = json.loads("\n".join(finished.lines))
    assert [{**row, "system": str(tmp_path / row["system"])} for row in rows] == expected


@pytest.mark.slow
def test_answers_to_many_clients_at_once_are_those_to_one(client):
    words = sorted({word for line in LINES for word in line.split()})
    draw = random.Random(0)
    requests = [
        {"lines": [" ".join(draw.choices(words, k=draw.randrange(1, 9))) for _ in range(draw.randrange(1, 4))]}
        | ({"n_best": 2} if draw.random() < 0.3 else {})
        for _ in range(60)
    ]
    alone = [client.post("/api/translate", body) for body in requests]
    with concurrent.futures.ThreadPoolExecutor(16) as threads:
        together = list(threads.map(lambda body: client.post("/api/translate", body), requests))
    assert list(map(texts, together)) == list(map(texts, alone))


def test_a_full_queue_is_answered_with_429_and_nothing_is_lost(models):
    with running(models, queue=1) as client, concurrent.futures.ThreadPoolExecutor(24) as threads:
        answers = list(threads.map(lambda _: client.post("/api/translate", {"lines": LINES}), range(48)))
        expected = texts(client.post("/api/translate", {"lines": LINES}))
    busy = [answer for answer in answers if answer.status == 429]
    assert 0 < len(busy) < 48
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in busy)
    assert all(texts(answer) == expected for answer in answers if answer.status != 429)


def test_the_models_counters_and_description(client):
    described = client.get("/api/models").json
    assert [model["name"] for model in described["models"]] == ["w"]
    assert [metric["name"] for metric in described["metrics"]] == ["bleu", "chrf"]
    assert client.get("/health").json["status"] == "ok"
    assert {*ENDPOINTS, "/health", "/metrics", "/api/models"} == set(client.get("/api/openapi.json").json["paths"])
    before = counters(client)
    client.post("/api/translate", {"lines": LINES[:2]})
    after = counters(client)
    assert after["nmt_jax_lines_total"] - before["nmt_jax_lines_total"] == 2
    name = 'nmt_jax_requests_total{path="/api/translate",status="200"}'
    assert after[name] - before.get(name, 0) == 1
    duration = 'nmt_jax_request_duration_seconds_%s{path="/api/translate"%s}'
    assert after[duration % ("count", "")] == after[duration % ("bucket", ',le="+Inf"')]
    assert after[duration % ("bucket", ',le="0.005"')] <= after[duration % ("bucket", ',le="60.0"')]
    assert after[duration % ("sum", "")] > before.get(duration % ("sum", ""), 0)
    assert after["process_resident_memory_bytes"] > 50e6
    assert abs(after["process_start_time_seconds"] - time.time()) < 86_400
    rows = client.get("/metrics").body.decode().splitlines()
    described = {row.split()[2] for row in rows if row.startswith("# HELP ")}
    assert described == {row.split()[2] for row in rows if row.startswith("# TYPE ")}
    assert {re.sub("_(bucket|sum|count)$", "", re.split("[{ ]", row)[0]) for row in rows if row[0] != "#"} == described


def counters(client):
    rows = (line.rsplit(" ", 1) for line in client.get("/metrics").body.decode().splitlines() if line[0] != "#")
    return {name: float(value) for name, value in rows}


@pytest.mark.parametrize(
    "path", ["/", "/translate", "/compare", "/page/page.js", "/page/style.css", "/api/models", "/x"]
)
def test_every_answer_forbids_foreign_scripts_and_frames(path, client):
    headers = client.get(path).headers
    assert "default-src 'none'; script-src 'self'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"


def test_the_page_loads_nothing_from_elsewhere(client):
    for path in ("/", "/page/page.js", "/page/translate.js", "/page/compare.js", "/page/style.css"):
        text = client.get(path).body.decode()
        assert not re.search(
            r"https?://(?!www\.w3\.org/2000/svg)|innerHTML *=|insertAdjacentHTML|document\.write", text
        )


T, S = "/api/translate", "/api/score"
LONG = "a" * 20_000
HOSTILE = [
    ("GET", "/page/../../../../etc/passwd", None, 404),
    ("GET", "/page/%2e%2e/%2e%2e/bodies.py", None, 404),
    ("GET", "/page//etc/passwd", None, 404),
    ("GET", "/nothing", None, 404),
    ("DELETE", "/health", None, 405),
    ("GET", T, None, 405),
    ("POST", T, b"", 400),
    ("POST", T, b"{", 400),
    ("POST", T, b"[" * 100_000, 400),
    ("POST", T, b"\xff\xfe", 400),
    ("POST", T, b"null", 400),
    ("POST", T, {}, 400),
    ("POST", T, {"lines": "a dog"}, 400),
    ("POST", T, {"lines": [3]}, 400),
    ("POST", T, {"lines": [None]}, 400),
    ("POST", T, {"lines": {"a": "b"}}, 400),
    ("POST", T, {"lines": [LONG]}, 400),
    ("POST", T, {"lines": ["a"] * 5_000}, 400),
    ("POST", T, {"lines": ["a\nb"]}, 400),
    ("POST", T, {"lines": ["a\tb"]}, 400),
    ("POST", T, b'{"lines": ["\\ud800"]}', 400),
    ("POST", T, {"lines": ["a"], "model": "../../etc"}, 400),
    ("POST", T, {"lines": ["a"], "workdir": "/etc"}, 400),
    ("POST", T, {"lines": ["a"], "beam_size": 10**9}, 400),
    ("POST", T, {"lines": ["a"], "beam_size": True}, 400),
    ("POST", T, {"lines": ["a"], "n_best": -1}, 400),
    ("POST", T, b'{"lines": ["a"], "length_penalty": NaN}', 400),
    ("POST", T, {"lines": ["a"], "temperature": 1.0}, 400),
    ("POST", T, {"lines": ["a"], "num_samples": 2, "beam_size": 2}, 400),
    ("POST", T, {"lines": ["a"], "beam_size": 5, "num_groups": 2}, 400),
    ("POST", T, {"lines": ["a"], "prefixes": []}, 400),
    ("POST", T, {"lines": ["a"], "prefixes": ["x " * 3_000]}, 400),
    ("POST", "/api/attention", {"line": "a " * 3_000}, 400),
    ("POST", "/api/attention", {"line": ["a"]}, 400),
    ("POST", S, {"systems": {}, "references": ["a"]}, 400),
    ("POST", S, {"systems": ["a"], "references": ["a"]}, 400),
    ("POST", S, {"systems": {"A": ["a", "b"]}, "references": ["a"]}, 400),
    ("POST", S, {"systems": {"A": []}, "references": []}, 400),
    ("POST", S, {"systems": {"A": ["a"]}, "references": ["a"], "metrics": ["bertscore|encoder:/etc"]}, 400),
    ("POST", S, {"systems": {"A": ["a"]}, "references": ["a"], "metrics": [7]}, 400),
    ("POST", S, {"systems": {"A\nB": ["a"]}, "references": ["a"]}, 400),
    ("POST", S, {"systems": {"A": ["a"] * 30_000}, "references": ["a"] * 30_000}, 400),
    ("POST", T, b'"' + b"a" * (9 << 20) + b'"', 413),
]


@pytest.mark.parametrize(("method", "path", "body", "status"), HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_request_gets_one_line(method, path, body, status, client):
    answer = client.request(method, path, body)
    assert answer.status == status, answer.body
    message = answer.json["error"]
    assert list(answer.json) == ["error"]
    assert message
    assert "\n" not in message
    assert len(message) < 400
    assert client.get("/health").status == 200


def test_text_that_looks_like_html_stays_text(client):
    line = "<script>alert(1)</script> <img src=x onerror=alert(1)>"
    body = {"systems": {line: [line]}, "references": [line]}
    answer = client.post("/api/score", body)
    assert answer.headers["content-type"] == "application/json"
    assert answer.json[0]["system"] == line


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": ""}, 403),
        ({"Host": "localhost.evil.example:80"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Type": "application/x-www-form-urlencoded"}, 415),
    ],
)
def test_a_request_of_another_site_is_refused(headers, status, client):
    assert client.post("/api/translate", {"lines": ["a dog"]}, **headers).status == status
    host = f"localhost:{client.port}"
    same = client.post("/api/translate", {"lines": ["a dog"]}, Host=host, Origin=f"http://{host}")
    assert same.status == 200


def test_with_a_token_the_interface_needs_it_and_the_page_does_not(models):
    with running(models, token="secret") as client:
        assert client.get("/").status == client.get("/page/page.js").status == client.get("/health").status == 200
        for wrong in (
            {},
            {"Authorization": "Bearer wrong"},
            {"Authorization": "secret"},
            {"Authorization": "Bearer é"},
        ):
            assert client.get("/api/models", **wrong).status == 401
            assert client.get("/metrics", **wrong).status == 401
            assert client.post("/api/translate", {"lines": ["a dog"]}, **wrong).status == 401
        assert client.get("/api/models", Authorization="Bearer secret").status == 200


def test_a_client_that_sends_too_slowly_is_answered_and_disconnected(client, monkeypatch):
    monkeypatch.setattr(guards, "BODY_SECONDS", 0.2)
    with contextlib.closing(socket.create_connection(("127.0.0.1", client.port), timeout=10)) as slow:
        head = "POST /api/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        slow.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
        answer = slow.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert client.get("/health").status == 200


def open_connection(client, text=b""):
    """A connection on which some bytes were sent; to be closed."""
    connection = socket.create_connection(("127.0.0.1", client.port), timeout=10)
    connection.sendall(text)
    return contextlib.closing(connection)


def test_clients_that_never_finish_their_headers_are_disconnected(client, monkeypatch):
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.3)
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(open_connection(client, b"GET / HTTP/1.1\r\nX: ")) for _ in range(100)]
        slow += [stack.enter_context(open_connection(client)) for _ in range(100)]
        again = stack.enter_context(open_connection(client, b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET"))
        assert client.get("/health").status == 200
        assert all(one.recv(100) == b"" for one in slow)
        answer = again.makefile("rb").read()  # until the server closes the connection
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert answer.count(b"HTTP/1.1") == 1


def send_without_reading(port, request, times):
    """Send requests and read no answer, until the server closes the connection, for at most 30 seconds."""
    with contextlib.closing(socket.socket()) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(30)
        connection.connect(("127.0.0.1", port))
        for _ in range(times):
            connection.sendall(request)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            connection.sendall(b" ")
            time.sleep(0.05)


def test_a_client_that_reads_no_answers_is_disconnected(client, monkeypatch):
    monkeypatch.setattr(connections, "READ_SECONDS", 0.3)
    path = "/api/openapi.json"
    times = 20_000_000 // len(client.get(path).body)  # more than the buffers of the system hold
    with pytest.raises(ConnectionError):
        send_without_reading(client.port, f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode(), times)
    assert client.get("/health").status == 200


def test_connections_beyond_the_limit_are_closed_and_those_before_are_served(client, monkeypatch):
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 20)
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(open_connection(client))
        others = [stack.enter_context(open_connection(client)) for _ in range(40)]
        with contextlib.suppress(ConnectionError):
            assert others[-1].recv(100) == b""
        first.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert first.makefile("rb").read().startswith(b"HTTP/1.1 200 ")
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with contextlib.suppress(ConnectionError):
            if client.get("/health").status == 200:
                return
    pytest.fail("closed connections are still counted")


@pytest.mark.parametrize("length", [True, False], ids=["length", "chunked"])
def test_a_body_of_100_megabytes_is_refused(length, client):
    connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=60)
    with contextlib.closing(connection):
        headers = {"Content-Type": "application/json"} | ({"Content-Length": str(100 << 20)} if length else {})
        body = (b" " * (1 << 20) for _ in range(100))
        connection.request("POST", "/api/translate", body, headers, encode_chunked=not length)
        answer = connection.getresponse()
        assert answer.status == 413
        assert "too large" in json.load(answer)["error"]
    assert client.get("/health").status == 200


@pytest.mark.parametrize(
    "garbage", [b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", b"POST / HTTP/9\r\n\r\n"], ids=["tls", "version"]
)
def test_garbage_after_a_request_is_refused(garbage, client, capfd):
    with open_connection(client, b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" + garbage) as connection:
        answer = connection.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"HTTP/1.1 400 " in answer
    assert client.get("/health").status == 200
    assert capfd.readouterr().err == ""


def test_a_header_without_end_is_refused(client, capfd):
    with open_connection(client, b"GET / HTTP/1.1\r\nA: ") as connection, contextlib.suppress(ConnectionError):
        while True:
            connection.sendall(b"a" * 10_000)
    assert client.get("/health").status == 200
    assert capfd.readouterr().err == ""


WRONG = (None, True, -(10**400), 1e999, 0.5, "", "x", [], ["x"], [1], [[]], {}, {"x": {}})


def wrong_bodies():
    """Bodies with a value of a wrong type in one field, for every field of every endpoint."""
    for path, endpoint in ENDPOINTS.items():
        for name, key in endpoint.fields.items():
            for value in WRONG:
                required = name in endpoint.required
                if ((value is None or value == []) and not required) or name == "systems":
                    continue
                if value is None or key.problem(value):
                    yield pytest.param(path, {**endpoint.example, name: value}, id=f"{path} {name} {value!s:.9}")


@pytest.mark.parametrize(("path", "body"), list(wrong_bodies()))
def test_a_value_of_a_wrong_type_is_refused(path, body, client, capfd):
    answer = client.post(path, body)
    assert answer.status == 400, answer.body
    assert "\n" not in answer.json["error"]
    assert capfd.readouterr().err == ""


def events(answer):
    """The names and data of server-sent events."""
    assert answer.status == 200, answer.body
    assert answer.headers["content-type"].startswith("text/event-stream")
    parts = [part.split("\n") for part in answer.body.decode().split("\n\n")[:-1]]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in parts]


@pytest.mark.parametrize(
    "fields",
    [{"beam_size": 1}, {"num_samples": 2, "seed": 3}, {"n_best": 2, "attention": True}],
    ids=["greedy", "samples", "beam"],
)
def test_a_stream_shows_a_line_while_it_grows_and_ends_with_the_answer(fields, client):
    body = {"lines": LINES[1:2], **fields}
    *parts, (name, final) = events(client.post("/api/translate", {**body, "stream": True}))
    assert name == "result"
    assert final == client.post("/api/translate", body).json
    assert {name for name, _ in parts} == {"part"}
    assert len(parts) > 1
    shown = [[one["text"] for one in data["hypotheses"]] for _, data in parts]
    assert shown[-1] == [one["text"] for one in final["results"][0]]
    if "n_best" not in fields:  # nothing that was shown is taken back
        for before, after in itertools.pairwise(shown):
            assert all(long.startswith(short) for short, long in zip(before, after, strict=True))


@pytest.mark.slow
def test_a_stream_of_many_lines_shows_each_when_it_is_translated(client):
    body = {"lines": LINES[1:3] * 8}
    *parts, (_, final) = events(client.post("/api/translate", {**body, "stream": True}))
    assert final == client.post("/api/translate", body).json
    assert [data["line"] for _, data in parts] == list(range(16))
    assert [data["hypotheses"] for _, data in parts] == final["results"]


def test_a_wrong_request_for_a_stream_has_a_status(client):
    body = {"lines": ["a"], "constraints": ["x " * 3000], "stream": True}
    assert client.post("/api/translate", body).status == 400


def test_the_stream_of_a_client_that_has_gone_is_not_continued(client):
    body = json.dumps({"lines": LINES[1:3] * 75, "stream": True}).encode()
    head = f"POST /api/translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
    before = counters(client)["nmt_jax_batches_total"]
    with open_connection(client, head.encode() + b"Content-Type: application/json\r\n\r\n" + body) as connection:
        assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")
    name = 'nmt_jax_requests_total{path="/api/translate",status="200"}'
    finished = counters(client)[name]
    client.post("/api/translate", {"lines": LINES[:1]})
    assert counters(client)["nmt_jax_batches_total"] - before < 100  # of more than 150
    assert counters(client)[name] - finished <= 2


def test_a_stream_that_takes_too_long_ends_with_an_error(models, client, monkeypatch):
    answered = threading.Event()

    def grow(*arguments):
        yield [EMPTY]
        yield [EMPTY]
        answered.wait(30)

    monkeypatch.setattr(models.models["w"].translator, "grow", grow)
    monkeypatch.setattr(guards, "ANSWER_SECONDS", 1.0)
    (first, _), last = events(client.post("/api/translate", {"lines": LINES[:1], "stream": True}))
    answered.set()
    assert first == "part"
    assert last == ("error", {"error": "no answer within 1 seconds; send fewer or shorter lines"})


@pytest.mark.parametrize("group", [1, 25], ids=["lines", "groups"])
def test_lines_that_are_translated_in_groups_have_the_same_translations(group, client, monkeypatch):
    expected = client.post("/api/translate", {"lines": LINES}).json
    monkeypatch.setattr(translate, "GROUP", group)
    assert client.post("/api/translate", {"lines": LINES}).json == expected


def test_what_a_client_does_not_read_or_finish_does_not_harm_others(client):
    for text in (b"", b"GET", b"\x00" * 100, b"POST /api/translate HTTP/1.1\r\nContent-Length: 9\r\n\r\n"):
        with contextlib.closing(socket.create_connection(("127.0.0.1", client.port), timeout=10)) as rude:
            rude.sendall(text)
    assert texts(client.post("/api/translate", {"lines": ["a dog"]}))


@pytest.mark.slow
def test_requests_that_have_begun_are_answered_when_the_server_stops(models):
    body = {"lines": LINES * 10, "n_best": 3}
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        with running(models) as client:
            expected = texts(client.post("/api/translate", body))
            answers = [threads.submit(client.post, "/api/translate", body) for _ in range(4)]
            deadline = time.monotonic() + 10
            while counters(client)["nmt_jax_waiting_lines"] == 0 and time.monotonic() < deadline:
                if all(answer.done() for answer in answers):
                    break
        assert [texts(answer.result(30)) for answer in answers] == [expected] * 4
        with pytest.raises(ConnectionError):
            Client(client.port).get("/health")


def test_mistakes_on_the_command_line(mistake, translator_workdir, tmp_path):
    workdir = f"--workdir={translator_workdir}"
    assert "needs --workdir=FOLDER" in mistake("serve")
    assert "no such workdir" in mistake("serve", f"--workdir={tmp_path / 'none'}", "--port=0")
    assert "two models are called 'w'" in mistake("serve", workdir, workdir, "--port=0")
    assert "no metric 'blue'" in mistake("serve", workdir, "--metrics=blue", "--port=0")
    assert "--port" in mistake("serve", workdir, "--port=70000")
    (tmp_path / "token").write_text(" \n")
    assert "must contain a token" in mistake("serve", workdir, f"--token_file={tmp_path / 'token'}")
    (tmp_path / "token").write_bytes("é".encode("latin-1"))
    assert f"{tmp_path / 'token'}: must contain" in mistake("serve", workdir, f"--token_file={tmp_path / 'token'}")
    assert "No such file" in mistake("serve", workdir, f"--token_file={tmp_path / 'none'}")
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        assert f"--port={port}: Address already in use" in mistake("serve", workdir, f"--port={port}")
    assert "--host=no.such.host.invalid" in mistake("serve", workdir, "--host=no.such.host.invalid")
