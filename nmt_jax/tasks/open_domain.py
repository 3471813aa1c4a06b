"""Open-domain question answering: paragraphs of a collection are retrieved, then read (DrQA; Chen et al., 2017)."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from nmt_jax.data.readers.questions import Question
from nmt_jax.retrieval.ranking import best
from nmt_jax.tasks.span import Candidate


class Retriever(Protocol):
    """Scores the texts of a collection by a query."""

    def scores(self, query: str) -> np.ndarray:
        """The relevance of each text, float[N]; higher is better."""


class Found(NamedTuple):
    """A `Candidate`, the number of its document from 1 on, and the retrieval score of this document.

    `start` counts from the beginning of the document; `score` is that of the reader alone.
    """

    text: str
    start: int
    probability: float
    score: float
    document: int
    retrieval: float


class OpenDomain:
    """Answers questions from a collection of documents, such as paragraphs, with the interface of a task.

    Of the candidates in the `top` documents, those with the highest score + weight * retrieval score are best. With
    weight 0 retrieval only chooses the documents, as in DrQA. Probabilities are normalized over the n best.
    """

    def __init__(self, reader: Any, documents: Sequence[str], retriever: Retriever, top: int, weight: float = 0.0):
        """reader: the task of a `Span` workdir. retriever: of all documents; those without words are never read."""
        self._reader, self._documents, self._retriever = reader, documents, retriever
        self._top, self._weight = top, weight
        self._readable = np.array([bool(text.strip()) for text in documents])

    def predict(self, params: Any, questions: Sequence[Question]) -> list[list[Found]]:
        """Return the n best answers to each question, best first; their own contexts are not read."""
        chosen = [self.documents_for(question.question) for question in questions]
        asked = [
            question._replace(context=self._documents[number])
            for question, pairs in zip(questions, chosen, strict=True)
            for number, _ in pairs
        ]
        read = iter(self._reader.predict(params, asked))
        return [self._ranked([(next(read), *pair) for pair in pairs]) for pairs in chosen]

    def documents_for(self, question: str) -> list[tuple[int, float]]:
        """Return the numbers of the most relevant documents, counted from 0, and their retrieval scores."""
        scores = np.where(self._readable, self._retriever.scores(question), -np.inf)
        numbers = best(scores, min(self._top, int(self._readable.sum())))
        return [(number, float(scores[number])) for number in numbers]

    def _ranked(self, read: Sequence[tuple[Sequence[Candidate], int, float]]) -> list[Found]:
        """The n best candidates of all documents."""
        found = [
            Found(*candidate, document=number + 1, retrieval=score)
            for candidates, number, score in read
            for candidate in candidates
        ]
        found.sort(key=lambda one: -self._total(one))
        kept = found[: self._reader.config.decode.n_best]
        weights = np.exp(np.array([self._total(one) - self._total(kept[0]) for one in kept]))
        return [one._replace(probability=float(p)) for one, p in zip(kept, weights / weights.sum(), strict=True)]

    def _total(self, one: Found) -> float:
        return one.score + self._weight * one.retrieval
