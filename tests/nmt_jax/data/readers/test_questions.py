"""Questions: answers are located in code points, and errors name the question."""

import gzip
import json

import pytest
from ml_collections import ConfigDict

from nmt_jax.data.readers.questions import Answer, SquadFile, open_questions, read_asked
from nmt_jax.errors import UserError

CONTEXT = "\U0001f642 Köln liegt am Rhein.\nBonn auch."


def squad(*qas, context=CONTEXT, title="Rhein") -> dict:
    return {"title": title, "paragraphs": [{"context": context, "qas": list(qas)}]}


def qa(text, start, name="q1"):
    return {"id": name, "question": "Wo?", "answers": [{"text": text, "answer_start": start}]}


def write(folder, *articles):
    path = folder / "a.json"
    path.write_text(json.dumps({"version": "1.1", "data": articles}), encoding="utf-8")
    return path


def test_answers_are_counted_in_code_points(tmp_path):
    path = write(tmp_path, squad(qa("Köln", 2), qa("Bonn", 23, "q2")))
    found = list(SquadFile(path))
    assert [item.answers for item in found] == [[Answer("Köln", 2)], [Answer("Bonn", 23)]]
    packed = tmp_path / "b.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert list(SquadFile(packed)) == found


@pytest.mark.parametrize(("text", "start"), [("Köln", 3), ("Köln", 4), ("Köln", -32), ("Koln", 2), ("", 2), ("x", 99)])
def test_an_answer_that_is_not_in_its_context(tmp_path, text, start):
    path = write(tmp_path, squad(qa("Köln", 2, "good"), qa(text, start, "bad")))
    with pytest.raises(UserError, match=f"{path}: question 'bad': its answer '{text}' is not at character {start} "):
        list(SquadFile(path))
    assert len(list(SquadFile(path, answered=False))) == 2


def test_files_in_other_formats(tmp_path):
    path = tmp_path / "a.json"
    for content, words in (
        ("{\n\n[", r"a\.json:3: not JSON"),
        ("[]", 'no field "data"'),
        ('{"data": [{"title": "x"}]}', "after the beginning of the file: not in SQuAD 1.1"),
        ('{"data": 5}', "not in SQuAD 1.1"),
        (f'{{"data": {"1" * 5000}}}', "cannot read it"),
    ):
        path.write_text(content)
        with pytest.raises(UserError, match=words):
            list(SquadFile(path))
    write(tmp_path, squad({"id": "q7", "question": "?", "answers": []}))
    with pytest.raises(UserError, match=r"question 'q7' has no answer: .*SQuAD 2\.0"):
        list(SquadFile(path))
    write(tmp_path, squad(qa("Köln", 2), {**qa("Köln", 2, "q8"), "question": None}))
    with pytest.raises(UserError, match="after question 'q8': not in"):
        list(SquadFile(path))
    for answered in (True, False):
        write(tmp_path, squad({"id": "q9", "question": "?", "is_impossible": True}, context=None))
        with pytest.raises(UserError, match=r"after question 'q9': not in .*the context is not a string"):
            list(SquadFile(path, answered=answered))
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(b"{}")[:-4])
    with pytest.raises(UserError, match="cannot read it"):
        list(SquadFile(tmp_path / "b.json.gz"))


def test_questions_without_an_answer_are_marked(tmp_path):
    without = {
        "id": "q2",
        "question": "Wer?",
        "answers": [],
        "is_impossible": True,
        "plausible_answers": [{"text": "?"}],
    }
    path = write(tmp_path, squad({**qa("Köln", 2), "is_impossible": False}, without))
    assert [item.answers for item in SquadFile(path)] == [[Answer("Köln", 2)], []]
    path = write(tmp_path, squad({**qa("Köln", 2), "is_impossible": True}))
    with pytest.raises(UserError, match="question 'q1' has an answer, but is_impossible says"):
        list(SquadFile(path))


def test_folds_are_disjoint_sets_of_articles(tmp_path):
    write(tmp_path, *(squad(qa("Köln", 2, f"{n}a"), qa("Bonn", 23, f"{n}b"), title=f"t{n}") for n in range(6)))
    names = {"corpus": "files", "directory": str(tmp_path), "train": "a.json", "dev": "", "folds": 3, "size": 5}
    folds = []
    for fold in range(3):
        data = ConfigDict(names | {"fold": fold})
        sides = [{item.article for item in open_questions(data, split)} for split in ("train", "dev")]
        assert not sides[0] & sides[1]
        assert (len(sides[0]), len(sides[1])) == (4, 2)
        folds.append(sides[1])
    assert len(set.union(*folds)) == 6
    with pytest.raises(UserError, match=r"config\.data\.fold=3"):
        open_questions(ConfigDict(names | {"fold": 3}), "dev")


def test_grammar_questions_have_their_answers_in_the_context():
    for item in open_questions(ConfigDict({"corpus": "grammar", "size": 9}), "train"):
        ((text, start),) = item.answers
        assert item.context[start : start + len(text)] == text


def test_questions_for_prediction():
    lines = ['{"question": "a", "context": "b"}', '{"question": "c", "context": "d", "id": 7}']
    assert [(item.id, item.question) for item in read_asked(lines, "x")] == [("1", "a"), ("7", "c")]
    alone = list(read_asked(['{"question": "a"}', lines[1]], "x", with_context=False))
    assert [(item.question, item.context) for item in alone] == [("a", ""), ("c", "")]
    with pytest.raises(UserError, match=r'^x:1: not an object \{"question": TEXT\}'):
        list(read_asked(["{}"], "x", with_context=False))
    for wrong in ("", "{}", '{"question": "a", "context": 1}', "[]", "x"):
        with pytest.raises(UserError, match=r"^x:2: not an object"):
            list(read_asked([lines[0], wrong], "x"))


def test_published_files(shared):
    for language in ("en", "de"):
        assert len(list(SquadFile(shared / "data" / "xquad" / f"xquad.{language}.dev.json.gz"))) == 816
