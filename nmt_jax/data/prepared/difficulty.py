"""The difficulty of training examples for a curriculum: length, or rarity of the words (Platanios et al., 2019).

Rarity is -sum log p(w) over the pieces w of a text, where p is their relative frequency in all texts.
"""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Iterator

import numpy as np

from nmt_jax.data.prepared.cache import cached_folder
from nmt_jax.data.prepared.mixture import Mixture
from nmt_jax.data.prepared.parallel import PreparedCorpus
from nmt_jax.progress import track

FORMAT = 1  # increase it whenever the content of a prepared folder changes
MEASURES = ("length", "rarity")
_RARITY = "rarity.float32"
_BLOCK = 4096  # pairs read together


def of_texts(ids: np.ndarray, starts: np.ndarray, measure: str) -> np.ndarray:
    """The difficulty float64[N] of consecutive texts, of which number n begins at ids[starts[n]].

    ids: int[tokens]. measure: one of MEASURES.
    """
    if measure == "length":
        return np.diff(starts, append=len(ids)).astype(np.float64)
    return _rarities(ids, starts, np.bincount(ids))


def of_sources(corpus: PreparedCorpus | Mixture, measure: str) -> np.ndarray:
    """The difficulty float[N] of the source side of each pair; its rarity is read from the cache, or kept there.

    measure: one of MEASURES. Rarity is that in the own part of a mixture. Raises UserError if the cache cannot be
    written.
    """
    if measure == "length":
        return np.asarray(corpus.lengths[:, 0], np.float64)
    if isinstance(corpus, Mixture):
        return np.concatenate([of_sources(part, measure) for part in corpus.parts])[corpus.rows]
    key = [FORMAT, corpus.directory.name]
    folder = cached_folder(corpus.directory.parent, "rarity", key, functools.partial(_write, corpus))
    return np.fromfile(folder / _RARITY, np.float32)


def _write(corpus: PreparedCorpus, folder: pathlib.Path) -> None:
    """Reads the corpus twice, so that memory does not grow with it."""
    source_vocab, *_ = corpus.encoding.vocabs
    counts = np.zeros(len(source_vocab) + corpus.encoding.max_unknown, np.int64)
    for sources in _blocks(corpus, "counting pieces"):
        counts += np.bincount(np.concatenate(sources), minlength=len(counts))
    with (folder / _RARITY).open("wb") as file:
        for sources in _blocks(corpus, "measuring rarity"):
            starts = np.cumsum([0, *map(len, sources[:-1])])
            file.write(_rarities(np.concatenate(sources), starts, counts).astype(np.float32).tobytes())


def _blocks(corpus: PreparedCorpus, label: str) -> Iterator[list[np.ndarray]]:
    """The ids of all sources, block by block."""
    firsts = range(0, len(corpus), _BLOCK)
    for first in track(firsts, label, len(corpus), each=_BLOCK):
        pairs = corpus.__getitems__(range(first, min(first + _BLOCK, len(corpus))))
        yield [source for source, _ in pairs]


def _rarities(ids: np.ndarray, starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The rarity float64[N] of consecutive texts, from how often each piece occurs, int[V]."""
    surprise = np.log(counts.sum()) - np.log(np.maximum(counts, 1))
    return np.add.reduceat(surprise[ids], starts)
