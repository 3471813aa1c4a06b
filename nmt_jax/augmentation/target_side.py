"""The target side of replaced words: their translations, by a probabilistic lexicon and links (Fadaee et al., 2017)."""

import collections
import os
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from nmt_jax.alignment.links import Link
from nmt_jax.augmentation.words import capitalized_as, split
from nmt_jax.data.lines import read_lines
from nmt_jax.data.vocabulary.translation_lexicon import parse_entry
from nmt_jax.errors import UserError

Lexicon = Mapping[str, str]  # the best translation of a source word


class Retargeted(NamedTuple):
    """A changed target, and of how many replaced source words the translation was changed, and was left."""

    words: list[str]
    changed: int
    left: int


def read_lexicon(path: str | os.PathLike[str], smallest: float, known: Collection[str]) -> dict[str, str]:
    """Reads SOURCE, TARGET, PROBABILITY rows; keeps the most probable translation of each of the `known` words.

    Translations of probability below `smallest`, and those without letters, are left out. Raises UserError `FILE:LINE`
    for an invalid row, and UserError if nothing is kept.
    """
    best: dict[str, tuple[float, str]] = {}
    occurs = False
    for number, line in enumerate(read_lines(path), start=1):
        source, target, probability = parse_entry(line, f"{path}:{number}")
        if source not in known:
            continue
        occurs = True
        target = split(target).word
        if target and probability >= smallest and probability > best.get(source, (0.0, ""))[0]:
            best[source] = probability, target
    if not occurs:
        raise UserError(
            f"{path}: none of its source words occurs in the text; the source comes first in each row, as "
            "nmt-jax align --lexicon writes it for the same --source"
        )
    if not best:
        raise UserError(f"{path}: no translation has a probability of at least {smallest:g}; lower --min_probability")
    return {source: target for source, (_, target) in best.items()}


def retarget(
    words: Sequence[str], links: Collection[Link], replaced: Mapping[int, str], lexicon: Lexicon
) -> Retargeted:
    """Replaces the translation of each replaced source word that is linked to it alone, if the new word has one.

    links: (source position, target position). A target word keeps attached punctuation, and its capital at the
    beginning of the line.
    """
    sources = collections.Counter(source for source, _ in links)
    targets = collections.Counter(target for _, target in links)
    partner = {i: j for i, j in links if sources[i] == targets[j] == 1}
    changed = list(words)
    count = 0
    for position, new in replaced.items():
        if position not in partner or new not in lexicon:
            continue
        j = partner[position]
        old = split(words[j])
        translation = capitalized_as(lexicon[new], old.word) if j == 0 else lexicon[new]
        if old.word and translation != old.word:
            changed[j] = f"{old.before}{translation}{old.after}"
            count += 1
    return Retargeted(changed, count, len(replaced) - count)
