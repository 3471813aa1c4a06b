"""VQA: small files in its format become pairs, and mistakes in them are errors of one line."""

import json

import numpy as np
import pytest
from ml_collections import ConfigDict
from PIL import Image

from nmt_jax.data.readers.parallel_text import open_text
from nmt_jax.data.readers.source_reader import SourceReader
from nmt_jax.data.readers.visual_questions import VisualQuestions
from nmt_jax.errors import UserError

QUESTIONS, ANNOTATIONS = "v2_OpenEnded_mscoco_tiny2014_questions.json", "v2_mscoco_tiny2014_annotations.json"


def annotation(number, kind, best):
    answers = [{"answer_id": n, "answer": best, "answer_confidence": "yes"} for n in range(1, 11)]
    fields = {"question_id": number, "question_type": kind, "answer_type": "other", "multiple_choice_answer": best}
    return fields | {"image_id": number // 1000, "answers": answers}


@pytest.fixture
def folder(tmp_path):
    questions = [
        {"image_id": 9, "question": "What color is the kite?", "question_id": 9001},
        {"image_id": 9, "question": "How many\tkites\nare there? ", "question_id": 9000},
        {"image_id": 123456, "question": "Is it windy?", "question_id": 123456000},
    ]
    annotations = [
        annotation(9000, "how many", "2"),
        annotation(123456000, "is it", "yes"),
        annotation(9001, "what color is the", "light blue"),
    ]
    write(tmp_path / QUESTIONS, {"info": {}, "data_type": "mscoco", "questions": questions})
    write(tmp_path / ANNOTATIONS, {"info": {}, "data_subtype": "tiny2014", "annotations": annotations})
    return tmp_path


def write(path, content):
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


def test_questions_and_images_become_pairs(folder):
    images = folder / "tiny2014"
    data = {"corpus": "vqa", "directory": str(folder), "train": "tiny2014", "source": "question,image"}
    data = ConfigDict(data | {"target": "answer", "kind": "text,image", "image_size": 8, "patch_size": 4})
    corpus = open_text(data, "train")
    pairs = [
        (f"What color is the kite?\t{images}/COCO_tiny2014_000000000009.jpg", "light blue"),
        (f"How many kites are there?\t{images}/COCO_tiny2014_000000000009.jpg", "2"),
        (f"Is it windy?\t{images}/COCO_tiny2014_000000123456.jpg", "yes"),
    ]
    assert list(corpus) == pairs
    (folder / "scratch").mkdir()
    assert [pair for part in corpus.slices(2, folder / "scratch") for pair in part] == pairs
    assert [one.kind for one in corpus.questions()] == ["what color is the", "how many", "is it"]
    images.mkdir()
    Image.fromarray(np.full((6, 9, 3), 200, np.uint8)).save(images / "COCO_tiny2014_000000000009.jpg")
    ids, rows = SourceReader.of(data).read(pairs[0][0], lambda text: [7] * len(text.split()))
    assert (len(ids), rows.shape) == (6, (4, 48))


def test_the_fingerprint_is_that_of_the_content(folder):
    before = VisualQuestions(folder, "tiny2014").fingerprint()
    assert VisualQuestions(folder, "tiny2014").fingerprint() == before
    write(folder / ANNOTATIONS, (folder / ANNOTATIONS).read_text().replace("light blue", "blue"))
    assert VisualQuestions(folder, "tiny2014").fingerprint() != before


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (QUESTIONS, '{"questions":\n [', r"questions\.json:2: not JSON"),
        (QUESTIONS, {"data": []}, r'questions\.json: not in the format of VQA: no list "questions"'),
        (
            QUESTIONS,
            {"questions": [{"question_id": 1, "image_id": "1", "question": "?"}]},
            "number 1: no 'image_id' of",
        ),
        (
            QUESTIONS,
            {"questions": [{"question_id": 1, "image_id": 1, "question": "?"}]},
            r"question 1 is not in .*annotations\.json; use the same version",
        ),
        (ANNOTATIONS, {"annotations": [7]}, "annotations, number 1: no 'question_id' of type int"),
        (ANNOTATIONS, "[]", 'no list "annotations"'),
        ("v1_" + ANNOTATIONS, "{}", r"\*_tiny2014_annotations\.json: 2 such files; unpack one version"),
    ],
)
def test_bad_files_are_errors(name, content, message, folder):
    write(folder / name, content)
    with pytest.raises(UserError, match=message):
        list(VisualQuestions(folder, "tiny2014"))


def test_a_missing_split_is_an_error(folder):
    with pytest.raises(UserError, match=r"\*_val2014_questions\.json: 0 such files"):
        list(VisualQuestions(folder, "val2014"))
