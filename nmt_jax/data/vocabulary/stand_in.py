"""Stand-ins for vocabularies that no data has been read for: programs are compiled with their sizes alone."""

import dataclasses

import numpy as np

from nmt_jax.data.vocabulary.words import Words


@dataclasses.dataclass(frozen=True)
class StandIn:
    """A vocabulary or tokenizer of `size` pieces, of which nothing else is known; equal names mean the same one."""

    size: int
    name: str = ""

    @property
    def fingerprint(self) -> str:
        """Tells two vocabularies apart."""
        return self.name

    def __len__(self) -> int:
        return self.size

    def id(self, piece: str) -> int:
        """The number of a special piece: any number."""
        return 0

    def starts(self) -> np.ndarray:
        """bool[V]: whether a piece begins a word."""
        return np.ones(self.size, bool)


def words(size: int) -> Words:
    """Words of eight characters with frequencies by Zipf's law."""
    numbers = range(1, size + 1)
    return Words(tuple(f"{number:08d}" for number in numbers), tuple(1 + size // number for number in numbers))
