"""Questions whose answers are spans of a context: SQuAD 1.1 and 2.0 JSON, JSONL, or the embedded grammar."""

from __future__ import annotations

import dataclasses
import gzip
import itertools
import json
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from nmt_jax.data import grammar
from nmt_jax.data.lines import find
from nmt_jax.data.readers.labelled import HELD_OUT, KINDS
from nmt_jax.data.readers.splits import Corpus, GrammarSplit, SingleFile, corpus_folder, with_held_out_fold
from nmt_jax.errors import UserError


class Answer(NamedTuple):
    """A span of the context: its text, and the code point at which it starts."""

    text: str
    start: int


class Question(NamedTuple):
    """A question, its context, and the reference answers: none for prediction, or if the context has no answer."""

    id: str
    question: str
    context: str
    answers: list[Answer]
    article: str


def open_questions(data: Any, split: str) -> Corpus[Question]:
    """The split ("train" or "dev") of the questions that `config.data` describes.

    If `data.dev` is empty, the development set is fold `data.fold` of the `data.folds` folds of the articles in the
    training file. Raises UserError immediately if a file is missing, and while reading if its content is invalid.
    """
    directory = corpus_folder(data, split, KINDS, data.get("train") or "the questions")
    if directory is None:
        return GrammarQuestions.of(data, split, HELD_OUT // 4)
    questions = SquadFile(find(directory / (data[split] or data.train)))
    return with_held_out_fold(data, split, questions, lambda item: ("", item.article), "articles")


@dataclasses.dataclass(frozen=True)
class SquadFile(SingleFile):
    """A file of SQuAD 1.1 or 2.0, plain or .gz: {"data": [{"title", "paragraphs": [{"context", "qas": […]}]}]}.

    answered: whether every question must have an answer, found in the context at `answer_start`, or be marked by
    "is_impossible": true.
    """

    answered: bool = True

    def __iter__(self) -> Iterator[Question]:
        """Raises UserError if the file has another format or an answer is not in its context."""
        try:
            content = self.path.read_bytes()
            articles = json.loads(gzip.decompress(content) if self.path.suffix == ".gz" else content)["data"]
        except json.JSONDecodeError as error:
            raise UserError(f"{self.path}:{error.lineno}: not JSON ({error.msg})") from None
        except (OSError, EOFError, zlib.error, ValueError, RecursionError) as error:  # also numbers of many digits
            raise UserError(f"{self.path}: cannot read it: {error}") from None
        except (KeyError, TypeError):
            raise UserError(f'{self.path}: not in SQuAD 1.1 format: no field "data"') from None
        last = "the beginning of the file"
        try:
            for number, article in enumerate(articles, start=1):
                title = str(article.get("title", number))
                for paragraph in article["paragraphs"]:
                    for qa in paragraph["qas"]:
                        last = f"question {qa['id']!r}"
                        yield self._question(qa, paragraph["context"], title)
        except (KeyError, TypeError, AttributeError) as error:
            what = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise UserError(f"{self.path}: after {last}: not in SQuAD 1.1 format ({what})") from None

    def _question(self, qa: dict[str, Any], context: str, title: str) -> Question:
        location = f"{self.path}: question {qa['id']!r}"
        answers = [Answer(answer["text"], answer["answer_start"]) for answer in qa.get("answers", [])]
        impossible = bool(qa.get("is_impossible"))
        if self.answered and not answers and not impossible:
            raise UserError(
                f'{location} has no answer: if its context has none, mark it as SQuAD 2.0 does, "is_impossible": true'
            )
        if self.answered and answers and impossible:
            raise UserError(f"{location} has an answer, but is_impossible says that there is none: remove one")
        for text, start in answers if self.answered else []:
            if not text or context[start : start + len(text)] != text or start < 0:
                raise UserError(
                    f"{location}: its answer {text!r} is not at character {start} of the context, which has "
                    f"{context[max(start, 0) :][: max(len(text), 1)]!r} there: correct answer_start (in code points)"
                )
        for what, text in (("question", qa["question"]), ("context", context)):
            if not isinstance(text, str):
                raise TypeError(f"the {what} is not a string")
        return Question(str(qa["id"]), qa["question"], context, answers, title)


@dataclasses.dataclass(frozen=True)
class GrammarQuestions(GrammarSplit):
    """`size` questions of the embedded grammar: which of three German sentences translates the English one."""

    def __iter__(self) -> Iterator[Question]:
        pairs = grammar.pairs(self.split, 3 * self.size)
        for number in range(self.size):
            sentences = list(itertools.islice(pairs, 3))
            english, german = sentences[number % 3]
            context = " ".join(pair[1] for pair in sentences)
            start = sum(len(pair[1]) + 1 for pair in sentences[: number % 3])
            yield Question(str(number + 1), english, context, [Answer(german, start)], str(number + 1))


def read_asked(lines: Iterable[str], name: str, with_context: bool = True) -> Iterator[Question]:
    """Questions for prediction: one object {"question": …, "context": …} per line, with an optional "id".

    with_context: otherwise, objects need no context, and it is left out. The id defaults to the line number. Raises
    UserError `name:LINE: …` for an invalid line.
    """
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            question, context = row["question"], row["context"] if with_context else ""
        except (ValueError, KeyError, TypeError, RecursionError):
            question = context = None
        if not isinstance(question, str) or not isinstance(context, str):
            fields = '"question": TEXT, "context": TEXT' if with_context else '"question": TEXT'
            raise UserError(f"{name}:{number}: not an object {{{fields}}}")
        yield Question(str(row.get("id", number)), question, context, [], "")
