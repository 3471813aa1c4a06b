"""`/api/runs` and `/api/curves`: what is in a folder of runs, whatever happens to it meanwhile."""

import json
import os
import shutil

import pytest

from nmt_jax.serving.models import Models
from nmt_jax.training.lock import WorkdirLock
from tests.fixtures.serving import running
from tests.fixtures.sweep_folders import make_run

PERPLEXITY = "dev/perplexity"


@pytest.fixture
def folder(tmp_path):
    """A folder with a sweep of three runs, one of which failed, and a single run."""
    root = tmp_path / "runs"
    make_run(root / "sweep", {"model.score": "dot", "seed": 0}, [40.0, 30.0, 35.0])
    make_run(root / "sweep", {"model.score": "general", "seed": 0}, [50.0, 20.0], steps=12)
    make_run(root / "sweep", {"model.score": "concat", "seed": 1}, log="nmt-jax: error: out of memory\n")
    (root / "sweep" / "score=concat,seed=1" / "config.json").unlink()
    run = make_run(root, {"model.d_model": 64}, [9.0])
    run.workdir.path.rename(root / "single")
    return root


@pytest.fixture
def models(folder):
    models = Models([], {})
    models.show_runs(folder)
    return models


@pytest.fixture
def client(models):
    with running(models) as client:
        yield client


def table(client):
    answer = client.post("/api/runs", {})
    assert answer.status == 200, answer.body
    return {row["run"]: row for row in answer.json["runs"]}


def curves(client, runs, *measures, since=None):
    answer = client.post("/api/curves", {"runs": runs, "measures": list(measures), "since": since})
    assert answer.status == 200, answer.body
    return answer.json


def append(file, *rows):
    with file.open("a") as log:
        log.write("".join(json.dumps(row) + "\n" for row in rows))


def test_the_table_shows_state_and_best_values(client):
    rows = table(client)
    assert list(rows) == ["single", "sweep/score=concat,seed=1", "sweep/score=dot,seed=0", "sweep/score=general,seed=0"]
    dot = rows["sweep/score=dot,seed=0"]
    expected = {
        "state": "finished",
        "task": "language_model",
        "model": "gpt",
        "parameters": 25,
        "step": 20,
        "steps": 20,
    }
    expected |= {"measure": PERPLEXITY, "best": 30.0, "best_step": 13, "higher_is_better": False, "problem": ""}
    assert {key: dot[key] for key in expected} == expected
    assert dot["folder"] == "sweep"
    assert rows["single"]["folder"] == ""
    assert rows["sweep/score=general,seed=0"]["state"] == "stopped"
    failed = rows["sweep/score=concat,seed=1"]
    assert (failed["state"], failed["problem"]) == ("failed", "out of memory")


def test_what_differs_between_configs(client):
    rows = table(client)
    assert rows["single"]["differs"] == {"model.d_model": "64", "model.score": "dot"}
    assert rows["sweep/score=general,seed=0"]["differs"] == {"model.d_model": "32", "model.score": "general"}
    assert client.post("/api/runs", {}).json["measures"] == sorted(
        ["dev/loss", PERPLEXITY, "learning_rate", "loss", "seconds", "skipped", "tokens_per_second"]
    )


def test_only_new_rows_are_sent(client, folder):
    (one,) = curves(client, ["single"], PERPLEXITY, "loss", "none")
    assert one["points"] == {PERPLEXITY: [[20, 9.0]], "loss": [[20, 0.9]], "none": []}
    log = folder / "single" / "metrics.jsonl"
    (two,) = curves(client, ["single"], PERPLEXITY, since=[one["since"]])
    assert (two["points"], two["since"], two["restarted"]) == ({PERPLEXITY: []}, one["since"], False)
    append(log, {"step": 21, PERPLEXITY: 8.5}, {"step": 22, PERPLEXITY: None})
    with log.open("a") as file:
        file.write('{"step": 23, "dev/perpl')  # is being written
    (three,) = curves(client, ["single"], PERPLEXITY, since=[two["since"]])
    assert (three["points"], three["problem"]) == ({PERPLEXITY: [[21, 8.5]]}, "")
    with log.open("a") as file:
        file.write('exity": 8.0}\n')
    (four,) = curves(client, ["single"], PERPLEXITY, since=[three["since"]])
    assert four["points"] == {PERPLEXITY: [[23, 8.0]]}


@pytest.mark.parametrize("way", ["another file", "shorter", "damaged cursor"])
def test_a_log_that_was_written_again_is_sent_from_its_beginning(way, client, folder):
    log = folder / "single" / "metrics.jsonl"
    (one,) = curves(client, ["single"], "loss")
    since = one["since"]
    if way == "another file":
        (folder / "new").write_text("".join(json.dumps({"step": k, "loss": 1.0}) + "\n" for k in range(50)))
        os.replace(folder / "new", log)
    elif way == "shorter":
        log.write_text('{"step": 0, "loss": 1.0}\n')
    else:
        since = "x" * 50 + "-" + "9" * 5000
    (two,) = curves(client, ["single"], "loss", since=[since])
    assert two["restarted"]
    assert two["points"]["loss"][0] == ([20, 0.9] if way == "damaged cursor" else [0, 1.0])


def test_a_run_that_trains_is_running(client, folder):
    with WorkdirLock(folder / "single"):
        assert table(client)["single"]["state"] == "running"
    assert table(client)["single"]["state"] == "finished"
    (folder / "single" / ".lock").write_text(json.dumps({"host": "elsewhere", "process": 1}))
    assert table(client)["single"]["state"] == "running"
    os.utime(folder / "single" / ".lock", (0, 0))  # without a heartbeat
    assert table(client)["single"]["state"] == "finished"


def test_damage_is_shown_and_is_no_error_of_the_server(client, folder):
    good = folder / "sweep" / "score=dot,seed=0"
    damages = {
        "text": "no config",
        "list": "[]",
        "number": "7",
        "types": '{"train": 3, "task": []}',
        "empty": "{}",
        "deep": "[" * 99_999,
    }
    for name, text in damages.items():
        shutil.copytree(good, folder / name)
        (folder / name / "config.json").write_text(text)
    binary = folder / "single" / "metrics.jsonl"
    binary.write_bytes(
        b"\xff\xfe\n" + binary.read_bytes() + b'[1]\n{"step": 30, "loss": NaN}\n{"step": 31, "loss": 1e999}\n'
    )
    rows = table(client)
    for name in damages:
        assert rows[name]["state"] == "damaged", name
        assert rows[name]["problem"]
        assert str(folder) not in rows[name]["problem"]
    assert rows["single"]["problem"] == "metrics.jsonl: 2 damaged lines"
    (one,) = curves(client, ["single"], "loss")
    assert one["points"]["loss"] == [[20, 0.9]]


def test_a_run_that_is_deleted_meanwhile(client, folder):
    (one,) = curves(client, ["single"], "loss")
    shutil.rmtree(folder / "single")
    (two, other) = curves(client, ["single", "sweep/score=dot,seed=0"], "loss", since=[one["since"], ""])
    assert (two["problem"], two["points"]) == ("was deleted", {})
    assert other["points"]["loss"]
    assert "single" not in table(client)
    shutil.rmtree(folder)
    assert table(client) == {}


def test_nothing_outside_of_the_folder_is_seen(client, folder, tmp_path):
    secret = make_run(tmp_path / "secret", {"seed": 1}, [1.0]).workdir.path
    (folder / "link").symlink_to(secret)
    (folder / "up").symlink_to("..")
    (tmp_path / "password.txt").write_text("hunter2\n")
    linked = {"a=1": "log.txt", "b=1": "config.json", "c=1": "metrics.jsonl"}
    for name, file in linked.items():
        (folder / name).mkdir()
        (folder / name / file).symlink_to(tmp_path / "password.txt")
    (folder / "sweep" / "score=concat,seed=1" / "log.txt").unlink()
    (folder / "sweep" / "score=concat,seed=1" / "metrics.jsonl").write_text("")
    (folder / "sweep" / "score=concat,seed=1" / "log.txt").symlink_to(tmp_path / "password.txt")
    assert "hunter2" not in client.post("/api/runs", {}).body.decode()
    seen = table(client)
    assert not seen.keys() & linked.keys()
    assert not any("secret" in name or "link" in name or "up" in name for name in seen)
    for name in (
        "../secret/seed=1",
        str(secret),
        "link",
        "up",
        "sweep",
        "single/",
        "single/../single",
        ".",
        "",
        "\x00",
    ):
        answer = client.post("/api/curves", {"runs": [name], "measures": ["loss"]})
        assert answer.status == 400, name
        assert "is not a run of the folder" in answer.json["error"]
        assert len(answer.json["error"]) < 400


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"runs": "single", "measures": ["loss"]},
        {"runs": [3], "measures": ["loss"]},
        {"runs": ["single"], "measures": "loss"},
        {"runs": ["single"], "measures": ["loss"], "since": []},
        {"runs": ["single"], "measures": ["loss"], "since": [4]},
        {"runs": ["single"] * 51, "measures": ["loss"]},
        {"runs": ["single"], "measures": ["loss"] * 51},
        {"runs": ["single\n"], "measures": ["loss"]},
        {"runs": ["single"], "measures": ["loss"], "folder": "/etc"},
    ],
)
def test_a_hostile_request_gets_one_line(body, client):
    answer = client.post("/api/curves", body)
    assert answer.status == 400
    assert "\n" not in answer.json["error"]


def test_odd_names_of_folders(client, folder):
    for name in ("<b>bold<b>", "ä ö", "a,b=c", "x" * 200):
        shutil.copytree(folder / "single", folder / name)
    for name in (b"\xff\xfe", b"line\nbreak", b".hidden"):
        shutil.copytree(os.fsencode(folder / "single"), os.path.join(os.fsencode(folder), name))
    names = {name for name in table(client) if "/" not in name}
    assert names == {"<b>bold<b>", "ä ö", "a,b=c", "x" * 200, "single"}
    for one in curves(client, sorted(names), "loss"):
        assert one["points"]["loss"] == [[20, 0.9]]


def test_the_folder_of_one_run(folder):
    models = Models([], {})
    models.show_runs(folder / "single")
    with running(models) as client:
        assert list(table(client)) == ["single"]
        assert client.get("/api/models").json["runs"]


def test_a_server_without_a_folder_says_so():
    with running(Models([], {})) as client:
        for path, body in (("/api/runs", {}), ("/api/curves", {"runs": ["a"], "measures": ["loss"]})):
            answer = client.post(path, body)
            assert answer.status == 400
            assert "--runs=FOLDER" in answer.json["error"]
        assert not client.get("/api/models").json["runs"]


def test_mistakes_on_the_command_line(mistake, tmp_path):
    assert "no such folder" in mistake("serve", f"--runs={tmp_path / 'none'}", "--port=0")
    assert "must be a local path" in mistake("serve", "--runs=s3://bucket/runs", "--port=0")
