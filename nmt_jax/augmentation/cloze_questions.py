"""Questions made from plain text: an answer is removed from a sentence, and a question word takes its place.

Lewis et al. (2019) train readers on such questions, whose answers are spans of the paragraph of the sentence. Fabbri et
al. (2020) make the question of another sentence with the same answer, so that it has other words than the paragraph,
and move what follows the answer to the front: `Wh + B + A + ?` for a sentence A, answer, B.
"""

import functools
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nmt_jax.augmentation.answer_spans import KINDS, Span, find_spans, lower_case_words, sentences
from nmt_jax.augmentation.noise import drop
from nmt_jax.retrieval.bm25 import BM25, words
from nmt_jax.retrieval.ranking import best

FEWEST, MOST = 5, 13  # words beside the answer at which a question stops taking in further parts of its sentence
LONGEST = 30  # words of a question
NEAREST = 20  # sentences, or paragraphs, among which one is looked for
_BREAK = re.compile(r"[;:—–()\"“”]|``|''|--|,(?= )| - ")  # between the parts of a sentence
_EDGES = " \t,;:.!?—–-()\"“”`'[]"
_REMOVED = {  # before an answer
    "name": re.compile(r"\b(?:(?:in|at|from|near) )?(?:[Tt]he )?$"),
    "date": re.compile(r"\b(?:(?:[Ii]n|[Oo]n|[Ss]ince|[Bb]y|[Dd]uring|[Uu]ntil|[Ff]rom|[Oo]f) )?(?:the )?$"),
    "number": re.compile(r"$"),
    "phrase": re.compile(r"\b(?:(?:[Tt]he|[Aa]n?) )?$"),
}
_PERSON_BEFORE = re.compile(r"\b(?:by|Mr|Mrs|Dr|President|Sir|King|Queen|Judge|Professor|Captain|General)\.? $")
_PERSON_AFTER = re.compile(r"^,? (?:said|says|wrote|told|argued|asked|who|himself|herself)\b")
_POSSESSIVE = re.compile(r"^(?: ?['’]s\b|['’](?= ))")
_PLACE_BEFORE = re.compile(r"\b(?:in|at|from|near) (?:the )?$")


class Question(NamedTuple):
    """A question about a paragraph, the answer, the character where it begins, and whether it is of another sentence.

    Where no answer is in the paragraph, `answer` is empty.
    """

    question: str
    answer: str
    start: int
    other: bool = False


class ClozeQuestions:
    """Makes questions about the paragraphs of a text.

    Those about paragraph n are a function of the text, the seed and n.

    kinds: of answers, of `answer_spans.KINDS`. rate: share of the words of a question that are left out. other: the
    question is of another sentence that contains the answer and is most relevant to that of the paragraph by BM25, if
    there is one.
    """

    def __init__(
        self,
        paragraphs: Sequence[str],
        *,
        kinds: Sequence[str] = KINDS,
        rate: float = 0.1,
        other: bool = False,
        seed: int = 0,
    ):
        self._paragraphs, self._kinds, self._rate, self._other, self._seed = paragraphs, kinds, rate, other, seed
        self._lower_case = lower_case_words(paragraphs)

    @functools.cached_property
    def _sentences(self) -> list[tuple[int, str]]:
        """All sentences, each with the number of its paragraph."""
        return [(number, text[a:b]) for number, text in enumerate(self._paragraphs) for a, b in sentences(text)]

    @functools.cached_property
    def _ranked_sentences(self) -> BM25:
        return BM25([sentence for _, sentence in self._sentences])

    @functools.cached_property
    def _ranked_paragraphs(self) -> BM25:
        return BM25(self._paragraphs)

    def of(self, number: int, count: int) -> list[Question]:
        """Returns up to `count` questions about a paragraph, whose answers do not overlap, with all kinds in turn."""
        random, text = np.random.default_rng((self._seed, number)), self._paragraphs[number]
        by_kind: dict[str, list[tuple[int, str, Span]]] = {kind: [] for kind in self._kinds}
        for start, end in sentences(text):
            for span in find_spans(text[start:end], self._lower_case, self._kinds):
                by_kind[span.kind].append((start, text[start:end], span))
        queues = [[spans[n] for n in random.permutation(len(spans))] for spans in by_kind.values()]
        queues = [queues[n] for n in random.permutation(len(queues))]
        found: list[Question] = []
        while len(found) < count and any(queues):
            for queue in queues:
                if queue and len(found) < count:
                    start, sentence, span = queue.pop()
                    answer = sentence[span.start : span.end]
                    if made := self._question(number, sentence, span, random):
                        found.append(Question(made[0], answer, start + span.start, made[1]))
        return found

    def elsewhere(self, number: int, questions: Sequence[Question], share: float) -> list[tuple[int, Question]]:
        """Returns a share of the questions about a paragraph, each with another paragraph, which lacks the answer.

        It is the most relevant one by BM25. A question that shares words with no such paragraph is left out.
        """
        drawn = np.random.default_rng((self._seed, number, 1)).random(len(questions)) < share
        places = [
            (self._elsewhere(number, one), one) for one, is_drawn in zip(questions, drawn, strict=True) if is_drawn
        ]
        return [(place, one) for place, one in places if place is not None]

    def _elsewhere(self, number: int, question: Question) -> int | None:
        scores = self._ranked_paragraphs.scores(question.question)
        for other in best(scores, NEAREST):
            text = self._paragraphs[other]
            if scores[other] > 0 and text != self._paragraphs[number] and not contains(text, question.answer):
                return other
        return None

    def _question(self, number: int, sentence: str, span: Span, random: np.random.Generator) -> tuple[str, bool] | None:
        """The question of a sentence, or of another one with the same answer, and whether it is of another."""
        if self._other and (found := self._other_sentence(number, sentence, sentence[span.start : span.end])):
            other, start = found
            if made := self._made(other, Span(span.kind, start, start + span.end - span.start), random):
                return made, True
        made = self._made(sentence, span, random)
        return (made, False) if made else None

    def _other_sentence(self, number: int, sentence: str, answer: str) -> tuple[str, int] | None:
        """The most relevant sentence of another paragraph with the answer and with another word of the sentence."""
        scores = self._ranked_sentences.scores(sentence)
        own, answered = set(words(sentence)), re.compile(rf"(?<!\w){re.escape(answer)}(?!\w)")
        for place in best(scores, NEAREST):
            paragraph, other = self._sentences[place]
            match = answered.search(other) if scores[place] > 0 else None
            shared = own & set(words(other)) - set(words(answer))
            if match and shared and paragraph != number and words(other) != words(sentence):
                return other, match.start()
        return None

    def _made(self, sentence: str, span: Span, random: np.random.Generator) -> str | None:
        """The question whose answer is a span of a sentence; None if it would be short or contain the answer."""
        removed = _REMOVED[span.kind].search(sentence[: span.start])
        cut = removed.start() if removed else span.start
        left, right = _clause(sentence, cut, span.end, int(random.integers(FEWEST, MOST)))
        parts = sentence[left:cut], _POSSESSIVE.sub("", sentence[span.end : right])
        before, after = (part.strip(_EDGES).split() for part in parts)
        if before and left == 0 and before[0].lower() in self._lower_case:
            before[0] = before[0].lower()
        kept = drop([*after, *before], random, self._rate).words if after or before else []
        if not 3 <= len(kept) <= LONGEST:
            return None
        asking = _question_words(sentence, span)
        question = f"{asking[int(random.integers(len(asking)))]} {' '.join(kept).strip(_EDGES)}?"
        return None if contains(question, sentence[span.start : span.end]) else question


def contains(text: str, answer: str) -> bool:
    """Whether the words of an answer follow each other in a text, whatever their case and punctuation."""
    return f" {' '.join(words(answer))} " in f" {' '.join(words(text))} "


def _clause(sentence: str, start: int, end: int, fewest: int) -> tuple[int, int]:
    """The range of the parts of a sentence around [start, end), of at least `fewest` words beside it if there are.

    Parts are taken in from the left and from the right in turn.
    """
    edges = sorted({0, len(sentence), *(match.start() for match in _BREAK.finditer(sentence))})
    left = max(number for number, edge in enumerate(edges) if edge <= start)
    right = min(number for number, edge in enumerate(edges) if edge >= end)
    to_left = True
    while (left > 0 or right < len(edges) - 1) and (
        len(sentence[edges[left] : start].split()) + len(sentence[end : edges[right]].split()) < fewest
    ):
        if left > 0 and (to_left or right == len(edges) - 1):
            left -= 1
        else:
            right += 1
        to_left = not to_left
    return edges[left], edges[right]


def _question_words(sentence: str, span: Span) -> tuple[str, ...]:
    """The question words that suit an answer and what stands around it."""
    answer, before, after = sentence[span.start : span.end], sentence[: span.start], sentence[span.end :]
    if span.kind == "date":
        return ("In what year", "When") if answer.isdigit() else ("When", "On what date")
    if span.kind == "number":
        if answer.endswith(("%", "cent")):
            return ("What percentage",)
        return ("How much",) if answer[0] in "$£€" else ("How many",)
    if span.kind == "name":
        if _POSSESSIVE.search(after):
            return ("Whose",)
        if _PERSON_BEFORE.search(before) or _PERSON_AFTER.search(after):
            return ("Who",)
        return ("Where", "In what place", "What") if _PLACE_BEFORE.search(before) else ("Who", "What", "Which")
    return ("What", "Which")
