"""Question answering: windows cover the context, answers are spans of its characters."""

import io
import json

import jax
import numpy as np
import pytest
from ml_collections import ConfigDict

from nmt_jax import __main__ as cli
from nmt_jax import config as configs
from nmt_jax.data.readers.questions import Answer, Question
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.tasks.registry import make_task
from nmt_jax.tasks.span import NO_ANSWER
from nmt_jax.training.record import dev_metrics
from nmt_jax.training.run import train
from nmt_jax.workdir import Workdir
from tests.conftest import ROOT
from tests.fixtures import tiny_encoder_folder as tiny_encoder

PAGE = f"{ROOT}/configs/squad.py:smoke=true"
LONG = " ".join(["the film was good .", "\U0001f642  Jérôme's ﬁlm\u200b in\nParis", "a man sees karl ."] * 6)
CONTEXTS = [LONG, "Paris", "", "\u200b ", "a\u00a0b\u2028c", "word " * 40]


def question(context: str, text: str = "", where: int = 0) -> Question:
    answers = [Answer(text, context.index(text, where))] if text else []
    return Question("1", "where ?", context, answers, "")


def squad(count: int, without: int = 0) -> str:
    """Questions where somebody is; the answer follows the word `in`. `without`: more, of contexts that do not tell."""
    paragraphs = []
    for number in range(count):
        town = ("paris", "bonn")[number % 2]
        context = " ".join(
            [*["the film was good ."] * (number % 3), f"a man in {town} sees {('anna', 'karl')[number % 2]} ."]
        )
        answer = {"text": town, "answer_start": context.index(town)}
        paragraphs.append(
            {"context": context, "qas": [{"id": f"q{number}", "question": "where ?", "answers": [answer]}]}
        )
    for number in range(without):
        context = " ".join([*["the film was good ."] * (1 + number % 2), "a man sees anna ."])
        qa = {"id": f"n{number}", "question": "where ?", "answers": [], "is_impossible": True}
        paragraphs.append({"context": context, "qas": [qa]})
    return json.dumps({"data": [{"title": "t", "paragraphs": paragraphs}]})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    tiny_encoder.write(folder / "encoder")
    (folder / "train.json").write_text(squad(60, 20))
    (folder / "dev.json").write_text(squad(12, 4))
    return folder


def settings(folder, **changes) -> dict[str, str]:
    found = {
        "data.corpus": "files",
        "data.directory": folder,
        "data.train": "train.json",
        "data.dev": "dev.json",
        "data.max_length": 40,
        "data.max_question": 8,
        "data.stride": 9,
        "encoder.place": folder / "encoder",
        "data.num_buckets": "1",
        "optimizer.schedule": "constant",
        "optimizer.learning_rate": "0.01",
        "optimizer.warmup_steps": "1",
        "train.steps": "60",
        "train.eval_every": "60",
        "train.checkpoint_every": "60",
    }
    return {key: str(value) for key, value in (found | changes).items()}


def task_of(folder, workdir, **changes):
    config = ConfigDict(configs.load(PAGE, settings(folder, **changes)).to_dict())
    return make_task(config, workdir, sharding.make_mesh())


@pytest.fixture(scope="module")
def task(folder, tmp_path_factory):
    return task_of(folder, tmp_path_factory.mktemp("w"))


@pytest.fixture(scope="module")
def workdir(folder, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("run") / "w"
    metrics = train(PAGE, workdir, settings(folder))
    assert metrics["dev/exact_match"] == metrics["dev/f1"] == 100
    assert metrics["dev/has_answer_f1"] == metrics["dev/no_answer_f1"] == 100
    return workdir


def test_windows_cover_the_context(task):
    contexts = [*CONTEXTS, *("a " * count for count in range(20, 60))]  # whatever is left for the last window
    for context, windows in zip(contexts, task._windows([question(text) for text in contexts]), strict=True):
        pieces = task.reader.pieces([context])[0]
        seen = set()
        for number, window in enumerate(windows):
            inside = slice(window.first, window.end)
            assert len(window.item["ids"]) <= task.reader.max_length
            assert window.item["ids"][inside].tolist() == pieces.ids[9 * number :][: window.end - window.first].tolist()
            assert window.spans[inside].tolist() == pieces.spans[9 * number :][: window.end - window.first].tolist()
            assert window.item["segments"][inside].all()
            assert np.flatnonzero(window.item["candidates"]).tolist() == [0, *range(window.first, window.end)]
            seen |= set(range(9 * number, 9 * number + window.end - window.first))
        assert seen == set(range(len(pieces.ids)))
        assert bool(windows) == bool(len(pieces.ids))


@pytest.mark.parametrize("text", ["Jérôme's", "ﬁlm", "\U0001f642", "Paris", "karl .", "film was good", "ôm"])
def test_targets_are_the_positions_of_the_answer(task, text):
    asked = question(LONG, text, where=150)
    (windows,) = task._windows([asked])
    items = task._training_items(asked, windows)
    places = [(item["start"], item["end"]) for item in items]
    assert any(place != (NO_ANSWER, NO_ANSWER) for place in places)
    for (start, end), window in zip(places, windows, strict=True):
        if (start, end) != (NO_ANSWER, NO_ANSWER):
            first, last = window.spans[start][0], window.spans[end][1]
            assert text in LONG[first:last]
            assert first <= asked.answers[0].start < last
            assert len(LONG[first:last].split()) <= len(text.split()) + 1


def test_a_question_without_a_complete_window_is_left_out(task):
    asked = question(LONG, LONG[:200])
    (windows,) = task._windows([asked])
    assert task._training_items(asked, windows) == []


def test_all_windows_of_a_question_without_an_answer_are_trained(task):
    asked = question(LONG)
    (windows,) = task._windows([asked])
    items = task._training_items(asked, windows)
    assert len(items) == len(windows) > 1
    assert all(item["start"] == item["end"] == NO_ANSWER for item in items)


def test_the_score_compares_with_no_answer_where_it_is_least_probable(task):
    asked = question(LONG)
    (windows,) = task._windows([asked])
    outputs = [np.zeros((len(window.item["ids"]), 2), np.float32) for window in windows]
    outputs[0][windows[0].first + 2] = 3.0, 2.5
    for number, logits in enumerate(outputs):
        logits[NO_ANSWER] = 2.0 - 0.25 * number, 0.5
    best = task._best(LONG, windows, outputs)[0]
    assert best.score == pytest.approx(3.0 + 2.5 - (2.5 - 0.25 * (len(windows) - 1)))


def test_the_best_spans_equal_a_full_search(task):
    asked = question(LONG)
    (windows,) = task._windows([asked])
    random = np.random.default_rng(0)
    outputs = [random.normal(size=(len(window.item["ids"]), 2)).astype(np.float32) for window in windows]
    scores: dict = {}
    for window, logits in zip(windows, outputs, strict=True):
        for start in range(window.first, window.end):
            for end in range(start, min(start + 30, window.end)):
                span = (window.spans[start, 0], window.spans[end, 1])
                scores[span] = max(scores.get(span, -np.inf), logits[start, 0] + logits[end, 1])
    wanted = sorted(scores.items(), key=lambda pair: -pair[1])[:20]
    found = task._best(LONG, windows, outputs)
    assert [one.text for one in found] == [LONG[start:end].strip() for (start, end), _ in wanted]
    assert all(LONG[one.start :].startswith(one.text) for one in found)
    shares = np.exp([score for _, score in wanted])
    np.testing.assert_allclose([one.probability for one in found], shares / shares.sum(), rtol=1e-4)


@pytest.mark.slow
def test_answers_do_not_depend_on_other_questions(task):
    params = task.warm_start(jax.jit(task.init)(jax.random.key(0)))
    asked = [question(context) for context in CONTEXTS]
    whole = task.predict(params, asked)
    assert [bool(found) for found in whole] == [True, True, False, False, True, True]
    for one, found in zip(asked, whole, strict=True):
        (alone,) = task.predict(params, [one])
        np.testing.assert_allclose([c.probability for c in alone], [c.probability for c in found], atol=1e-4)
        assert sum(candidate.probability for candidate in found) == pytest.approx(float(bool(found)), abs=1e-5)


@pytest.mark.slow
def test_the_command_answers(workdir, folder, monkeypatch, capfdbinary):
    lines = [
        '{"question": "where ?", "context": "the man in  paris sees karl ."}',
        '{"question": "where ?", "context": ""}',
    ]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("\n".join(lines).encode())))
    assert cli.main(["answer", f"--workdir={workdir}"]) == 0
    assert capfdbinary.readouterr().out == b"paris\n\n"
    (folder / "asked.jsonl").write_text("\n".join(lines))
    assert cli.main(["answer", f"--workdir={workdir}", f"--input={folder}/asked.jsonl", "--format=json"]) == 0
    first, second = map(json.loads, capfdbinary.readouterr().out.splitlines())
    assert (first["id"], first["answer"], first["n_best"][0]["start"]) == ("1", "paris", 12)
    assert second == {"id": "2", "answer": "", "n_best": []}
    assert cli.main(["answer", f"--workdir={workdir}", f"--input={folder}/dev.json", "--format=squad"]) == 0
    found = json.loads(capfdbinary.readouterr().out)
    assert (found["q0"], found["q1"], len(found)) == ("paris", "bonn", 16)


@pytest.mark.slow
def test_the_command_gives_no_answer(workdir, folder, capfdbinary):
    assert "dev/no_answer_threshold" in dev_metrics(Workdir(workdir))
    (folder / "none.jsonl").write_text('{"question": "where ?", "context": "the film was good . a man sees anna ."}\n')
    asked = ["answer", f"--workdir={workdir}", f"--input={folder}/none.jsonl"]
    assert cli.main(asked) == 0
    assert capfdbinary.readouterr().out == b"\n"
    assert cli.main([*asked, "--format=json"]) == 0
    row = json.loads(capfdbinary.readouterr().out)
    assert row["answer"] == ""
    assert row["n_best"][0]["text"]
    assert cli.main([*asked, "--no_answer_threshold=-1000"]) == 0
    assert capfdbinary.readouterr().out.decode().strip() == row["n_best"][0]["text"]


@pytest.mark.slow
def test_the_command_answers_from_documents(workdir, folder, capfdbinary):
    lines = [
        "the film was dull .",
        "",
        "a man in paris sees karl .",
        "a man in bonn sees anna .",
        "the film was good .",
    ]
    (folder / "documents.txt").write_text("".join(f"{line}\n" for line in lines))
    (folder / "open.jsonl").write_text('{"question": "where sees a man anna ?"}\n{"question": "where karl ?"}\n')
    asked = ["answer", f"--workdir={workdir}", f"--input={folder}/open.jsonl", f"--documents={folder}/documents.txt"]
    asked += ["--no_answer_threshold=-1000"]  # the model has never seen these questions
    assert cli.main([*asked, "--format=json", "--top=1"]) == 0
    rows = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert [row["n_best"][0]["document"] for row in rows] == [4, 3]
    for row, line in zip(rows, lines[3:1:-1], strict=True):
        assert row["answer"] == row["n_best"][0]["text"]
        assert line[row["n_best"][0]["start"] :].startswith(row["answer"])
    assert cli.main([*asked, "--retriever=dense", f"--encoder={folder}/encoder", "--retrieval_weight=0.5"]) == 0
    assert all(answer in " ".join(lines) for answer in capfdbinary.readouterr().out.decode().splitlines())


@pytest.mark.slow
def test_invalid_requests_are_errors(workdir, monkeypatch, capfd):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"question": "a"}\n')))
    for arguments, words in (
        (["x.txt", f"--workdir={workdir}"], "< x.txt"),
        ([], "--workdir=FOLDER"),
        ([f"--workdir={workdir}", "--average=2", "--checkpoint=last"], "exclude each other"),
        ([f"--workdir={workdir}"], "stdin:1: not an object"),
        ([f"--workdir={workdir}", "--input=/nowhere.json"], "/nowhere.json: no such file"),
        ([f"--workdir={workdir}", "--top=3"], "--top has no effect without --documents=FILE"),
        (
            [f"--workdir={workdir}", "--documents=/x", "--encoder=y"],
            "--encoder has no effect without --retriever=dense",
        ),
        ([f"--workdir={workdir}", "--documents=/x", "--retriever=dense"], "--retriever=dense needs --encoder=PLACE"),
    ):
        assert cli.main(["answer", *arguments]) == 2
        assert words in capfd.readouterr().err


def test_invalid_settings_are_errors(folder, tmp_path):
    for changes, words in (
        ({"data.stride": 29}, r"config\.data\.stride=29: .* with max_length=40 and max_question=8"),
        ({"data.stride": 0}, r"config\.data\.stride=0"),
        ({"decode.n_best": 0}, r"config\.decode\.n_best=0: must be at least 1"),
    ):
        with pytest.raises(UserError, match=words):
            task_of(folder, tmp_path, **changes)
