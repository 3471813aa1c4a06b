"""Changed copies of lines: each is a function of the line, its number, the number of the copy and the seed."""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import numpy as np

from nmt_jax.alignment.links import Link
from nmt_jax.augmentation.noise import Changed
from nmt_jax.augmentation.target_side import Lexicon, retarget

Change = Callable[[Sequence[str], np.random.Generator], Changed]


class Pair(NamedTuple):
    """A line, its translation ("" if there is none), and the links of their words."""

    source: str
    target: str = ""
    links: Collection[Link] = ()


class Copy(NamedTuple):
    """A changed copy of a pair, and the numbers of changed source words, of translations changed and of those left."""

    source: str
    target: str
    num_changed: int
    target_changed: int = 0
    target_left: int = 0


def augment(pair: Pair, change: Change, seed: int, number: int, copy: int, lexicon: Lexicon | None = None) -> Copy:
    """Returns copy `copy` of line `number`, counted from 0; it does not depend on other lines or copies.

    lexicon: changes the translations of replaced words, if given. Without a change, the pair is returned as it was.
    """
    changed = change(pair.source.split(), np.random.default_rng((seed, number, copy)))
    if not changed.num_changed:
        return Copy(*pair[:2], 0)
    source = " ".join(changed.words)
    if lexicon is None:
        return Copy(source, pair.target, changed.num_changed)
    target = retarget(pair.target.split(), pair.links, changed.replaced, lexicon)
    text = " ".join(target.words) if target.changed else pair.target
    return Copy(source, text, changed.num_changed, target.changed, target.left)
