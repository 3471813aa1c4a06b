"""Tagging with a pretrained encoder: words in, a tag for each word out, such as the names of people and places."""

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
from nmt_jax.tasks.fine_tuning import FineTuning
from nmt_jax.tasks.vocab_files import load_or_make

NO_TAG = -1  # label of tokens that do not begin a word
TAGS = ["O", *(f"{prefix}-{name}" for name in ("LOC", "MISC", "ORG", "PER") for prefix in "BI")]  # of CoNLL-2003


class Prediction(NamedTuple):
    """A tag for each word, and the probabilities of all tags, float32[W, C]."""

    tags: list[str]
    probabilities: np.ndarray


class Sentence(NamedTuple):
    """A sentence as rows, usually one.

    positions: for each row, the positions int[M] of the first tokens of words. words: for each row, the numbers int[M]
    of these words in the sentence.
    """

    rows: list[Item]
    positions: list[np.ndarray]
    words: list[np.ndarray]


class Tag(FineTuning):
    """The tagging task of one workdir.

    The first token of a word carries its tag (Devlin et al., 2019, section 5.3). A sentence longer than a row is cut
    between words into several rows; a word without tokens, such as a control character, has the tag O.
    """

    measures = ("loss", "accuracy", "precision", "recall", "f1")
    next_command = "nmt-jax tag --workdir={workdir} < words.txt > words.conll"
    fields = MappingProxyType({"tags": Field(np.int32, NO_TAG, per_token=True)})

    @functools.cached_property
    def tags(self) -> list[str]:
        """O, and B- and I- of the entity types of the training sentences; saved in the workdir."""

        def make() -> list[str]:
            types = {tag[2:] for item in open_tagged(self.config.data, "train") for tag in item.tags if tag != "O"}
            if not types:
                raise UserError("config.data.tag_column: all words of the training sentences have the tag O")
            return ["O", *(f"{prefix}-{name}" for name in sorted(types) for prefix in "BI")]

        return load_or_make(self.workdir / "vocab" / "tags.json", make)

    def stand_in(self) -> None:
        super().stand_in()
        self._assume(tags=TAGS)

    @property
    def num_outputs(self) -> int:  # type: ignore[override]
        """One output per tag."""
        return len(self.tags)

    @property
    def _entity_types(self) -> list[str]:
        return sorted({tag[2:] for tag in self.tags[1:]})

    # Sentences

    def training_texts(self) -> Iterator[str]:
        for item in track(open_tagged(self.config.data, "train"), "reading for the tokenizer"):
            yield " ".join(item.words)

    def _sentences(self, sentences: Sequence[Sequence[str]]) -> list[Sentence]:
        """Words as rows of tokens, with the words joined by blanks for the tokenizer."""
        encoded = []
        most = self.reader.capacity(1)
        for words, pieces in zip(sentences, self.reader.pieces([" ".join(words) for words in sentences]), strict=True):
            # The word that each token ends in. The first character of a token may be the blank before a word.
            ends = np.cumsum([len(word) + 1 for word in words])
            word = np.searchsorted(ends, pieces.spans[:, 1] - 1, side="right")
            starts = np.flatnonzero(np.diff(word, prepend=-1))  # first tokens of words
            sentence, first = Sentence([], [], []), 0
            while first < len(starts):
                # As many words as fit; a single word that is too long is cut.
                limits = np.append(starts[first + 1 :], len(word)) - starts[first]
                last = first + max(int(np.searchsorted(limits, most, side="right")), 1)
                stop = min(starts[last] if last < len(starts) else len(word), starts[first] + most)
                row, (shift,) = self.reader.row(pieces.ids[starts[first] : stop])
                sentence.rows.append(row)
                sentence.positions.append(starts[first:last] - starts[first] + shift)
                sentence.words.append(word[starts[first:last]])
                first = last
            encoded.append(sentence)
        return encoded

    @functools.lru_cache(maxsize=2)  # noqa: B019  a task lives as long as the program
    def _read(self, split: str) -> tuple[str, list[list[str]], list[list[str]], list[Sentence]]:
        """The name of a split, its words, tags and rows."""
        corpus = open_tagged(self.config.data, split)
        items = list(track(corpus, f"reading {corpus.name}"))
        for item in items:
            for position, tag in enumerate(item.tags):
                if tag not in self._numbers:
                    raise UserError(
                        f"{item.location}: word {position + 1} of the sentence, {item.words[position]!r}, has the tag "
                        f"{tag}, which the training sentences lack; their types are {', '.join(self._entity_types)}"
                    )
        words = [item.words for item in items]
        return corpus.name, words, [item.tags for item in items], self._sentences(words)

    @functools.cached_property
    def _numbers(self) -> dict[str, int]:
        return {tag: number for number, tag in enumerate(self.tags)}

    def _report(self, split: str) -> str:
        name, words, _, sentences = self._read(split)
        line = f"{name}: {len(words):,} sentences, {sum(map(len, words)):,} words"
        cut = sum(len(sentence.rows) > 1 for sentence in sentences)
        return line + f"; {cut:,} in several rows" * bool(cut)

    def train_corpus(self) -> RowCorpus:
        name, _, tags, sentences = self._read("train")
        items = []
        for sentence, word_tags in zip(sentences, tags, strict=True):
            numbers = np.array([self._numbers[tag] for tag in word_tags], np.int32)
            for row, positions, words in zip(*sentence, strict=True):
                token_tags = np.full(len(row["ids"]), NO_TAG, np.int32)
                token_tags[positions] = numbers[words]
                items.append({**row, "tags": token_tags})
        return RowCorpus(name, items, self.reader.max_length)

    def summary(self) -> list[tuple[str, str]]:
        types = self._entity_types
        return [
            *self.encoder_rows(),
            ("training sentences", self._report("train")),
            ("development sentences", self._report("dev")),
            ("types", f"{len(types)}: " + ", ".join(types[:12]) + ", …" * (len(types) > 12)),
        ]

    # Training and prediction

    def loss(self, outputs: jax.Array, batch: Mapping[str, jax.Array]) -> jax.Array:
        """Cross-entropy of the tags of a row in nats, with label smoothing: the mean over its words."""
        tags = batch["tags"]
        weights = (tags != NO_TAG).astype(outputs.dtype)
        nats = losses.smoothed_cross_entropy(outputs, tags.clip(0), self.config.loss.label_smoothing)
        return (nats * weights).sum(axis=1) / weights.sum(axis=1).clip(1)

    def _log_probabilities(self, params: Any, sentences: Sequence[Sentence], sizes: Sequence[int]) -> list[np.ndarray]:
        """Log-probabilities float32[W, C] of the tags of each sentence; words without tokens are O."""
        outputs = iter(self.outputs(params, [row for sentence in sentences for row in sentence.rows]))
        log_probabilities = []
        for sentence, size in zip(sentences, sizes, strict=True):
            logits = np.full((size, len(self.tags)), -np.inf, np.float32)
            logits[:, 0] = 0.0
            for positions, words in zip(sentence.positions, sentence.words, strict=True):
                logits[words] = next(outputs)[positions]
            log_probabilities.append(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))
        return log_probabilities

    def evaluate(self, params: Any) -> dict[str, float]:
        """Return `dev/loss` in nats per word, and percentages: tag accuracy, entity precision, recall and F1."""
        _, words, tags, sentences = self._read("dev")
        log_probabilities = self._log_probabilities(params, sentences, list(map(len, words)))
        predicted = [[self.tags[number] for number in one.argmax(axis=1)] for one in log_probabilities]
        scores = entity_f1(predicted, tags)[""]
        numbers = [self._numbers[tag] for sentence in tags for tag in sentence]
        rows = np.concatenate(log_probabilities)
        nats = -rows[np.arange(len(rows)), numbers]
        return {
            "dev/loss": float(np.minimum(nats, 100.0).mean()),  # infinite if a word has no token
            "dev/accuracy": 100 * float(np.mean(rows.argmax(axis=1) == numbers)),
            "dev/precision": 100 * scores.precision,
            "dev/recall": 100 * scores.recall,
            "dev/f1": 100 * scores.f1,
        }

    def predict(self, params: Any, sentences: Sequence[Sequence[str]]) -> list[Prediction]:
        """Return a prediction for each sentence, a sequence of words; it does not depend on the other sentences.

        Tags are BIO: an I- that continues no entity becomes B-.
        """
        predictions = []
        for rows in self._log_probabilities(params, self._sentences(sentences), list(map(len, sentences))):
            tags = [self.tags[number] for number in rows.argmax(axis=1)]
            for position, tag in enumerate(tags):
                if tag[0] == "I" and (not position or tags[position - 1][1:] != tag[1:]):
                    tags[position] = f"B{tag[1:]}"
            predictions.append(Prediction(tags, np.exp(rows)))
        return predictions
