"""`nmt-jax augment --kind=cloze_questions`: files that training reads, resuming, mistakes."""

import json

import pytest

from nmt_jax.commands import cloze_questions
from nmt_jax.data.readers.questions import SquadFile
from tests.nmt_jax.augmentation.test_cloze_questions import TEXT

ASK = ("augment", "--kind=cloze_questions")


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.setattr(cloze_questions, "CHUNK", 2)
    (tmp_path / "text.txt").write_text("".join(f"{line}\n" for line in TEXT))
    return [f"--source={tmp_path / 'text.txt'}", f"--output={tmp_path / 'made'}"]


def test_the_reader_of_training_data_reads_them(nmt_jax, source, tmp_path):
    finished = nmt_jax(*ASK, *source, "--copies=4", "--unanswerable=0.5", "--sentence=other")
    assert (finished.code, finished.lines) == (0, [str(tmp_path / "made.json")])
    questions = list(SquadFile(tmp_path / "made.json"))  # checks every answer
    assert {one.article for one in questions} == {"lines 1 to 2", "lines 3 to 4", "lines 5 to 6"}
    assert len({one.id for one in questions}) == len(questions)
    answered = [one for one in questions if one.answers]
    without = [one for one in questions if not one.answers]
    assert {one.context for one in answered} == {TEXT[n] for n in (0, 1, 3, 5)}
    assert without
    by_id = {one.id: one for one in answered}
    for one in without:
        original = by_id[one.id.removesuffix("-elsewhere")]
        assert (one.question, one.context != original.context) == (original.question, True)
        assert original.answers[0].text not in one.context
    assert f"6 paragraphs: {len(answered)} questions about 4 of them, " in finished.stderr
    assert f"; {len(without)} more without an answer" in finished.stderr


@pytest.mark.parametrize("fails", [0, 1, 2])
def test_a_resumed_job_writes_the_same_as_an_uninterrupted_one(nmt_jax, source, tmp_path, monkeypatch, fails):
    flags = [*source, "--copies=3", "--unanswerable=0.5"]
    assert nmt_jax(*ASK, *flags, f"--output={tmp_path / 'whole'}").code == 0
    make, calls = cloze_questions._article, []

    def killed(*arguments):
        calls.append(arguments)
        if len(calls) == fails + 1:
            raise KeyboardInterrupt
        return make(*arguments)

    monkeypatch.setattr(cloze_questions, "_article", killed)
    assert nmt_jax(*ASK, *flags).code == 130
    calls.clear()
    monkeypatch.setattr(cloze_questions, "_article", lambda *arguments: calls.append(0) or make(*arguments))
    assert nmt_jax(*ASK, *flags).code == 0
    assert len(calls) == 3 - fails
    assert (tmp_path / "made.json").read_bytes() == (tmp_path / "whole.json").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made.json", "text.txt", "whole.json"]


def test_mistakes(nmt_jax, mistake, source, tmp_path):
    (tmp_path / "empty.txt").write_text("\n...\nno\n")
    nothing = f"--source={tmp_path / 'empty.txt'}"
    assert "empty.txt: no question was made of 3 paragraphs" in mistake(*ASK, *source, nothing)
    assert "--answers=verb: use some of name, date" in mistake(*ASK, *source, "--answers=name,verb")
    assert "--target has no effect with --kind=cloze_questions" in mistake(*ASK, *source, "--target=x")
    assert "--first_line has no effect" in mistake(*ASK, *source, "--first_line=2")
    assert "--unanswerable has no effect with --kind=mask" in mistake(*ASK, *source, "--kind=mask", "--unanswerable=1")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.txt", "text.txt"]
    assert nmt_jax(*ASK, *source).code == 0
    assert "made.json: already exists" in mistake(*ASK, *source)
    first = json.loads((tmp_path / "made.json").read_text())
    assert nmt_jax(*ASK, *source, "--overwrite", "--seed=1").code == 0
    assert json.loads((tmp_path / "made.json").read_text()) != first
