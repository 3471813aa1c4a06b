"""The encoder interface, and the encoding of texts: each distinct text once, independent of the other texts."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from metrics_jax.embedding.embedding_cache import EmbeddingCache

if TYPE_CHECKING:
    from jax import Array

    from metrics_jax.embedding.forward import Forward

NOT_FINITE = "the encoder's vectors contain NaN or infinity: its weights are damaged"
LONG = ("error", "truncate", "window")
TOKENIZED = 1024  # texts tokenized at a time, so that one long text does not pad all the others


class TokenReader(Protocol):
    """What an `Encoder` has in common with the masked language models of InfoLM."""

    @property
    def tokenize(self) -> Callable[[Sequence[str]], tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Texts -> ids, mask and special tokens."""

    @property
    def max_length(self) -> int:
        """Length of the longest row, in tokens."""


@dataclasses.dataclass(frozen=True, eq=False)
class Encoder:
    """The interface between embedding metrics and a model; any functions with these signatures will do.

    tokenize: B texts -> ids int[B, S], mask bool[B, S] (False: padding, at the end), special bool[B, S] (tokens such as
    [CLS] and [SEP] before and after the text); nothing is truncated. embed: ids int[B, S], mask bool[B, S] ->
    float[layers, B, S, D], in JAX. Its weights are arguments of a `jax.tree_util.Partial`, so that they are not
    compiled into the program, and the numbers of a row depend on its own ids only. It may be a generator of
    float[B, S, D] that compiles its own parts; then only the layers that are needed are computed. pieces: ids -> the
    strings that they stand for. max_length: the length of the longest row, in tokens. fingerprint: SHA-256 of
    everything that changes the numbers: weights, vocabulary, precision. dtype: of the matrix products, shown in
    signatures if known. cache: a folder that stores vectors, so that no text is encoded twice.
    """

    tokenize: Callable[[Sequence[str]], tuple[np.ndarray, np.ndarray, np.ndarray]]
    embed: Callable[[Array, Array], Iterable[Array]]
    pieces: Callable[[Sequence[int]], list[str]]
    max_length: int
    fingerprint: str
    dtype: str = ""
    cache: str | os.PathLike[str] | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Tokens:
    """The tokens of N texts; equal texts share their rows of the table.

    The table holds the tokens of one text after another: ids int32[rows], special bool[rows]. starts, lengths int[N]:
    the rows of text n. long bool[N]: whether the text exceeded the encoder's maximum length and was truncated or read
    in windows. windows: the rows that the encoder reads, in the order of the table.
    """

    ids: np.ndarray
    special: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    long: np.ndarray
    windows: tuple[Window, ...]

    def __len__(self) -> int:
        return len(self.starts)


@dataclasses.dataclass(frozen=True, eq=False)
class Encoded(Tokens):
    """Tokens with their vectors float32[rows, E]."""

    vectors: np.ndarray

    def __getitem__(self, text: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Vectors float32[S, E], ids int32[S] and special bool[S] of one text; views, not copies."""
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
    """The vectors of all tokens of N texts; those of a text are bit-identical whatever the other texts and their order.

    Another number of devices or another batch size changes them by about 1e-6, because sums are evaluated in another
    order.

    layers: the hidden states to use; 0 is the embedding layer, -1 the last. normalize: scale each state to length 1
    first. combine: states are concatenated ("concatenate"), averaged ("mean"), or replaced by the concatenation of
    their element-wise minimum, mean and maximum ("power_means", Zhao et al., 2019, section 3.1). long: a text longer
    than `encoder.max_length` raises an error ("error"), keeps its beginning ("truncate"), or is read in windows that
    overlap by half, where each token is taken from the window with most context around it ("window"). batch_tokens:
    tokens per device in one batch; None chooses by platform. It is halved when memory runs out.

    Raises ValueError if an option does not exist or a text is too long, and TypeError if an input is not a string.
    """
    from metrics_jax.embedding.forward import Forward

    read = read_tokens(encoder, texts, long)
    forward = Forward(encoder.embed, layers, combine, normalize, encoder.max_length)
    vectors = np.zeros((len(read.ids), forward.width), np.float32)
    settings = "-".join(map(str, forward.layers)) + f".{combine}.{'normalized' if normalize else 'raw'}"
    cache = EmbeddingCache(encoder.cache, f"{encoder.fingerprint}.{settings}") if encoder.cache is not None else None
    _fill(vectors, read.windows, forward, cache, batch_tokens)
    return Encoded(**vars(read), vectors=vectors)


def read_tokens(encoder: Encoder, texts: Sequence[str], long: str) -> Tokens:
    """The tokens of N texts, tokenized once each; long and errors as for `encode`."""
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
            f"text {number} has {len(tokens[number][0])} tokens, but the encoder reads at most {encoder.max_length}: "
            'choose long="truncate" or long="window"'
        )
    if long == "truncate":
        tokens = [truncated(ids, special, encoder.max_length) for ids, special in tokens]

    distinct, firsts = distinct_rows([ids for ids, _ in tokens])
    tokens = [tokens[first] for first in firsts]
    lengths = np.array([len(ids) for ids, _ in tokens], int)
    starts = np.cumsum(lengths) - lengths
    rows = zip(starts, tokens, strict=True)
    windows = tuple(window for start, row in rows for window in _windows(*row, start, encoder.max_length))
    ids = np.concatenate([np.zeros(0, np.int32), *(ids for ids, _ in tokens)])
    special = np.concatenate([np.zeros(0, bool), *(special for _, special in tokens)])
    return Tokens(ids, special, starts[distinct], lengths[distinct], too_long, windows)


def distinct_rows(rows: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The number of each row among the distinct rows, in order of first occurrence, and the first index of each."""
    numbers: dict[bytes, int] = {}
    distinct = np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in rows], int)
    return distinct, np.unique(distinct, return_index=True)[1]


def _fill(
    table: np.ndarray,
    windows: Sequence[Window],
    forward: Forward,
    cache: EmbeddingCache | None,
    batch_tokens: int | None,
) -> None:
    """Writes the vectors of all windows to the table float32[rows, E], from the cache where it has them."""
    todo = []
    for window in windows:
        if cache and (found := cache.find(window.ids)) is not None:
            window.write(found, table)
        else:
            todo.append(window)
    try:
        with progress("encoding", sum(len(window.ids) for window in todo)) as advance:
            for number, states in forward([window.ids for window in todo], batch_tokens):
                todo[number].write(states, table)
                if cache:
                    cache.add(todo[number].ids, states)
                advance(len(states))
    finally:  # keeps the work of an interrupted run
        if cache:
            cache.flush()


def tokenized(encoder: TokenReader, texts: Sequence[str]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields ids int32[S] and special bool[S] of every text."""
    for first in range(0, len(texts), TOKENIZED):
        for ids, mask, special in zip(*encoder.tokenize(texts[first : first + TOKENIZED]), strict=True):
            length = int(np.count_nonzero(mask))
            yield np.asarray(ids[:length], np.int32), np.asarray(special[:length], bool)


def _edges(special: np.ndarray) -> tuple[int, int]:
    """The numbers of special tokens before and after the text."""
    text = np.flatnonzero(~special)
    return (int(text[0]), int(len(special) - text[-1] - 1)) if len(text) else (len(special), 0)


def truncated(ids: np.ndarray, special: np.ndarray, max_length: int) -> tuple[np.ndarray, np.ndarray]:
    """A row shortened to max_length tokens: the end of the text is dropped, the special tokens stay."""
    if len(ids) <= max_length:
        return ids, special
    after = _edges(special)[1]
    kept = [*range(max_length - after), *range(len(ids) - after, len(ids))]
    return ids[kept], special[kept]


@dataclasses.dataclass(frozen=True)
class Window:
    """A row for the encoder. Its `count` tokens from `start` on belong to the table's rows from `target` on."""

    ids: np.ndarray
    start: int
    count: int
    target: int

    def write(self, states: np.ndarray, table: np.ndarray) -> None:
        """Copies the vectors float32[S, E] of the row to the table."""
        table[self.target : self.target + self.count] = states[self.start : self.start + self.count]


def _windows(ids: np.ndarray, special: np.ndarray, target: int, max_length: int) -> Iterator[Window]:
    """One window for a text that fits, else several of max_length tokens, each with the special tokens around it."""
    if not len(ids):
        return
    if len(ids) <= max_length:
        yield Window(ids, 0, len(ids), target)
        return
    before, after = _edges(special)
    end = len(ids) - after
    width = max_length - before - after
    if width < 1:
        raise ValueError(f"max_length={max_length} leaves no room for text beside {before + after} special tokens")
    firsts = [*range(before, end - width, max(width // 2, 1)), end - width]
    # Two windows meet in the middle of their overlap, where a token has equal context in both.
    borders = [0, *((second + first + width) // 2 for first, second in itertools.pairwise(firsts)), len(ids)]
    for first, (start, stop) in zip(firsts, itertools.pairwise(borders), strict=True):
        row = np.concatenate([ids[:before], ids[first : first + width], ids[end:]])
        yield Window(row, start - (first - before), stop - start, target + start)


@contextlib.contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[float], None]]:
    """A progress bar with the remaining time, on a terminal only; yields a function to report what has been done."""
    if not (total and sys.stderr.isatty()):
        yield lambda done: None
        return
    import rich.console
    import rich.progress

    columns = ("{task.description}", rich.progress.BarColumn(), rich.progress.TimeRemainingColumn())
    with rich.progress.Progress(*columns, console=rich.console.Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)
