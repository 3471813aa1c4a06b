"""Questions about a text that holds the answers: SQuAD 1.1 JSON, JSONL, or the embedded grammar."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import itertools
import json
import pathlib
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol

from nmt_jax.data import grammar
from nmt_jax.data.lines import find
from nmt_jax.data.readers.labelled import HELD_OUT, KINDS
from nmt_jax.errors import UserError


class Answer(NamedTuple):
    """What a text says from character `start` (a code point) on."""

    text: str
    start: int


class Question(NamedTuple):
    """A question, its id, the text to answer it from, and the answers that were given; none where it is only asked."""

    id: str
    question: str
    context: str
    answers: list[Answer]
    article: str


class Questions(Protocol):
    """Questions in a fixed order, each time from the start."""

    @property
    def name(self) -> str:
        """What people call them."""

    def __iter__(self) -> Iterator[Question]: ...


def open_questions(data: Any, split: str) -> Questions:
    """The split ("train" or "dev") of the questions that `config.data` describes.

    Without a file of its own, `data.dev` empty, the development set is the articles of fold `data.fold` of the
    `data.folds` folds of the training file. Raises UserError at once where a file is missing, and while reading where
    it is at fault.
    """
    if data.corpus == "grammar":
        return GrammarQuestions(split, data.size if split == "train" else HELD_OUT // 4)
    if data.corpus not in KINDS:
        raise UserError(f"config.data.corpus: {data.corpus!r} is not one of {', '.join(KINDS)}")
    if not data.directory:
        raise UserError(f"config.data.directory: name the folder of {data.train}")
    questions = SquadFile(find(pathlib.Path(data.directory).expanduser() / (data[split] or data.train)))
    if data.dev:
        return questions
    if data.folds < 2 or not 0 <= data.fold < data.folds:
        raise UserError(
            f"config.data.fold={data.fold} of data.folds={data.folds}: take one of 0 … folds-1 of 2 or more"
        )
    return ArticleFold(questions, data.fold, data.folds, split)


@dataclasses.dataclass(frozen=True)
class SquadFile:
    """A file of SQuAD 1.1, plain or .gz: {"data": [{"title", "paragraphs": [{"context", "qas": […]}]}]}.

    answered: every question must have an answer that stands in its context, where `answer_start` says.
    """

    path: pathlib.Path
    answered: bool = True

    @property
    def name(self) -> str:
        """The path."""
        return str(self.path)

    def __iter__(self) -> Iterator[Question]:
        """Raises UserError for what is not such a file, and for an answer that is not there, naming the question."""
        try:
            content = self.path.read_bytes()
            articles = json.loads(gzip.decompress(content) if self.path.suffix == ".gz" else content)["data"]
        except json.JSONDecodeError as error:
            raise UserError(f"{self.path}:{error.lineno}: not JSON ({error.msg})") from None
        except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
            raise UserError(f"{self.path}: cannot read it: {error}") from None
        except (KeyError, TypeError):
            raise UserError(f'{self.path}: not of SQuAD 1.1: no "data" in it') from None
        asked = "the beginning of the file"
        try:
            for number, article in enumerate(articles, start=1):
                title = str(article.get("title", number))
                for paragraph in article["paragraphs"]:
                    for qa in paragraph["qas"]:
                        asked = f"question {qa['id']!r}"
                        yield self._question(qa, paragraph["context"], title)
        except (KeyError, TypeError, AttributeError) as error:
            what = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise UserError(f"{self.path}: after {asked}: not of SQuAD 1.1 ({what})") from None

    def _question(self, qa: dict[str, Any], context: str, title: str) -> Question:
        where = f"{self.path}: question {qa['id']!r}"
        answers = [Answer(answer["text"], answer["answer_start"]) for answer in qa.get("answers", [])]
        if self.answered and not answers:
            raise UserError(f"{where} has no answer: leave out what cannot be answered (SQuAD 2.0)")
        for text, start in answers if self.answered else []:
            if not text or context[start : start + len(text)] != text or start < 0:
                raise UserError(
                    f"{where}: its answer {text!r} is not at character {start} of the context, where stands "
                    f"{context[max(start, 0) :][: max(len(text), 1)]!r}: correct answer_start (code points, from 0)"
                )
        if not isinstance(qa["question"], str):
            raise TypeError("the question is no text")
        return Question(str(qa["id"]), qa["question"], context, answers, title)


@dataclasses.dataclass(frozen=True)
class ArticleFold:
    """The questions about the articles in fold `fold` of `folds`, for "dev", or about all others, for "train".

    The titles, in the order of their SHA-256, are dealt to the folds in turn: no text is in both splits.
    """

    questions: SquadFile
    fold: int
    folds: int
    split: str

    @property
    def name(self) -> str:
        """The path and the fold."""
        what = f"{'without ' if self.split == 'train' else ''}fold {self.fold} of {self.folds} of the articles"
        return f"{self.questions.name}, {what}"

    def __iter__(self) -> Iterator[Question]:
        found = list(self.questions)
        digests = {item.article: hashlib.sha256(item.article.encode()).digest() for item in found}
        ordered = sorted(digests, key=digests.__getitem__)
        folds = {article: place % self.folds for place, article in enumerate(ordered)}
        for item in found:
            if (folds[item.article] == self.fold) == (self.split == "dev"):
                yield item


@dataclasses.dataclass(frozen=True)
class GrammarQuestions:
    """`size` questions of the embedded grammar: an English sentence asks for its German one among three."""

    split: str
    size: int

    @property
    def name(self) -> str:
        """The grammar and the split."""
        return f"embedded grammar {self.split}"

    def __iter__(self) -> Iterator[Question]:
        pairs = grammar.pairs(self.split, 3 * self.size)
        for number in range(self.size):
            sentences = list(itertools.islice(pairs, 3))
            english, german = sentences[number % 3]
            context = " ".join(pair[1] for pair in sentences)
            start = sum(len(pair[1]) + 1 for pair in sentences[: number % 3])
            yield Question(str(number + 1), english, context, [Answer(german, start)], str(number + 1))


def read_asked(lines: Iterable[str], name: str) -> Iterator[Question]:
    """Questions to be answered, an object {"question": …, "context": …} a line, perhaps with an "id" (else the line).

    UserError `name:LINE: …` for a line that is none.
    """
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            question, context = row["question"], row["context"]
        except (ValueError, KeyError, TypeError):
            question = context = None
        if not isinstance(question, str) or not isinstance(context, str):
            raise UserError(f'{name}:{number}: not an object {{"question": TEXT, "context": TEXT}}')
        yield Question(str(row.get("id", number)), question, context, [], "")
