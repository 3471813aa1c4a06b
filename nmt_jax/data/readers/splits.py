"""What all readers share: the corpus interface, the folder that `config.data` names, held-out folds, the grammar."""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import itertools
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, Protocol, Self, TypeVar

from nmt_jax.errors import UserError
from nmt_jax.storage.paths import path_of

SPLITS = ("train", "dev", "test")

Item = TypeVar("Item")
Item_co = TypeVar("Item_co", covariant=True)


class Corpus(Protocol[Item_co]):
    """Items in a fixed order; every iteration starts from the beginning."""

    @property
    def name(self) -> str:
        """Name for messages, usually the path."""

    def __iter__(self) -> Iterator[Item_co]: ...


class FingerprintedCorpus(Corpus[Item_co], Protocol[Item_co]):
    """A corpus that can be prepared: encoded once and found again by its content."""

    def fingerprint(self) -> str:
        """SHA-256 of the content."""


def corpus_folder(
    data: Any, split: str, kinds: Sequence[str], content: str, splits: Sequence[str] = SPLITS
) -> pathlib.Path | None:
    """The folder of the corpus that `config.data` describes, or None for the embedded grammar.

    content: what the folder contains, for messages. Raises UserError if `data.corpus` is not one of `kinds`, or if no
    folder is given; and ValueError if `split` is not one of `splits`.
    """
    if split not in splits:
        raise ValueError(f"split {split!r} is not one of {', '.join(splits)}")
    if data.corpus not in kinds:
        raise UserError(f"config.data.corpus: {data.corpus!r} is not one of {', '.join(kinds)}")
    if data.corpus == "grammar":
        return None
    if not data.directory:
        raise UserError(f"config.data.directory: name the folder of {content}")
    return path_of(data.directory).expanduser()


@dataclasses.dataclass(frozen=True)
class SingleFile:
    """Base class of corpora in one file."""

    path: pathlib.Path

    @property
    def name(self) -> str:
        return str(self.path)


@dataclasses.dataclass(frozen=True)
class GrammarSplit:
    """Base class of corpora of `size` items from a split of the embedded grammar."""

    split: str
    size: int

    @property
    def name(self) -> str:
        return f"embedded grammar {self.split}"

    @classmethod
    def of(cls, data: Any, split: str, held_out: int, *fields: Any) -> Self:
        """The split that `config.data` describes: `data.size` items for training, `held_out` for the other splits."""
        return cls(split, data.size if split == "train" else held_out, *fields)


def with_held_out_fold(
    data: Any, split: str, items: Corpus[Item], key: Callable[[Item], tuple[str, str]], unit: str = "items"
) -> Corpus[Item]:
    """All `items` if `data.dev` names a development file; otherwise fold `data.fold` of `data.folds`, or the rest.

    Raises UserError if the fold does not exist.
    """
    if data.dev:
        return items
    if data.folds < 2 or not 0 <= data.fold < data.folds:
        raise UserError(
            f"config.data.fold={data.fold}, config.data.folds={data.folds}: there must be at least 2 folds, and the "
            "fold must be between 0 and folds - 1"
        )
    return Fold(items, key, data.fold, data.folds, split, unit)


@dataclasses.dataclass(frozen=True)
class Fold(Generic[Item]):
    """One fold of a corpus as its "dev" split, all other folds as its "train" split.

    key: the stratum and the content of an item. The distinct contents of a stratum, sorted by SHA-256, are dealt to the
    folds in turn. So every fold has the same share of each stratum, whatever the order of the file, and items of equal
    content are never separated.
    """

    items: Corpus[Item]
    key: Callable[[Item], tuple[str, str]]
    fold: int
    folds: int
    split: str
    unit: str

    @property
    def name(self) -> str:
        which = "without " if self.split == "train" else ""
        return f"{self.items.name}, {which}fold {self.fold} of {self.folds} of the {self.unit}"

    def __iter__(self) -> Iterator[Item]:
        keys = [(stratum, hashlib.sha256(content.encode()).digest()) for stratum, content in map(self.key, self.items)]
        dealt: collections.defaultdict[str, Iterator[int]] = collections.defaultdict(itertools.count)
        folds = {key: next(dealt[key[0]]) % self.folds for key in sorted(set(keys))}
        for key, item in zip(keys, self.items, strict=True):
            if (folds[key] == self.fold) == (self.split == "dev"):
                yield item
