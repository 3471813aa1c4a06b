"""Labelled documents of N sentences of up to W words as token ids, and their batches."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from metrics_jax.embedding.lengths import pack_by_length
from metrics_jax.surface.tokenizers import tokenize
from nmt_jax.data.batching.batches import Shape
from nmt_jax.data.batching.epochs import Batch
from nmt_jax.data.prepared.parallel import Indices
from nmt_jax.data.readers.labelled import LabelledTexts
from nmt_jax.data.vocabulary.vocab import PAD, UNK, Vocab
from nmt_jax.errors import UserError
from nmt_jax.progress import track

NO_LABEL = -1  # label of an empty row
_LEAST_WORDS = 8  # minimum of W for prediction


class Sentence(NamedTuple):
    """Words as text, the token ids of all words, and the number of tokens of each word."""

    words: list[str]
    ids: list[int]
    sizes: list[int]


class DocumentReader:
    """Turns texts into sentences of token ids.

    tokenizer, lower_case: see `words_of`. join: whether the sentences of a text are joined into one. Sentences of more
    than `max_words` tokens are split between words; sentences beyond `max_sentences` are dropped.
    """

    def __init__(
        self, vocab: Vocab, *, max_sentences: int, max_words: int, tokenizer: str, lower_case: bool, join: bool
    ):
        if min(max_sentences, max_words) < 1:
            raise UserError("config.data.max_sentences and config.data.max_words must be at least 1")
        self.max_sentences, self.max_words = max_sentences, max_words
        self.tokenizer, self.lower_case, self.join = tokenizer, lower_case, join
        # Subwords never cross spaces, so a word has the same tokens alone as in a sentence.
        self._pieces = functools.lru_cache(1 << 20)(lambda word: vocab.encode(word)[:max_words] or [UNK])

    def __call__(self, sentences: Iterable[str]) -> tuple[list[Sentence], bool]:
        """Returns the sentences that contain a word, and whether the whole text was read."""
        texts = [" ".join(sentences)] if self.join else sentences
        found: list[Sentence] = []
        for text in texts:
            rest = words_of(text, self.tokenizer, self.lower_case)
            while rest:
                if len(found) == self.max_sentences:
                    return found, False
                found.append(self._take(rest))
                rest = rest[len(found[-1].words) :]
        return found, True

    def _take(self, words: Sequence[str]) -> Sentence:
        """The first words, at most `max_words` tokens in total."""
        sentence = Sentence([], [], [])
        for word in words:
            pieces = self._pieces(word)
            if len(sentence.ids) + len(pieces) > self.max_words:
                break
            sentence.words.append(word)
            sentence.ids.extend(pieces)
            sentence.sizes.append(len(pieces))
        return sentence


def words_of(text: str, tokenizer: str, lower_case: bool) -> list[str]:
    """The words of a text: separated by white space after a sacreBLEU tokenizer, such as "none" or "13a".

    lower_case: whether to lowercase the text. Raises UserError for an unknown tokenizer.
    """
    try:
        return tokenize([text], tokenizer, lower_case)[0]
    except ValueError as error:
        raise UserError(f"config.data.tokenizer: {error}") from None


class Document(NamedTuple):
    """The token ids of each sentence, int32[W] each, and the index of the label."""

    sentences: list[np.ndarray]
    label: int


class DocumentCorpus:
    """Random access to the N labelled documents of a corpus, held in memory (4 bytes per token), in file order.

    `lengths` int32[N, 2]: number of sentences, and tokens of the longest sentence; `max_length`: the bound of both.
    Documents without words are skipped and counted. Raises UserError `FILE:LINE` for a label that is not in `labels`,
    and UserError if no document is left.
    """

    def __init__(self, texts: LabelledTexts, reader: DocumentReader, labels: Sequence[str]):
        self.name, self.max_length = texts.name, max(reader.max_sentences, reader.max_words)
        self.max_sentences = reader.max_sentences
        numbers = {label: number for number, label in enumerate(labels)}
        pieces: list[np.ndarray] = []  # of each document
        ends: list[np.ndarray] = []  # of the sentences in them
        found: list[tuple[int, int, int]] = []
        self.empty = self.cut = 0
        for item in track(texts, f"reading {self.name}"):
            if item.label not in numbers:
                known = ", ".join(labels[:10]) + ", …" * (len(labels) > 10)
                raise UserError(
                    f"{item.location}: label {item.label!r} does not occur in the training texts, which have {known}"
                )
            sentences, whole = reader(item.sentences)
            self.cut += not whole
            self.empty += not sentences
            if sentences:
                lengths = [len(sentence.ids) for sentence in sentences]
                pieces.append(np.fromiter((i for sentence in sentences for i in sentence.ids), np.int32))
                ends.append(np.cumsum(lengths)[:-1])
                found.append((len(sentences), max(lengths), numbers[item.label]))
        if not found:
            raise UserError(f"{self.name}: no text is left: {self.empty} have no words")
        table = np.array(found, np.int32)
        self.lengths, self.labels = table[:, :2], table[:, 2]
        self._pieces, self._ends = pieces, ends
        self.num_tokens = sum(map(len, pieces))

    def __len__(self) -> int:
        return len(self.labels)

    def __getitems__(self, indices: Indices) -> list[Document]:
        return [Document(np.split(self._pieces[i], self._ends[i]), int(self.labels[i])) for i in indices]

    @property
    def report(self) -> str:
        """Summary in one line: numbers of texts kept, skipped and truncated."""
        line = f"{self.name}: {len(self):,} of {len(self) + self.empty:,} texts"
        line += f"; skipped: {self.empty:,} without words" if self.empty else ""
        return line + (f"; {self.cut:,} truncated to {self.max_sentences} sentences" if self.cut else "")


class DocumentLayout:
    """Layout of documents: {"words": int32[B, N, W], "label": int32[B]}. The budget counts all tokens and padding.

    A sentence is tokens, then PAD; an empty row is all PAD, with NO_LABEL.
    """

    longest = "tokens (sentences times words) of the largest document"
    remedy = "config.data.max_sentences or config.data.max_words"

    def budget(self, sentences: Any, words: Any) -> Any:
        return sentences * words

    cost = budget

    def arrays(self, items: Sequence[Document], shape: Shape) -> Batch:
        label = np.full(shape.rows, NO_LABEL, np.int32)
        label[: len(items)] = [item.label for item in items]
        return {"words": _fill([item.sentences for item in items], shape), "label": label}

    def tokens(self, corpus: DocumentCorpus) -> dict[str, int]:
        return {"words": corpus.num_tokens}

    def places(self, sentences: Any, words: Any) -> dict[str, Any]:
        return {"words": sentences * words}


def _fill(documents: Sequence[Sequence[Sequence[int] | np.ndarray]], shape: Shape) -> np.ndarray:
    """The sentences of documents as int32[B, N, W], padded with PAD."""
    words = np.full(shape, PAD, np.int32)
    for row, sentences in enumerate(documents):
        for number, ids in enumerate(sentences):
            words[row, number, : len(ids)] = ids
    return words


def document_batches(
    documents: Sequence[Sequence[Sentence]], *, batch_tokens: int, multiple_of: int = 1
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Batches for prediction, in few shapes: (indices int[R], words int32[B, N, W]); row r is document indices[r].

    N and W are powers of two, W at least 8, so the padding of a document depends on no other document; for B see
    `pack_by_length`. Rows from R on are PAD.
    """
    boxes: dict[tuple[int, int], list[int]] = {}
    for number, sentences in enumerate(documents):
        longest = max((len(sentence.ids) for sentence in sentences), default=1)
        box = (_next_power_of_two(len(sentences)), max(_next_power_of_two(longest), _LEAST_WORDS))
        boxes.setdefault(box, []).append(number)
    for box in sorted(boxes, reverse=True):  # the largest first: running out of memory shows immediately
        sizes = [box[0] * box[1]] * len(boxes[box])
        for indices, rows, _ in pack_by_length(sizes, batch_tokens, multiple_of, lambda size: size):
            numbers = np.array(boxes[box])[indices]
            ids = [[sentence.ids for sentence in documents[number]] for number in numbers]
            yield numbers, _fill(ids, Shape(rows, *box))


def _next_power_of_two(number: int) -> int:
    """The smallest power of two that is at least `number`, and at least 1."""
    return 1 << max(number - 1, 0).bit_length()
