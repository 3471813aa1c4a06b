"""A question and a text in, the answer out: a span of the text, by a pretrained encoder."""

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

from metrics_jax.prediction.answers import exact_match, word_f1
from nmt_jax.data.batching.encoder_rows import Field, Item, RowCorpus
from nmt_jax.data.readers.questions import Question, open_questions
from nmt_jax.errors import UserError
from nmt_jax.losses import cross_entropy as losses
from nmt_jax.progress import track
from nmt_jax.tasks.fine_tuning import FineTuning

NEVER = -1e9  # the logit of what can be no answer
NOWHERE = 0  # the piece that stands for "not in this window"


class Candidate(NamedTuple):
    """A possible answer, the character of the context that it begins at, and its probability among the n best."""

    text: str
    start: int
    probability: float


class _Window(NamedTuple):
    """A row, the characters of its pieces int32[S, 2], and [first, end) of those of the context."""

    item: Item
    spans: np.ndarray
    first: int
    end: int


class Span(FineTuning):
    """The task (`tasks.Task`) of one workdir: answers are spans of their text, as in SQuAD 1.1.

    A long context becomes windows, one every `data.stride` pieces. A piece of the context begins the answer with
    probability softmax(start), and ends it with softmax(end); where the answer is not in the window, both are the first
    piece of the row (Devlin et al., 2019, section 4.2 and 4.3).
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
                f"config.data.stride={data.stride}: of a row of max_length={data.max_length} a question takes up to "
                f"max_question={data.max_question}, special pieces 4: set it between 1 and what is left"
            )
        if min(config.decode.max_answer, config.decode.n_best) < 1:
            raise UserError("config.decode.max_answer and n_best must be at least 1")

    # Texts

    def training_texts(self) -> Iterator[str]:
        """The training questions and their contexts, each once."""
        seen = ""
        for item in track(open_questions(self.config.data, "train"), "reading for the tokenizer"):
            yield item.question
            if item.context != seen:
                yield item.context
            seen = item.context

    def _windows(self, questions: Sequence[Question]) -> list[list[_Window]]:
        """The windows of each question; none of a context without a piece."""
        contexts = list(dict.fromkeys(item.context for item in questions))
        read = dict(zip(contexts, self.reader.pieces(contexts), strict=True))
        asked = self.reader.pieces([item.question for item in questions])
        found = []
        for question, (ids, _) in zip(questions, asked, strict=True):
            ids, context = ids[: self.config.data.max_question], read[question.context]
            room = self.reader.capacity(2) - len(ids)
            windows: list[_Window] = []
            for start in itertools.count(0, self.config.data.stride):
                if start >= len(context.ids):
                    break
                part = slice(start, start + room)
                item, (_, first) = self.reader.row(ids, context.ids[part])
                end = first + len(context.ids[part])
                spans = np.zeros((len(item["ids"]), 2), np.int32)
                spans[first:end] = context.spans[part]
                candidates = np.zeros(len(item["ids"]), bool)
                candidates[[NOWHERE, *range(first, end)]] = True
                windows.append(_Window({**item, "candidates": candidates}, spans, first, end))
                if start + room >= len(context.ids):
                    break
            found.append(windows)
        return found

    def _learned(self, question: Question, windows: Sequence[_Window]) -> list[Item]:
        """The rows of a question, with where its first answer begins and ends; none if no window has all of it."""
        text, start = question.answers[0]
        items, anywhere = [], False
        for item, spans, first, end in windows:
            inside = (spans[:, 0] < start + len(text)) & (spans[:, 1] > start)
            inside[:first], inside[end:] = False, False
            places = np.flatnonzero(inside)
            # All of it: a window may cut it short.
            whole = len(places) > 0 and spans[places[0], 0] <= start and spans[places[-1], 1] >= start + len(text)
            anywhere = anywhere or whole
            target = (places[0], places[-1]) if whole else (NOWHERE, NOWHERE)
            items.append({**item, "start": target[0], "end": target[1]})
        return items if anywhere else []

    @functools.lru_cache(maxsize=2)  # noqa: B019  a task lives as long as the program
    def _read(self, split: str) -> tuple[str, list[Question], list[list[_Window]], list[Item]]:
        """The name of a split, its questions, their windows, and the rows that can be learned from."""
        corpus = open_questions(self.config.data, split)
        questions = list(track(corpus, f"reading {corpus.name}"))
        if not questions:
            raise UserError(f"{corpus.name}: no question in it")
        windows = self._windows(questions)
        learned = [self._learned(*both) for both in zip(questions, windows, strict=True)]
        return corpus.name, questions, windows, [item for items in learned for item in items]

    def _report(self, split: str) -> str:
        name, questions, windows, items = self._read(split)
        line = f"{name}: {len(questions):,} questions, {sum(map(len, windows)):,} windows"
        left = sum(map(len, windows)) - len(items)
        return line + f"; {left:,} of answers that no window has whole are left out" * bool(left)

    def train_corpus(self) -> RowCorpus:
        """The training windows."""
        name, _, _, items = self._read("train")
        return RowCorpus(name, items, self.reader.max_length)

    def summary(self) -> list[tuple[str, str]]:
        """Rows for the start table: encoder and corpora."""
        return [*self.encoder_rows(), *((f"{what} questions", self._report(split)) for what, split in SPLITS)]

    # Learning and predicting

    def loss(self, outputs: jax.Array, batch: Mapping[str, jax.Array]) -> jax.Array:
        """The mean cross-entropy of beginning and end, smoothed, in nats."""
        logits = jnp.where(batch["candidates"][..., None], outputs, NEVER)
        smoothing = self.config.loss.label_smoothing
        sides = [
            losses.smoothed_cross_entropy(logits[..., side], batch[name], smoothing)
            for side, name in enumerate(("start", "end"))
        ]
        return (sides[0] + sides[1]) / 2

    def evaluate(self, params: Any) -> dict[str, float]:
        """-> `dev/loss` (nats a window whose answer is known), and in percent: exact match and F1 of the answers."""
        _, questions, windows, learned = self._read("dev")
        nats = []
        for item, logits in zip(learned, self.outputs(params, learned), strict=True):
            logits = logits[item["candidates"]].astype(np.float64)
            places = np.cumsum(item["candidates"]) - 1
            chosen = logits[places[[item["start"], item["end"]]], [0, 1]]
            nats.append(np.mean(np.logaddexp.reduce(logits, axis=0) - chosen))
        answers = [(found[0].text if found else "") for found in self._answers(params, questions, windows)]
        given = [[answer.text for answer in question.answers] for question in questions]
        return {
            "dev/loss": float(np.mean(nats)) if nats else 0.0,
            "dev/exact_match": 100 * exact_match(answers, given),
            "dev/f1": 100 * word_f1(answers, given),
        }

    def predict(self, params: Any, questions: Sequence[Question]) -> list[list[Candidate]]:
        """Questions -> of each the n best answers, best first; none from a context without a word.

        An answer never depends on the other questions.
        """
        return self._answers(params, questions, self._windows(questions))

    def _answers(
        self, params: Any, questions: Sequence[Question], windows: Sequence[Sequence[_Window]]
    ) -> list[list[Candidate]]:
        outputs = iter(self.outputs(params, [window.item for own in windows for window in own]))
        return [
            self._best(question.context, own, list(itertools.islice(outputs, len(own))))
            for question, own in zip(questions, windows, strict=True)
        ]

    def _best(self, context: str, windows: Sequence[_Window], outputs: Sequence[np.ndarray]) -> list[Candidate]:
        """The n best spans of all windows by the sum of their two logits; of one seen twice the better."""
        most, n_best = self.config.decode.max_answer, self.config.decode.n_best
        scores: dict[tuple[int, int], float] = {}
        for window, logits in zip(windows, outputs, strict=True):
            starts, ends = logits[window.first : window.end].T
            padded = np.concatenate([ends, np.full(most - 1, -np.inf, ends.dtype)])
            sums = starts[:, None] + np.lib.stride_tricks.sliding_window_view(padded, most)  # [start, length - 1]
            for place in np.argsort(-sums, axis=None, kind="stable")[:n_best]:
                start, length = divmod(int(place), most)
                if np.isfinite(sums[start, length]):
                    first, last = window.first + start, window.first + start + length
                    span = (int(window.spans[first, 0]), int(window.spans[last, 1]))
                    scores[span] = max(scores.get(span, -np.inf), float(sums[start, length]))
        best = sorted(scores, key=lambda span: (-scores[span], span))[:n_best]
        if not best:
            return []
        shares = np.exp(np.array([scores[span] for span in best]) - scores[best[0]])
        found = []
        for (start, end), share in zip(best, shares / shares.sum(), strict=True):
            text = context[start:end]
            found.append(Candidate(text.strip(), start + len(text) - len(text.lstrip()), float(share)))
        return found


SPLITS = (("training", "train"), ("development", "dev"))
