"""Rows for pretraining: one or two spans of text, the tokens to predict, and whether one span follows the other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmt_jax.data.batching.epochs import Batch, EpochBatches
from nmt_jax.data.batching.masking import Corruption
from nmt_jax.data.batching.row_slice import ALL, RowSlice
from nmt_jax.data.prepared.segments import Segments
from nmt_jax.errors import UserError

NEXT, RANDOM, SINGLE = 0, 1, -1  # labels of the second span, numbered as in Hugging Face; SINGLE: there is none


class Row(NamedTuple):
    """Token ids int32[S], the length of [CLS], first span and [SEP], and the label of the second span."""

    ids: np.ndarray
    first: int
    second: int


class SegmentPairs:
    """The examples of a text as rows [CLS] first [SEP] second [SEP], or [CLS] text [SEP] (Devlin et al., 2019, A.2).

    An example is cut between two of its segments, so that any segment would still fit after the cut. With probability
    1/2 the second span is what follows the cut; otherwise it is as many whole segments of another document as fit, from
    a random one on. An example of one segment is a single span, and so is every example without `next_sentence`.
    """

    def __init__(self, text: Segments, *, next_sentence: bool, cls: int, sep: int):
        """Raises UserError if `next_sentence` is impossible: one document only, or no example of two segments."""
        self.text, self.next_sentence, self.cls, self.sep = text, next_sentence, cls, sep
        if next_sentence and len(text.documents) < 3:
            raise UserError(
                f"{text.name}: only one document, but random next sentences come from other documents: separate "
                "documents by blank lines, hold out less (config.data.dev_share), or set "
                "config.model.next_sentence=false"
            )
        if next_sentence and len(text.ends) == len(text):
            raise UserError(
                f"{text.name}: no document has two lines, so there are no next sentences: write one sentence per "
                "line and blank lines only between documents, or set config.model.next_sentence=false"
            )

    def __len__(self) -> int:
        return len(self.text)

    def draw(self, number: int, random: np.random.Generator) -> Row:
        """Example `number` as a row, with a random second span."""
        text = self.text
        first, last = (int(segment) for segment in text.examples[number : number + 2])
        start = self._start(first)
        if not self.next_sentence or last - first == 1:
            return self._row(text.ids[start : text.ends[last - 1]])
        cuts = text.ends[first : last - 1] - start  # possible numbers of tokens before the cut
        cut = int(cuts[random.integers(np.count_nonzero(cuts <= text.capacity - text.longest))])
        if random.integers(2) == NEXT:
            return self._row(text.ids[start : start + cut], text.ids[start + cut : text.ends[last - 1]], NEXT)
        return self._row(text.ids[start : start + cut], self._other(number, text.capacity - cut, random), RANDOM)

    def _start(self, segment: int) -> int:
        return int(self.text.ends[segment - 1]) if segment else 0

    def _other(self, number: int, capacity: int, random: np.random.Generator) -> np.ndarray:
        """As many whole segments as fit, from a document other than that of example `number`."""
        text = self.text
        document = int(np.searchsorted(text.documents, number, "right")) - 1
        low, high = (int(example) for example in text.documents[document : document + 2])
        other = int(random.integers(len(text) - (high - low)))
        other += (high - low) * (other >= low)
        segment = int(random.integers(text.examples[other], text.examples[other + 1]))
        document = int(np.searchsorted(text.documents, other, "right"))
        last = int(text.examples[text.documents[document]])  # the first segment of the next document
        start = self._start(segment)
        near = text.ends[segment : min(last, segment + capacity)]
        count = int(np.searchsorted(near, start + capacity, "right"))
        return text.ids[start : near[count - 1]]

    def _row(self, first: np.ndarray, second: np.ndarray | None = None, label: int = SINGLE) -> Row:
        cls, sep = np.array([self.cls], np.int32), np.array([self.sep], np.int32)
        parts = [cls, first, sep] if second is None else [cls, first, sep, second, sep]
        return Row(np.concatenate(parts), len(first) + 2, label)


def empty_rows(rows: int, max_length: int, corruption: Corruption, next_sentence: bool) -> Batch:
    """A batch of empty rows, with weight 0."""
    tokens, predictions = (rows, max_length), (rows, corruption.max_positions(max_length))
    shapes = {"ids": tokens, "segments": tokens, "positions": predictions, "labels": predictions}
    batch = {name: np.zeros(shape, np.int32) for name, shape in shapes.items()}
    batch["weights"] = np.zeros(predictions, np.float32)
    return batch | ({"next_sentence": np.full(rows, SINGLE, np.int32)} if next_sentence else {})


class PairBatches(EpochBatches[np.ndarray]):
    """Batches of rows, in a new random order and with new corruptions in every epoch.

    {"ids", "segments": int32[B, S], "positions", "labels": int32[B, P], "weights": float32[B, P]}, and with
    `next_sentence` also "next_sentence" int32[B] of NEXT, RANDOM and SINGLE. Padding is 0. How a row is cut, completed
    and corrupted is a pure function of (seed, epoch, example).
    """

    def __init__(
        self,
        pairs: SegmentPairs,
        corruption: Corruption,
        *,
        max_length: int,
        batch_tokens: int,
        share: RowSlice = ALL,
        seed: int = 0,
        steps: int | None = None,
    ):
        """max_length: tokens of a row. batch_tokens, share, steps: as for `Blocks`."""
        self.pairs, self.corruption = pairs, corruption
        self.rows = max(batch_tokens // max_length // share.multiple_of, 1) * share.multiple_of
        self.max_length, self.shapes = max_length, [(self.rows, max_length)]
        super().__init__(-(-len(pairs) // self.rows), share=share, seed=seed, steps=steps)

    def _usage(self) -> dict[str, tuple[int, int]]:
        """Counts true second spans; random ones may be shorter or longer."""
        several = np.diff(self.pairs.text.examples) > 1
        special = 2 * len(self.pairs) + self.pairs.next_sentence * int(np.count_nonzero(several))
        return {"rows": (len(self.pairs.text.ids) + special, self.batches_per_epoch * self.rows * self.max_length)}

    def _batch(self, epoch: int, position: int, order: np.ndarray) -> Batch:
        mine = self.share.of(self.rows)
        first = position * self.rows + mine.start
        batch = empty_rows(len(mine), self.max_length, self.corruption, self.pairs.next_sentence)
        for row, example in enumerate(order[first : first + len(mine)]):
            random = np.random.default_rng((self.seed, epoch, int(example)))
            drawn = self.pairs.draw(int(example), random)
            corrupted = self.corruption(drawn.ids, random)
            batch["ids"][row, : len(drawn.ids)] = corrupted.ids
            batch["segments"][row, drawn.first : len(drawn.ids)] = 1
            count = len(corrupted.positions)
            batch["positions"][row, :count] = corrupted.positions
            batch["labels"][row, :count] = corrupted.labels
            batch["weights"][row, :count] = 1.0
            if self.pairs.next_sentence:
                batch["next_sentence"][row] = drawn.second
        return batch

    def _draw_order(self, random: np.random.Generator) -> np.ndarray:
        return random.permutation(len(self.pairs))
