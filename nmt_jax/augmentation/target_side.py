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

Lexicon = Mapping[str, Mapping[str, float]]  # source word -> its translations and their probabilities


class Retargeted(NamedTuple):
    """A changed target, and of how many replaced source words the translation was changed, and was left."""

    words: list[str]
    changed: int
    left: int


def read_lexicon(path: str | os.PathLike[str], smallest: float, known: Collection[str]) -> dict[str, dict[str, float]]:
    """Reads SOURCE, TARGET, PROBABILITY rows; keeps the translations of those `known` words that have a likely one.

    smallest: the probability of the best translation of a word, at least. Translations without letters are left out.
    Raises UserError `FILE:LINE` for an invalid row, and UserError if nothing is kept.
    """
    found: dict[str, dict[str, float]] = {}
    for number, line in enumerate(read_lines(path), start=1):
        source, target, probability = parse_entry(line, f"{path}:{number}")
        if source in known:
            entries = found.setdefault(source, {})
            if word := split(target).word:
                entries[word] = max(probability, entries.get(word, 0.0))
    if not found:
        raise UserError(
            f"{path}: none of its source words occurs in the text; the source comes first in each row, as "
            "nmt-jax align --lexicon writes it for the same --source"
        )
    kept = {source: entries for source, entries in found.items() if max(entries.values(), default=0.0) >= smallest}
    if not kept:
        raise UserError(f"{path}: no translation has a probability of at least {smallest:g}; lower --min_probability")
    return kept


def translate(new: str, old_target: str, lexicon: Lexicon) -> str:
    """Returns what replaces the target word of a word that has become `new`: its most probable translation.

    If another form of this translation (the same beginning) ends as `old_target` does, it is used, so that adjectives
    agree. Returns `old_target` if there is no translation, or if it is one already.
    """
    entries = lexicon.get(new, {})
    if not entries or old_target in entries:
        return old_target
    best = max(entries, key=lambda word: entries[word])
    stem, ending = best[: max(3, len(best) // 2)].lower(), old_target[-2:].lower()
    agreeing = [word for word in entries if word.lower().startswith(stem) and word.lower().endswith(ending)]
    return max(agreeing, key=lambda word: entries[word], default=best)


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
        if position not in partner:
            continue
        j = partner[position]
        old = split(words[j])
        lower = old.word[:1].lower() + old.word[1:]
        word = translate(new, lower if j == 0 and lower in lexicon.get(new, {}) else old.word, lexicon)
        if j == 0:
            word = capitalized_as(word, old.word)
        if old.word and word != old.word:
            changed[j] = f"{old.before}{word}{old.after}"
            count += 1
    return Retargeted(changed, count, len(replaced) - count)
