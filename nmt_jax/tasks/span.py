"""Question answering with a pretrained encoder: a question and a text in, a span of the text out."""

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from ml_collections import ConfigDict

from metrics_jax.prediction.answers import best_threshold, exact_match, word_f1
from nmt_jax.data.batching.encoder_rows import Field, Item, RowCorpus
from nmt_jax.data.readers.questions import Question, open_questions
from nmt_jax.errors import UserError
from nmt_jax.losses import cross_entropy as losses
from nmt_jax.progress import track
from nmt_jax.tasks.fine_tuning import FineTuning

IMPOSSIBLE = -1e9  # logit of tokens that cannot begin or end an answer
NO_ANSWER = 0  # the token that stands for "the answer is not in this window"


class Candidate(NamedTuple):
    """A possible answer, the character of the context where it begins, and its probability among the n best.

    score: the sum of its two logits, less that of no answer in the window where this is least probable; in nats.
    """

    text: str
    start: int
    probability: float
    score: float


NOTHING = Candidate("", 0, 0.0, IMPOSSIBLE)  # in a context without words


class _Window(NamedTuple):
    """A row, the character spans int32[S, 2] of its tokens, and the range [first, end) of tokens of the context."""

    item: Item
    spans: np.ndarray
    first: int
    end: int


class Span(FineTuning):
    """The question-answering task of one workdir: answers are spans of their context, as in SQuAD 1.1 and 2.0.

    A long context is cut into windows, which begin every `data.stride` tokens. A token of the context begins the answer
    with probability softmax(start) and ends it with probability softmax(end). If the answer is not in the window, both
    are the first token of the row (Devlin et al., 2019, sections 4.2 and 4.3).

    If some development questions have no answer, an answer is given if its score is above a threshold, which is tuned
    on them for F1; it is the measure `no_answer_threshold`.
    """

    measures = ("loss", "exact_match", "f1")
    next_command = "nmt-jax answer --workdir={workdir} < questions.jsonl > answers.txt"
    num_outputs = 2
    fields = MappingProxyType(
        {"start": Field(np.int32), "end": Field(np.int32), "candidates": Field(np.bool_, per_token=True)}
    )

    def __init__(self, config: ConfigDict, workdir: Path, mesh: Mesh) -> None:
        super().__init__(config, workdir, mesh)
        data = config.data
        if data.max_question < 1 or not 1 <= data.stride <= data.max_length - data.max_question - 4:
            raise UserError(
                f"config.data.stride={data.stride}: must be at least 1 and at most max_length - max_question - 4, with "
                f"max_length={data.max_length} and max_question={data.max_question} (at least 1)"
            )

    # Texts

    def training_texts(self) -> Iterator[str]:
        previous = ""  # consecutive equal contexts are read once
        for item in track(open_questions(self.config.data, "train"), "reading for the tokenizer"):
            yield item.question
            if item.context != previous:
                yield item.context
            previous = item.context

    def _windows(self, questions: Sequence[Question]) -> list[list[_Window]]:
        """The windows of each question; none if its context has no tokens."""
        contexts = list(dict.fromkeys(item.context for item in questions))
        context_pieces = dict(zip(contexts, self.reader.pieces(contexts), strict=True))
        question_pieces = self.reader.pieces([item.question for item in questions])
        windows = []
        for question, (ids, _) in zip(questions, question_pieces, strict=True):
            ids, context = ids[: self.config.data.max_question], context_pieces[question.context]
            most = self.reader.capacity(2) - len(ids)
            stride = self.config.data.stride
            starts = range(0, len(context.ids), stride)
            # No further window after the one that reaches the end of the context.
            parts = [
                slice(start, start + most) for start in starts if start == 0 or start - stride + most < len(context.ids)
            ]
            windows.append([self._window(ids, context, part) for part in parts])
        return windows

    def _window(self, question: Any, context: Any, part: slice) -> _Window:
        item, (_, first) = self.reader.row(question, context.ids[part])
        end = first + len(context.ids[part])
        spans = np.zeros((len(item["ids"]), 2), np.int32)
        spans[first:end] = context.spans[part]
        candidates = np.zeros(len(item["ids"]), bool)
        candidates[[NO_ANSWER, *range(first, end)]] = True
        return _Window({**item, "candidates": candidates}, spans, first, end)

    def _training_items(self, question: Question, windows: Sequence[_Window]) -> list[Item]:
        """The rows of a question with the positions of its first answer; none if no window holds the whole answer.

        All rows of a question without an answer are used.
        """
        if not question.answers:
            return [{**window.item, "start": NO_ANSWER, "end": NO_ANSWER} for window in windows]
        text, start = question.answers[0]
        items, found = [], False
        for item, spans, first, end in windows:
            inside = (spans[:, 0] < start + len(text)) & (spans[:, 1] > start)
            inside[:first], inside[end:] = False, False
            tokens = np.flatnonzero(inside)
            whole = len(tokens) > 0 and spans[tokens[0], 0] <= start and spans[tokens[-1], 1] >= start + len(text)
            found = found or whole
            target = (tokens[0], tokens[-1]) if whole else (NO_ANSWER, NO_ANSWER)
            items.append({**item, "start": target[0], "end": target[1]})
        return items if found else []

    @functools.lru_cache(maxsize=2)  # noqa: B019  a task lives as long as the program
    def _read(self, split: str) -> tuple[str, list[Question], list[list[_Window]], list[Item]]:
        """The name of a split, its questions, their windows, and the rows to train on."""
        corpus = open_questions(self.config.data, split)
        questions = list(track(corpus, f"reading {corpus.name}"))
        if not questions:
            raise UserError(f"{corpus.name}: no questions")
        windows = self._windows(questions)
        items = [self._training_items(*both) for both in zip(questions, windows, strict=True)]
        return corpus.name, questions, windows, list(itertools.chain.from_iterable(items))

    def _report(self, split: str) -> str:
        name, questions, windows, items = self._read(split)
        left = sum(map(len, windows)) - len(items)
        without = sum(not question.answers for question in questions)
        line = f"{name}: {len(questions):,} questions" + f", {without:,} of them without an answer" * bool(without)
        line += f", {len(items) + left:,} windows"
        return line + f"; {left:,} windows left out, as no window holds the whole answer" * bool(left)

    def train_corpus(self) -> RowCorpus:
        name, _, _, items = self._read("train")
        return RowCorpus(name, items, self.reader.max_length)

    def summary(self) -> list[tuple[str, str]]:
        return [
            *self.encoder_rows(),
            ("training questions", self._report("train")),
            ("development questions", self._report("dev")),
        ]

    # Training and prediction

    def loss(self, outputs: jax.Array, batch: Mapping[str, jax.Array]) -> jax.Array:
        """Cross-entropy in nats with label smoothing, the mean of start and end."""
        logits = jnp.where(batch["candidates"][..., None], outputs, IMPOSSIBLE)
        smoothing = self.config.loss.label_smoothing
        start = losses.smoothed_cross_entropy(logits[..., 0], batch["start"], smoothing)
        return (start + losses.smoothed_cross_entropy(logits[..., 1], batch["end"], smoothing)) / 2

    def evaluate(self, params: Any) -> dict[str, float]:
        """Return `dev/loss` in nats per window with a known answer, and exact match and F1 in percent.

        If some questions have no answer, also the best threshold, and F1 of questions with and without an answer.
        """
        _, questions, windows, items = self._read("dev")
        nats = []
        for item, logits in zip(items, self.outputs(params, items), strict=True):
            logits = logits[item["candidates"]].astype(np.float64)
            positions = np.cumsum(item["candidates"]) - 1
            true = logits[positions[[item["start"], item["end"]]], [0, 1]]
            nats.append(np.mean(np.logaddexp.reduce(logits, axis=0) - true))
        best = [found[0] if found else NOTHING for found in self._answers(params, questions, windows)]
        answers, references = [one.text for one in best], [_references(question) for question in questions]
        has_answer = np.array([bool(question.answers) for question in questions])
        measures = {"dev/loss": float(np.mean(nats)) if nats else 0.0}
        if not has_answer.all():
            threshold, _ = best_threshold([one.score for one in best], answers, references)
            answers = [one.text if one.score > threshold else "" for one in best]
            measures["dev/no_answer_threshold"] = threshold
            for name, group in (("has_answer", np.flatnonzero(has_answer)), ("no_answer", np.flatnonzero(~has_answer))):
                if len(group):
                    f1 = word_f1([answers[n] for n in group], [references[n] for n in group])
                    measures[f"dev/{name}_f1"] = 100 * f1
        return {
            **measures,
            "dev/exact_match": 100 * exact_match(answers, references),
            "dev/f1": 100 * word_f1(answers, references),
        }

    def predict(self, params: Any, questions: Sequence[Question]) -> list[list[Candidate]]:
        """Return the n best answers to each question, best first; none if its context has no words.

        The answers to a question do not depend on the other questions.
        """
        return self._answers(params, questions, self._windows(questions))

    def _answers(
        self, params: Any, questions: Sequence[Question], windows: Sequence[Sequence[_Window]]
    ) -> list[list[Candidate]]:
        outputs = iter(self.outputs(params, [window.item for group in windows for window in group]))
        return [
            self._best(question.context, group, list(itertools.islice(outputs, len(group))))
            for question, group in zip(questions, windows, strict=True)
        ]

    def _best(self, context: str, windows: Sequence[_Window], outputs: Sequence[np.ndarray]) -> list[Candidate]:
        """The n best spans of all windows by the sum of their two logits; a span in two windows has the higher sum."""
        most, n_best = self.config.decode.max_answer, self.config.decode.n_best
        scores: dict[tuple[int, int], float] = {}
        no_answer = min((float(logits[NO_ANSWER].sum()) for logits in outputs), default=0.0)
        for window, logits in zip(windows, outputs, strict=True):
            starts, ends = logits[window.first : window.end].T
            padded = np.concatenate([ends, np.full(most - 1, -np.inf, ends.dtype)])
            sums = starts[:, None] + np.lib.stride_tricks.sliding_window_view(padded, most)  # [start, length - 1]
            for index in np.argsort(-sums, axis=None, kind="stable")[:n_best]:
                start, length = divmod(int(index), most)
                if np.isfinite(sums[start, length]):
                    first, last = window.first + start, window.first + start + length
                    span = (int(window.spans[first, 0]), int(window.spans[last, 1]))
                    scores[span] = max(scores.get(span, -np.inf), float(sums[start, length]))
        best = sorted(scores, key=lambda span: (-scores[span], span))[:n_best]
        if not best:
            return []
        weights = np.exp(np.array([scores[span] for span in best]) - scores[best[0]])
        candidates = []
        for (start, end), probability in zip(best, weights / weights.sum(), strict=True):
            text, score = context[start:end], scores[start, end] - no_answer
            first = start + len(text) - len(text.lstrip())
            candidates.append(Candidate(text.strip(), first, float(probability), score))
        return candidates


def _references(question: Question) -> list[str]:
    """The reference answers as the measures read them: "" if there are none."""
    return [answer.text for answer in question.answers] or [""]
