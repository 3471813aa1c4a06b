"""`nmt-jax classify` from end to end: a tiny corpus of files, a training run, labels for lines, a page of colours."""

import io
import json
import re

import pytest

from nmt_jax import __main__ as cli
from nmt_jax.commands import classify, plot
from nmt_jax.errors import UserError
from tests.conftest import ROOT
from tests.fixtures.workdirs import POSITIVE, labelled_rows

STRANGE = ["a great film\tgood", "", "a\u2028b", "bad\t\tpoor", " ", "🙂", "\t", "word " * 300]


@pytest.fixture
def workdir(classifier_workdir):
    return classifier_workdir


@pytest.fixture
def stdin(monkeypatch):
    """Puts bytes on stdin."""

    def put(data: bytes) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))

    return put


def _lines(out: bytes) -> list[str]:
    assert out.endswith(b"\n")
    return out.decode().removesuffix("\n").split("\n")


def test_the_model_has_learned(workdir):
    last = [json.loads(line) for line in (workdir / "metrics.jsonl").read_text().splitlines()][-1]
    assert last["dev/accuracy"] == 100
    assert json.loads((workdir / "vocab" / "labels.json").read_text()) == ["neg", "pos"]


def test_a_label_for_every_line(workdir, stdin, capfdbinary):
    stdin(b"\xef\xbb\xbf" + "\n".join(STRANGE).encode() + b"\n")
    assert cli.main(["classify", f"--workdir={workdir}", "--chunk=3"]) == 0
    out, err = capfdbinary.readouterr()
    lines = _lines(out)
    assert len(lines) == len(STRANGE)
    assert lines[0] == "pos"
    assert lines[3] == "neg"
    assert [number for number, line in enumerate(lines) if not line] == [1, 4, 6]
    assert b"\r" not in err  # no progress where nobody looks


def test_json_has_probabilities(workdir, tmp_path, capfdbinary):
    path = tmp_path / "texts"
    path.write_text("".join(f"{line}\n" for line in STRANGE[:2]))
    assert cli.main(["classify", f"--workdir={workdir}", f"--input={path}", "--format=json"]) == 0
    first, second = map(json.loads, _lines(capfdbinary.readouterr().out))
    assert (first["line"], first["label"]) == (1, "pos")
    assert first["probabilities"]["pos"] > 0.9
    assert sum(first["probabilities"].values()) == pytest.approx(1, abs=1e-5)
    assert second == {"line": 2, "label": None}


def test_chunks_and_neighbours_change_nothing(workdir):
    _, whole = classify.run(workdir, STRANGE)
    _, single = classify.run(workdir, STRANGE, chunk=1)
    for a, b in zip(whole, single, strict=True):
        assert a.label == b.label
        assert a.probabilities == pytest.approx(b.probabilities, abs=1e-6)


def test_checkpoints_can_be_chosen(workdir):
    found = {
        which: next(classify.run(workdir, STRANGE[:1], checkpoint=which)[1]).probabilities[0]
        for which in ("last", 1, 2)
    }
    assert found["last"] == found[1] != found[2]
    assert cli.main(["classify", f"--workdir={workdir}", "--average=2", "--checkpoint=last"]) == 2


def test_a_bad_line_is_named_and_what_came_before_is_labelled(workdir, stdin, capfdbinary):
    stdin(b"great\nbad\n\xff\ngood\n")
    assert cli.main(["classify", f"--workdir={workdir}"]) == 2
    out, err = capfdbinary.readouterr()
    assert _lines(out) == ["pos", "neg"]
    assert err.startswith(b"nmt-jax: error: stdin:3: not UTF-8")


def test_requests_that_cannot_be_meant(workdir, tmp_path, capfd):
    for arguments, words in (
        (["texts.txt", f"--workdir={workdir}"], "< texts.txt"),
        ([], "--workdir=FOLDER"),
        ([f"--workdir={tmp_path}"], "not a workdir"),
    ):
        assert cli.main(["classify", *arguments]) == 2
        assert words in capfd.readouterr().err
    assert cli.main(["translate", f"--workdir={workdir}"]) == 2
    assert "its task is 'classify'" in capfd.readouterr().err


def test_development_texts_are_coloured(workdir, capfd):
    assert cli.main(["plot", f"--workdir={workdir}", "--kind=attention", "--texts=3"]) == 0
    assert capfd.readouterr().out.strip() == str(workdir / "attention.html")
    shown = (workdir / "attention.html").read_text()
    assert shown.count("<article>") == 3
    assert shown.count('class="label right"') == 3
    assert len(set(re.findall(r'"label right">(\w+)', shown))) == 2
    table = shown[shown.index("<table>") : shown.index("</table>")]
    negative, positive = (set(row.split(", ")) for row in table.split("<td>")[1:])
    assert any(word in POSITIVE for word in positive)
    assert not any(word in " ".join(negative) for word in POSITIVE.split())


def test_a_text_of_ones_own_is_coloured(workdir, tmp_path):
    output = plot.run(workdir, kind="attention", sentence="a <b> film\tgood", output=tmp_path / "x.html")
    shown = output.read_text()
    assert shown.count('class="sentence"') == 2
    assert "&lt;b&gt;" in shown
    assert "<table>" not in shown
    with pytest.raises(UserError, match=r"ends in \.html"):
        plot.run(workdir, kind="attention", output=tmp_path / "x.png")
    with pytest.raises(UserError, match="no such folder"):
        plot.run(workdir, kind="attention", output=tmp_path / "y" / "x.html")
    with pytest.raises(UserError, match="no word to colour"):
        plot.run(workdir, kind="attention", sentence=" ", output=tmp_path / "x.html")


def test_the_curves_show_accuracy(workdir, tmp_path):
    pytest.importorskip("matplotlib")
    assert plot.run(workdir, output=tmp_path / "curves.svg").stat().st_size > 1000


def test_an_unknown_label_is_named_before_training(tmp_path, capfd):
    (tmp_path / "a.tsv").write_text(labelled_rows(20))
    (tmp_path / "b.tsv").write_text("label\ttitle\tbody\npos\tx\ty\nneutral\tx\ty\n")
    arguments = [f"--config={ROOT}/configs/han_movie_reviews.py:smoke=true", f"--workdir={tmp_path / 'w'}"]
    settings = {"corpus": "files", "directory": tmp_path, "train": "a.tsv", "dev": "b.tsv", "texts": '["title"]'}
    arguments += [f"--config.data.{key}={value}" for key, value in settings.items()]
    assert cli.main(["train", *arguments]) == 2
    error = capfd.readouterr().err
    assert f"{tmp_path}/b.tsv:3: label 'neutral' does not occur in the training texts, which have neg, pos" in error
