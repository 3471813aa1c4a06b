"""Open-domain answering: the reader reads what the retriever ranks first, and both scores rank the answers."""

import types

import numpy as np
import pytest

from nmt_jax.data.readers.questions import Question
from nmt_jax.retrieval.bm25 import BM25
from nmt_jax.tasks.open_domain import OpenDomain
from nmt_jax.tasks.span import Candidate

DOCUMENTS = ["Karl sold bread.", " ", "Anna sold two cows and some bread.", "It rained.", "Anna left. She came back."]
CONFIG = types.SimpleNamespace(decode=types.SimpleNamespace(n_best=3))


class LongestWords:
    """A reader whose candidates are the words of the context, and whose score is their length."""

    config = CONFIG

    def __init__(self):
        self.read = []

    def predict(self, params, questions):
        self.read += [question.context for question in questions]
        return [self._words(question.context) for question in questions]

    def _words(self, context):
        found = [Candidate(word, context.index(word), 0.0, float(len(word))) for word in context.split()]
        return sorted(found, key=lambda one: -one.score)


def answer(question, top, weight=0.0):
    reader = LongestWords()
    asked = Question("1", question, "not read", [], "")
    (found,) = OpenDomain(reader, DOCUMENTS, BM25(DOCUMENTS), top, weight).predict(None, [asked])
    return reader.read, found


def test_the_most_relevant_documents_are_read():
    read, found = answer("What did Karl sell?", 1)
    assert read == DOCUMENTS[:1]
    assert [(one.text, one.start, one.document) for one in found] == [("bread.", 10, 1), ("Karl", 0, 1), ("sold", 5, 1)]
    read, found = answer("Who sold cows?", 99)
    assert sorted(read) == sorted(one for one in DOCUMENTS if one.strip())  # blank ones are never read
    assert read[0] == DOCUMENTS[2]


def test_scores_of_reader_and_retriever_rank_the_answers():
    question = "Who sold cows?"
    _, found = answer(question, 4)
    assert [(one.text, one.document) for one in found] == [("rained.", 4), ("bread.", 3), ("bread.", 1)]
    assert [one.score for one in found] == [7, 6, 6]
    _, weighted = answer(question, 4, 5.0)
    assert [(one.text, one.document) for one in weighted] == [("bread.", 3), ("Anna", 3), ("sold", 3)]
    scores = BM25(DOCUMENTS).scores(question)
    assert [one.retrieval for one in weighted] == [scores[2]] * 3
    for group, weight in ((found, 0.0), (weighted, 5.0)):
        shares = np.exp([one.score + weight * one.retrieval for one in group])
        assert [one.probability for one in group] == pytest.approx(shares / shares.sum())


def test_a_question_does_not_depend_on_others():
    asked = [Question(str(n), text, "", [], "") for n, text in enumerate(["Who sold cows?", "Did it rain?", ""])]
    answerer = OpenDomain(LongestWords(), DOCUMENTS, BM25(DOCUMENTS), 2)
    together = answerer.predict(None, asked)
    assert together == [answerer.predict(None, [one])[0] for one in asked]
    assert answerer.predict(None, []) == []
