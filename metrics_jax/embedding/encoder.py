"""Encoders, and how texts become vectors: every distinct one once, whatever its neighbours."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from metrics_jax.embedding.embedding_cache import EmbeddingCache
from metrics_jax.embedding.forward import Forward

if TYPE_CHECKING:
    from jax import Array

LONG = ("error", "truncate", "window")
TOKENIZED = 1024  # texts at a time, so that one long text does not pad all the others


@dataclasses.dataclass(frozen=True, eq=False)
class Encoder:
    """What embedding metrics read text with; any functions of these types make one.

    tokenize: B texts -> ids int[B, S], mask bool[B, S] (False: padding, at the end), special bool[B, S] (tokens before
    and after the text that stand for none of it: [CLS], [SEP]); nothing is cut off. embed: ids int[B, S], mask
    bool[B, S] -> float[layers, B, S, D], in JAX; its weights are arguments of a `jax.tree_util.Partial`, so that they
    are not compiled in; a row's numbers depend on its own ids only. A generator of float[B, S, D], which compiles what
    it calls, is asked for no more layers than are wanted. pieces: ids -> what each of them spells.
    max_length: tokens of the longest row. fingerprint: SHA-256 of all that changes the numbers: weights, vocabulary,
    precision. dtype: of its products, shown in signatures if known. cache: a folder in which vectors are looked up and
    kept, so that no text is encoded twice.
    """

    tokenize: Callable[[Sequence[str]], tuple[np.ndarray, np.ndarray, np.ndarray]]
    embed: Callable[[Array, Array], Iterable[Array]]
    pieces: Callable[[Sequence[int]], list[str]]
    max_length: int
    fingerprint: str
    dtype: str = ""
    cache: str | os.PathLike[str] | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Encoded:
    """The tokens of N texts; equal texts share their rows of the table.

    vectors float32[rows, E], ids int32[rows], special bool[rows]: one text's tokens after another's. starts and lengths
    int[N]: where text n's are. long bool[N]: it has more tokens than the encoder takes at once, and was cut off or put
    together from windows.
    """

    vectors: np.ndarray
    ids: np.ndarray
    special: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    long: np.ndarray

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, text: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """-> vectors float32[S, E], ids int32[S] and special bool[S] of one text; views, not copies."""
        rows = slice(self.starts[text], self.starts[text] + self.lengths[text])
        return self.vectors[rows], self.ids[rows], self.special[rows]


def encode(
    encoder: Encoder,
    texts: Sequence[str],
    layers: tuple[int, ...] = (-1,),
    *,
    combine: str = "concatenate",
    normalize: bool = True,
    long: str = "error",
    batch_tokens: int | None = None,
) -> Encoded:
    """The vectors of all tokens of N texts; a text's do not depend, to the bit, on the others or their order.

    More devices or another size of batches change them by 1e-6, because sums are taken in another order.

    layers: which hidden states, 0 the embeddings, -1 the last. normalize: each state is first scaled to length 1.
    combine: several layers' are concatenated, averaged ("mean"), or become their element-wise minimum, mean and
    maximum, concatenated ("power_means", Zhao et al., 2019, section 3.1). long: a text beyond `encoder.max_length` is
    an error, keeps its beginning ("truncate"), or is read in windows that overlap by half, each token taken from the
    window where it has most context ("window"). batch_tokens: of one batch on each device, by its kind if None; halved
    when memory runs out.

    ValueError for an option that does not exist and for a text that is too long; TypeError for what is not text.
    """
    if long not in LONG:
        raise ValueError(f"long={long!r} is none of {', '.join(LONG)}")
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        raise TypeError("texts must be a sequence of strings")
    different = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    pieces = list(tokenized(encoder, [*different]))
    tokens = [pieces[different[text]] for text in texts]
    too_long = np.array([len(ids) > encoder.max_length for ids, _ in tokens], bool)
    if long == "error" and too_long.any():
        number = int(too_long.argmax())
        raise ValueError(
            f"text {number} has {len(tokens[number][0])} tokens, the encoder takes {encoder.max_length} at once: "
            'choose long="truncate" or long="window"'
        )
    if long == "truncate":
        tokens = [truncated(ids, special, encoder.max_length) for ids, special in tokens]

    numbers: dict[bytes, int] = {}
    distinct = np.array([numbers.setdefault(ids.tobytes(), len(numbers)) for ids, _ in tokens], int)
    tokens = [tokens[first] for first in np.unique(distinct, return_index=True)[1]]
    lengths = np.array([len(ids) for ids, _ in tokens], int)
    starts = np.cumsum(lengths) - lengths

    forward = Forward(encoder.embed, layers, combine, normalize, encoder.max_length)
    vectors = np.zeros((lengths.sum(), forward.width), np.float32)
    kept = None
    if encoder.cache is not None:
        normal = "normalized" if normalize else "raw"
        chosen = "-".join(map(str, forward.layers))
        kept = EmbeddingCache(encoder.cache, f"{encoder.fingerprint}.{chosen}.{combine}.{normal}")
    todo = []
    for start, (ids, special) in zip(starts, tokens, strict=True):
        for window in _windows(ids, special, start, encoder.max_length):
            found = kept.find(window.ids) if kept else None
            if found is None:
                todo.append(window)
            else:
                window.write(found, vectors)
    try:
        with progress("encoding", sum(len(window.ids) for window in todo)) as advance:
            for number, states in forward([window.ids for window in todo], batch_tokens):
                todo[number].write(states, vectors)
                if kept:
                    kept.add(todo[number].ids, states)
                advance(len(states))
    finally:  # an interrupted run has not worked in vain
        if kept:
            kept.flush()
    return Encoded(
        vectors=vectors,
        ids=np.concatenate([np.zeros(0, np.int32), *(ids for ids, _ in tokens)]),
        special=np.concatenate([np.zeros(0, bool), *(special for _, special in tokens)]),
        starts=starts[distinct],
        lengths=lengths[distinct],
        long=too_long,
    )


def tokenized(encoder: Encoder, texts: Sequence[str]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Ids int32[S] and special bool[S] of every text."""
    for first in range(0, len(texts), TOKENIZED):
        for ids, mask, special in zip(*encoder.tokenize(texts[first : first + TOKENIZED]), strict=True):
            length = int(np.count_nonzero(mask))
            yield np.asarray(ids[:length], np.int32), np.asarray(special[:length], bool)


def _edges(special: np.ndarray) -> tuple[int, int]:
    """How many special tokens come before and after the text."""
    text = np.flatnonzero(~special)
    return (int(text[0]), int(len(special) - text[-1] - 1)) if len(text) else (len(special), 0)


def truncated(ids: np.ndarray, special: np.ndarray, max_length: int) -> tuple[np.ndarray, np.ndarray]:
    """The beginning of a text, between the same special tokens."""
    if len(ids) <= max_length:
        return ids, special
    after = _edges(special)[1]
    kept = [*range(max_length - after), *range(len(ids) - after, len(ids))]
    return ids[kept], special[kept]


@dataclasses.dataclass(frozen=True)
class _Window:
    """A row for the encoder; the `count` tokens from `start` on are taken from it, for `target` in the table."""

    ids: np.ndarray
    start: int
    count: int
    target: int

    def write(self, states: np.ndarray, table: np.ndarray) -> None:
        """Puts the row's vectors float32[S, E] in their place."""
        table[self.target : self.target + self.count] = states[self.start : self.start + self.count]


def _windows(ids: np.ndarray, special: np.ndarray, target: int, max_length: int) -> Iterator[_Window]:
    """A text that fits as it is; a longer one in windows of max_length tokens, the special ones round each of them."""
    if not len(ids):
        return
    if len(ids) <= max_length:
        yield _Window(ids, 0, len(ids), target)
        return
    before, after = _edges(special)
    end = len(ids) - after
    width = max_length - before - after
    if width < 1:
        raise ValueError(f"max_length={max_length} leaves no room beside {before + after} special tokens")
    firsts = [*range(before, end - width, max(width // 2, 1)), end - width]
    # Between two windows the border is the middle of what they share: there both have the same context.
    borders = [0, *((second + first + width) // 2 for first, second in itertools.pairwise(firsts)), len(ids)]
    for first, (start, stop) in zip(firsts, itertools.pairwise(borders), strict=True):
        row = np.concatenate([ids[:before], ids[first : first + width], ids[end:]])
        yield _Window(row, start - (first - before), stop - start, target + start)


@contextlib.contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[float], None]]:
    """How much is done of a total, with the time left, on a terminal; what is yielded takes what was done since."""
    if not (total and sys.stderr.isatty()):
        yield lambda done: None
        return
    import rich.console
    import rich.progress

    columns = ("{task.description}", rich.progress.BarColumn(), rich.progress.TimeRemainingColumn())
    with rich.progress.Progress(*columns, console=rich.console.Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)
