"""Questions about photographs, in the format of VQA 1.0 and 2.0 (Antol et al., 2015; Goyal et al., 2017).

For a split such as train2014, a folder has `*_train2014_questions.json`, `*_train2014_annotations.json`, and the images
`train2014/COCO_train2014_000000000009.jpg`.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from nmt_jax.data.lines import sha256_of
from nmt_jax.data.readers import sources
from nmt_jax.data.readers.slices import Slice, written_slices
from nmt_jax.errors import UserError

VQA = "vqa"  # the corpus
QUESTION = {"question_id": int, "image_id": int, "question": str}  # fields and types
ANNOTATION = {"question_id": int, "question_type": str, "multiple_choice_answer": str}


class VisualQuestion(NamedTuple):
    """A question about an image; answer: the most frequent one of people. kind: such as "what color is the"."""

    question: str
    image: pathlib.Path
    answer: str
    kind: str


@dataclasses.dataclass(frozen=True)
class VisualQuestions:
    """A split of VQA in a folder as pairs: a question and the path of its image, and the answer."""

    directory: pathlib.Path
    split: str

    @property
    def name(self) -> str:
        return f"{self.directory} {self.split}"

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for one in self.questions():
            yield sources.join([one.question, str(one.image)]), one.answer

    def questions(self) -> Iterator[VisualQuestion]:
        """In the order of their file.

        Raises UserError if a file is missing or has another format, or if a question has no annotation.
        """
        paths = self._paths()
        rows, annotations = _rows(paths[0], "questions", QUESTION), _rows(paths[1], "annotations", ANNOTATION)
        annotated = {row["question_id"]: row for row in annotations}
        for row in rows:
            found = annotated.get(row["question_id"])
            if not found:
                raise UserError(f"{paths[0]}: question {row['question_id']} is not in {paths[1]}; use the same version")
            texts = (row["question"], found["multiple_choice_answer"], found["question_type"])
            question, answer, kind = (" ".join(text.split()) for text in texts)  # a line each
            image = self.directory / self.split / f"COCO_{self.split}_{row['image_id']:012}.jpg"
            yield VisualQuestion(question, image, answer, kind)

    def slices(self, size: int, scratch: pathlib.Path) -> Sequence[Slice]:
        """The pairs are written to `scratch` first."""
        return written_slices(self, [self.name, self.name], size, scratch)

    def fingerprint(self) -> str:
        """Of the two files; an image is known by its name."""
        return self._fingerprint

    @functools.cached_property
    def _fingerprint(self) -> str:
        return hashlib.sha256(" ".join([str(self.directory), *map(sha256_of, self._paths())]).encode()).hexdigest()

    def _paths(self) -> list[pathlib.Path]:
        """The files of questions and of annotations."""
        paths = []
        for content in ("questions", "annotations"):
            pattern = f"*_{self.split}_{content}.json"
            found = sorted(self.directory.glob(pattern))
            if len(found) != 1:
                raise UserError(f"{self.directory / pattern}: {len(found)} such files; unpack one version of VQA there")
            paths += found
        return paths


def _rows(path: pathlib.Path, key: str, fields: dict[str, type]) -> Sequence[dict[str, Any]]:
    """The list `key` of a JSON file, whose objects have these fields."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise UserError(f"{path}:{error.lineno}: not JSON ({error.msg})") from None
    except (OSError, ValueError, RecursionError) as error:  # also text that is not UTF-8, and numbers of many digits
        raise UserError(f"{path}: cannot read it: {error}") from None
    rows = content.get(key) if isinstance(content, dict) else None
    if not isinstance(rows, list):
        raise UserError(f'{path}: not in the format of VQA: no list "{key}"')
    for number, row in enumerate(rows, start=1):
        for name, kind in fields.items():
            if not isinstance(row, dict) or not isinstance(row.get(name), kind):
                raise UserError(f"{path}: {key}, number {number}: no {name!r} of type {kind.__name__}")
    return rows
