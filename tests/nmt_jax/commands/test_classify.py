"""`nmt-jax classify` with a small classifier that was trained on files."""

import json
import re

import pytest

from nmt_jax.commands import classify
from tests.conftest import ROOT
from tests.fixtures.command_line import error_line
from tests.fixtures.workdirs import POSITIVE, labelled_rows

STRANGE = ["a great film\tgood", "", "a\u2028b", "bad\t\tpoor", " ", "🙂", "\t", "word " * 300]


@pytest.fixture
def workdir(classifier_workdir):
    return classifier_workdir


def test_the_model_has_learned(workdir):
    last = [json.loads(line) for line in (workdir / "metrics.jsonl").read_text().splitlines()][-1]
    assert last["dev/accuracy"] == 100
    assert json.loads((workdir / "vocab" / "labels.json").read_text()) == ["neg", "pos"]


def test_one_label_per_line(workdir, nmt_jax):
    stdin = "\ufeff" + "\n".join(STRANGE) + "\n"
    code, lines, stderr = nmt_jax("classify", f"--workdir={workdir}", "--chunk=3", stdin=stdin)
    assert code == 0
    assert len(lines) == len(STRANGE)
    assert lines[0] == "pos"
    assert lines[3] == "neg"
    assert [number for number, line in enumerate(lines) if not line] == [1, 4, 6]
    assert "\r" not in stderr  # no progress bar outside a terminal


def test_json_has_probabilities(workdir, nmt_jax, tmp_path):
    path = tmp_path / "texts"
    path.write_text("".join(f"{line}\n" for line in STRANGE[:2]))
    lines = nmt_jax("classify", f"--workdir={workdir}", f"--input={path}", "--format=json").lines
    first, second = map(json.loads, lines)
    assert (first["line"], first["label"]) == (1, "pos")
    assert first["probabilities"]["pos"] > 0.9
    assert sum(first["probabilities"].values()) == pytest.approx(1, abs=1e-5)
    assert second == {"line": 2, "label": None}


def test_predictions_do_not_depend_on_chunks_or_other_lines(workdir):
    _, whole = classify.run(workdir, STRANGE)
    _, single = classify.run(workdir, STRANGE, chunk=1)
    for a, b in zip(whole, single, strict=True):
        assert a.label == b.label
        assert a.probabilities == pytest.approx(b.probabilities, abs=1e-6)


def test_checkpoints_can_be_chosen(workdir, mistake):
    found = {
        which: next(classify.run(workdir, STRANGE[:1], checkpoint=which)[1]).probabilities[0]
        for which in ("last", 1, 2)
    }
    assert found["last"] == found[1] != found[2]
    assert "exclude each other" in mistake("classify", f"--workdir={workdir}", "--average=2", "--checkpoint=last")


def test_lines_before_a_bad_one_are_labelled(workdir, nmt_jax):
    finished = nmt_jax("classify", f"--workdir={workdir}", stdin=b"great\nbad\n\xff\ngood\n")
    assert (finished.code, finished.lines) == (2, ["pos", "neg"])
    assert error_line(finished).startswith("stdin:3: not UTF-8")


def test_mistakes(workdir, tmp_path, mistake):
    for arguments, words in (
        (["texts.txt", f"--workdir={workdir}"], "< texts.txt"),
        ([], "--workdir=FOLDER"),
        ([f"--workdir={tmp_path}"], "not a workdir"),
    ):
        assert words in mistake("classify", *arguments)
    assert "its task is 'classify'" in mistake("translate", f"--workdir={workdir}")


def test_development_texts_are_coloured(workdir, nmt_jax):
    finished = nmt_jax("plot", f"--workdir={workdir}", "--kind=attention", "--texts=3")
    assert finished[:2] == (0, [str(workdir / "attention.html")])
    shown = (workdir / "attention.html").read_text()
    assert shown.count("<article>") == 3
    assert shown.count('class="label right"') == 3
    assert len(set(re.findall(r'"label right">(\w+)', shown))) == 2
    table = shown[shown.index("<table>") : shown.index("</table>")]
    negative, positive = (set(row.split(", ")) for row in table.split("<td>")[1:])
    assert any(word in POSITIVE for word in positive)
    assert not any(word in " ".join(negative) for word in POSITIVE.split())


def test_a_given_text_is_coloured(workdir, nmt_jax, mistake, tmp_path):
    command, output = ("plot", f"--workdir={workdir}", "--kind=attention"), tmp_path / "x.html"
    assert nmt_jax(*command, "--sentence=a <b> film\tgood", f"--output={output}").code == 0
    shown = output.read_text()
    assert shown.count('class="sentence"') == 2
    assert "&lt;b&gt;" in shown
    assert "<table>" not in shown
    assert "x.png: the file name must end in .html" in mistake(*command, f"--output={tmp_path / 'x.png'}")
    assert "no such folder" in mistake(*command, f"--output={tmp_path / 'y' / 'x.html'}")
    assert "no text contains a word" in mistake(*command, "--sentence= ", f"--output={output}", "--overwrite")


def test_training_curves_of_a_classifier(workdir, nmt_jax, tmp_path):
    pytest.importorskip("matplotlib")
    output = tmp_path / "curves.svg"
    assert nmt_jax("plot", f"--workdir={workdir}", f"--output={output}").code == 0
    assert output.stat().st_size > 1000


def test_an_unknown_label_is_reported_before_training(tmp_path, mistake):
    (tmp_path / "a.tsv").write_text(labelled_rows(20))
    (tmp_path / "b.tsv").write_text("label\ttitle\tbody\npos\tx\ty\nneutral\tx\ty\n")
    arguments = [f"--config={ROOT}/configs/han_movie_reviews.py:smoke=true", f"--workdir={tmp_path / 'w'}"]
    settings = {"corpus": "files", "directory": tmp_path, "train": "a.tsv", "dev": "b.tsv", "texts": '["title"]'}
    arguments += [f"--config.data.{key}={value}" for key, value in settings.items()]
    words = f"{tmp_path}/b.tsv:3: label 'neutral' does not occur in the training texts, which have neg, pos"
    assert words in mistake("train", *arguments)
