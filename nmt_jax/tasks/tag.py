"""Words in, a tag for each out, by a pretrained encoder: the names of people, places and organisations in a text."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import numpy as np

from metrics_jax.prediction.entities import entity_f1
from nmt_jax.data.batching.encoder_rows import Field, Item, RowCorpus
from nmt_jax.data.readers.tagged import open_tagged
from nmt_jax.errors import UserError
from nmt_jax.losses import cross_entropy as losses
from nmt_jax.progress import track
from nmt_jax.tasks.fine_tuning import FineTuning, saved

NO_TAG = -1  # of pieces that do not begin a word


class Prediction(NamedTuple):
    """A tag for each word, and float32[W, C], the probabilities of all tags."""

    tags: list[str]
    probabilities: np.ndarray


class Sentence(NamedTuple):
    """The rows of a sentence, mostly one; in each, the places of the first pieces of words, int[M], and the words."""

    rows: list[Item]
    places: list[np.ndarray]
    words: list[np.ndarray]


class Tag(FineTuning):
    """The tagging task (`tasks.Task`) of one workdir.

    The first piece of a word carries its tag (Devlin et al., 2019, section 5.3). A sentence that does not fit into a
    row becomes several, cut between words; a word without a piece, such as a control character, is O.
    """

    measures = ("loss", "accuracy", "precision", "recall", "f1")
    next_command = "nmt-jax tag --workdir={workdir} < words.txt > words.conll"
    fields = MappingProxyType({"tags": Field(np.int32, NO_TAG, per_token=True)})

    @functools.cached_property
    def tags(self) -> list[str]:
        """The workdir's, else O and B- and I- of the types in the training sentences, saved."""

        def make() -> list[str]:
            kinds = {tag[2:] for item in open_tagged(self.config.data, "train") for tag in item.tags if tag != "O"}
            if not kinds:
                raise UserError("config.data.tag_column: all words of the training sentences are O")
            return ["O", *(f"{mark}-{kind}" for kind in sorted(kinds) for mark in "BI")]

        return saved(self.workdir / "vocab" / "tags.json", make)

    @property
    def num_outputs(self) -> int:  # type: ignore[override]
        """One a tag."""
        return len(self.tags)

    # Sentences

    def training_texts(self) -> Iterator[str]:
        """The training sentences."""
        for item in track(open_tagged(self.config.data, "train"), "reading for the tokenizer"):
            yield " ".join(item.words)

    def _sentences(self, sentences: Sequence[Sequence[str]]) -> list[Sentence]:
        """Words -> rows of their pieces, as the tokenizer cuts the words with blanks between them."""
        found = []
        room = self.reader.capacity(1)
        for words, pieces in zip(sentences, self.reader.pieces([" ".join(words) for words in sentences]), strict=True):
            # The word that each piece ends in: its last character tells, as the first can be the blank before it.
            ends = np.cumsum([len(word) + 1 for word in words])
            word = np.searchsorted(ends, pieces.spans[:, 1] - 1, side="right")
            starts = np.flatnonzero(np.diff(word, prepend=-1))  # of the words that have a piece
            sentence = Sentence([], [], [])
            first = 0
            while first < len(starts):
                # As many words as fit; of one that is too long alone, the beginning.
                limits = np.append(starts[first + 1 :], len(word)) - starts[first]
                last = first + max(int(np.searchsorted(limits, room, side="right")), 1)
                stop = min(starts[last] if last < len(starts) else len(word), starts[first] + room)
                row, (shift,) = self.reader.row(pieces.ids[starts[first] : stop])
                sentence.rows.append(row)
                sentence.places.append(starts[first:last] - starts[first] + shift)
                sentence.words.append(word[starts[first:last]])
                first = last
            found.append(sentence)
        return found

    @functools.lru_cache(maxsize=2)  # noqa: B019  a task lives as long as the program
    def _read(self, split: str) -> tuple[str, list[list[str]], list[list[str]], list[Sentence]]:
        """The name of a split, its words, tags and rows."""
        corpus = open_tagged(self.config.data, split)
        found = list(track(corpus, f"reading {corpus.name}"))
        for item in found:
            for place, tag in enumerate(item.tags):
                if tag not in self._numbers:
                    kinds = ", ".join(sorted({tag[2:] for tag in self.tags[1:]}))
                    raise UserError(
                        f"{item.location}: word {place + 1} of the sentence, {item.words[place]!r}, is {tag}, but the "
                        f"training sentences have no such type; they have {kinds}"
                    )
        words = [item.words for item in found]
        return corpus.name, words, [item.tags for item in found], self._sentences(words)

    @functools.cached_property
    def _numbers(self) -> dict[str, int]:
        return {tag: number for number, tag in enumerate(self.tags)}

    def _report(self, split: str) -> str:
        name, words, _, sentences = self._read(split)
        line = f"{name}: {len(words):,} sentences, {sum(map(len, words)):,} words"
        cut = sum(len(sentence.rows) > 1 for sentence in sentences)
        return line + f"; {cut:,} in several rows" * bool(cut)

    def train_corpus(self) -> RowCorpus:
        """The training rows."""
        name, _, tags, sentences = self._read("train")
        items = []
        for sentence, own in zip(sentences, tags, strict=True):
            numbers = np.array([self._numbers[tag] for tag in own], np.int32)
            for row, places, words in zip(*sentence, strict=True):
                of_pieces = np.full(len(row["ids"]), NO_TAG, np.int32)
                of_pieces[places] = numbers[words]
                items.append({**row, "tags": of_pieces})
        return RowCorpus(name, items, self.reader.max_length)

    def summary(self) -> list[tuple[str, str]]:
        """Rows for the start table: encoder, corpora, tags."""
        corpora = [("training sentences", self._report("train")), ("development sentences", self._report("dev"))]
        kinds = sorted({tag[2:] for tag in self.tags[1:]})
        return [
            *self.encoder_rows(),
            *corpora,
            ("types", f"{len(kinds)}: " + ", ".join(kinds[:12]) + ", …" * (len(kinds) > 12)),
        ]

    # Learning and predicting

    def loss(self, outputs: jax.Array, batch: Mapping[str, jax.Array]) -> jax.Array:
        """The cross-entropy of the tags of a row, smoothed, in nats: a mean over its words."""
        tags = batch["tags"]
        weights = (tags != NO_TAG).astype(outputs.dtype)
        nats = losses.smoothed_cross_entropy(outputs, tags.clip(0), self.config.loss.label_smoothing)
        return (nats * weights).sum(axis=1) / weights.sum(axis=1).clip(1)

    def _log_probabilities(self, params: Any, sentences: Sequence[Sentence], sizes: Sequence[int]) -> list[np.ndarray]:
        """float32[W, C] of each sentence's words; those without a piece are O."""
        outputs = iter(self.outputs(params, [row for sentence in sentences for row in sentence.rows]))
        found = []
        for sentence, size in zip(sentences, sizes, strict=True):
            logits = np.full((size, len(self.tags)), -np.inf, np.float32)
            logits[:, 0] = 0.0
            for places, words in zip(sentence.places, sentence.words, strict=True):
                logits[words] = next(outputs)[places]
            found.append(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))
        return found

    def evaluate(self, params: Any) -> dict[str, float]:
        """-> `dev/loss` (nats a word), and in percent: accuracy of tags, precision, recall and F1 of entities."""
        _, words, tags, sentences = self._read("dev")
        logs = self._log_probabilities(params, sentences, [len(one) for one in words])
        predicted = [[self.tags[number] for number in rows.argmax(axis=1)] for rows in logs]
        scores = entity_f1(predicted, tags)[""]
        nats = [
            -rows[np.arange(len(own)), [self._numbers[tag] for tag in own]]
            for rows, own in zip(logs, tags, strict=True)
        ]
        right = [a == b for one, own in zip(predicted, tags, strict=True) for a, b in zip(one, own, strict=True)]
        return {
            "dev/loss": float(np.minimum(np.concatenate(nats), 100.0).mean()),  # a wordless entity is no infinity
            "dev/accuracy": 100 * float(np.mean(right)),
            "dev/precision": 100 * scores.precision,
            "dev/recall": 100 * scores.recall,
            "dev/f1": 100 * scores.f1,
        }

    def predict(self, params: Any, sentences: Sequence[Sequence[str]]) -> list[Prediction]:
        """Sentences of words -> a prediction for each, in their order; it never depends on the others.

        Tags are BIO: an I- that continues nothing is written B-.
        """
        logs = self._log_probabilities(params, self._sentences(sentences), [len(words) for words in sentences])
        predictions = []
        for rows in logs:
            tags = [self.tags[number] for number in rows.argmax(axis=1)]
            for place, tag in enumerate(tags):
                if tag[0] == "I" and (not place or tags[place - 1][1:] != tag[1:]):
                    tags[place] = f"B{tag[1:]}"
            predictions.append(Prediction(tags, np.exp(rows)))
        return predictions
