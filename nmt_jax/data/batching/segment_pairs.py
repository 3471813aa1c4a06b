"""Rows to pretrain on: one or two stretches of text, and what is asked about them, batch by batch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmt_jax.data.batching.epochs import Batch, EpochBatches
from nmt_jax.data.batching.masking import Corruption
from nmt_jax.data.batching.row_slice import ALL, RowSlice
from nmt_jax.data.prepared.segments import Segments
from nmt_jax.errors import UserError

NEXT, RANDOM, SINGLE = 0, 1, -1  # what the second stretch is: as Hugging Face numbers it, and a row that has none


class Row(NamedTuple):
    """Ids int32[S], how many of them are [CLS], the first stretch and its [SEP], and what the second is."""

    ids: np.ndarray
    first: int
    second: int


class Pairs:
    """The examples of a text as rows [CLS] first [SEP] second [SEP], or [CLS] text [SEP] (Devlin et al., 2019, A.2).

    An example is cut between two of its segments, so that any segment would still fit behind the cut. With probability
    1/2 the second stretch is what follows; else it is as many whole segments of another document as fit, from a random
    one on. An example of one segment is a single stretch, and so is every one without next_sentence.
    """

    def __init__(self, text: Segments, *, next_sentence: bool, cls: int, sep: int):
        """UserError where next sentences are asked for and no example has two segments, or there is one document."""
        self.text, self.next_sentence, self.cls, self.sep = text, next_sentence, cls, sep
        if next_sentence and len(text.documents) < 3:
            raise UserError(
                f"{text.name}: one document, but false next sentences come from others: end documents with a blank "
                "line, hold out less (config.data.dev_share), or set config.model.next_sentence=false"
            )
        if next_sentence and len(text.ends) == len(text):
            raise UserError(
                f"{text.name}: no document has two lines, so nothing has a next sentence: write one sentence a line "
                "and a blank line only after a document, or set config.model.next_sentence=false"
            )

    def __len__(self) -> int:
        return len(self.text)

    def draw(self, number: int, random: np.random.Generator) -> Row:
        """Example `number` as a row."""
        text = self.text
        first, last = (int(segment) for segment in text.examples[number : number + 2])
        start = self._start(first)
        if not self.next_sentence or last - first == 1:
            return self._row(text.ids[start : text.ends[last - 1]])
        cuts = text.ends[first : last - 1] - start  # the tokens before each
        cut = int(cuts[random.integers(np.count_nonzero(cuts <= text.room - text.longest))])
        if random.integers(2) == NEXT:
            return self._row(text.ids[start : start + cut], text.ids[start + cut : text.ends[last - 1]], NEXT)
        return self._row(text.ids[start : start + cut], self._other(number, text.room - cut, random), RANDOM)

    def _start(self, segment: int) -> int:
        return int(self.text.ends[segment - 1]) if segment else 0

    def _other(self, number: int, room: int, random: np.random.Generator) -> np.ndarray:
        """Whole segments of another document than that of example `number`, as many as fit."""
        text = self.text
        document = int(np.searchsorted(text.documents, number, "right")) - 1
        low, high = (int(example) for example in text.documents[document : document + 2])
        other = int(random.integers(len(text) - (high - low)))
        other += (high - low) * (other >= low)
        segment = int(random.integers(text.examples[other], text.examples[other + 1]))
        document = int(np.searchsorted(text.documents, other, "right"))
        last = int(text.examples[text.documents[document]])  # its first segment is not of this document
        start = self._start(segment)
        near = text.ends[segment : min(last, segment + room)]
        count = int(np.searchsorted(near, start + room, "right"))
        return text.ids[start : near[count - 1]]

    def _row(self, first: np.ndarray, second: np.ndarray | None = None, label: int = SINGLE) -> Row:
        cls, sep = np.array([self.cls], np.int32), np.array([self.sep], np.int32)
        parts = [cls, first, sep] if second is None else [cls, first, sep, second, sep]
        return Row(np.concatenate(parts), len(first) + 2, label)


class PairBatches(EpochBatches[np.ndarray]):
    """Batches of rows in an order drawn for each epoch, and asked about anew.

    {"ids", "segments": int32[B, S], "positions", "labels": int32[B, P], "weights": float32[B, P]}, and
    "next_sentence" int32[B], of NEXT, RANDOM and SINGLE, where that is asked. Padding is 0. How a row is cut, completed
    and corrupted is a pure function of (seed, epoch, example).
    """

    def __init__(
        self,
        pairs: Pairs,
        corruption: Corruption,
        *,
        max_length: int,
        batch_tokens: int,
        share: RowSlice = ALL,
        seed: int = 0,
        steps: int | None = None,
    ):
        """Rows of `max_length` tokens, at most `batch_tokens` in a batch, but a multiple of `share.multiple_of`.

        Of them the `share` is made. `steps` None: one epoch.
        """
        self.pairs, self.corruption = pairs, corruption
        self.rows = max(batch_tokens // max_length // share.multiple_of, 1) * share.multiple_of
        self.max_length, self.shapes = max_length, [(self.rows, max_length)]
        super().__init__(-(-len(pairs) // self.rows), share=share, seed=seed, steps=steps)

    def _batch(self, epoch: int, position: int, order: np.ndarray) -> Batch:
        own = self.share.of(self.rows)
        first = position * self.rows + own.start
        batch = self.empty(len(own))
        for row, example in enumerate(order[first : first + len(own)]):
            random = np.random.default_rng((self.seed, epoch, int(example)))
            drawn = self.pairs.draw(int(example), random)
            question = self.corruption(drawn.ids, random)
            batch["ids"][row, : len(drawn.ids)] = question.ids
            batch["segments"][row, drawn.first : len(drawn.ids)] = 1
            asked = len(question.positions)
            batch["positions"][row, :asked] = question.positions
            batch["labels"][row, :asked] = question.labels
            batch["weights"][row, :asked] = 1.0
            if self.pairs.next_sentence:
                batch["next_sentence"][row] = drawn.second
        return batch

    def empty(self, rows: int) -> Batch:
        """Rows of nothing, without weight."""
        asked = (rows, self.corruption.most(self.max_length))
        batch = {
            "ids": np.zeros((rows, self.max_length), np.int32),
            "segments": np.zeros((rows, self.max_length), np.int32),
            "positions": np.zeros(asked, np.int32),
            "labels": np.zeros(asked, np.int32),
            "weights": np.zeros(asked, np.float32),
        }
        return batch | ({"next_sentence": np.full(rows, SINGLE, np.int32)} if self.pairs.next_sentence else {})

    def _draw_order(self, random: np.random.Generator) -> np.ndarray:
        return random.permutation(len(self.pairs))
