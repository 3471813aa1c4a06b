"""How well entities were found in tagged words: precision, recall and F1 of whole entities, as conlleval counts them.

Tags are O, B-TYPE and I-TYPE, as IOB1 or BIO writes them (Ramshaw and Marcus, 1995; Tjong Kim Sang and Veenstra,
1999): an entity ends before any O, B- or other type, so a wrong I- behind none begins one. Values are those of the
conlleval script of CoNLL-2000 to 2003.
"""

import collections
from collections.abc import Sequence
from typing import NamedTuple

from metrics_jax.api import check_lengths
from metrics_jax.prediction.classification import PrecisionRecall

TaggedSentences = Sequence[Sequence[str]]


class Entity(NamedTuple):
    """Words `start` to `end`-1 of a sentence, and what they are."""

    type: str
    start: int
    end: int


def entities(tags: Sequence[str]) -> list[Entity]:
    """The entities of one sentence's tags; ValueError for a tag that is none of O, B-TYPE and I-TYPE."""
    found: list[Entity] = []
    before, start = "", 0
    for place, tag in enumerate([*tags, "O"]):
        mark, _, kind = tag.partition("-")
        if tag != "O" and (mark not in ("B", "I") or not kind):
            raise ValueError(f"tag {tag!r} is none of O, B-TYPE and I-TYPE")
        if mark == "I" and kind == before:
            continue
        if before:
            found.append(Entity(before, start, place))
        before, start = kind, place
    return found


def entity_f1(hypotheses: TaggedSentences, references: TaggedSentences) -> dict[str, PrecisionRecall]:
    """The tags of N sentences, predicted and true -> precision, recall and F1 of each type, and "" for all of them.

    An entity is right if type, start and end are; 0 where a denominator is 0. ValueError for unequal numbers of
    sentences or words, or a tag that is none.
    """
    check_lengths(hypotheses, references)
    found, true, right = (collections.Counter[str]() for _ in range(3))
    for number, (predicted, given) in enumerate(zip(hypotheses, references, strict=True)):
        if len(predicted) != len(given):
            raise ValueError(f"sentence {number} has {len(given)} tags, predicted are {len(predicted)}")
        sides = [set(entities(tags)) for tags in (predicted, given)]
        for counter, side in ((found, sides[0]), (true, sides[1]), (right, sides[0] & sides[1])):
            counter.update(entity.type for entity in side)
    for counter in (found, true, right):
        counter[""] = counter.total()

    def scores(kind: str) -> PrecisionRecall:
        hits, predicted, given = right[kind], found[kind], true[kind]
        f1 = 2 * hits / max(predicted + given, 1)
        return PrecisionRecall(hits / max(predicted, 1), hits / max(given, 1), f1)

    return {kind: scores(kind) for kind in sorted({*found, *true})}
