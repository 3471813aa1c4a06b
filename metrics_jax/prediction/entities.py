"""Named entities: precision, recall and F1 of whole entities in tagged words, as counted by conlleval.

Tags are O, B-TYPE and I-TYPE in the schemes IOB1 or BIO (Ramshaw and Marcus, 1995; Tjong Kim Sang and Veenstra, 1999).
An entity ends before O, B- or another type; an I- tag that continues no entity begins one. Values are those of the
conlleval script of CoNLL-2000 to 2003.
"""

import collections
from collections.abc import Sequence
from typing import NamedTuple

from metrics_jax.api import check_lengths
from metrics_jax.prediction.classification import PrecisionRecall

TaggedSentences = Sequence[Sequence[str]]


class Entity(NamedTuple):
    """An entity of words `start` to `end` - 1 of a sentence."""

    type: str
    start: int
    end: int


def entities(tags: Sequence[str]) -> list[Entity]:
    """Entities in the tags of one sentence.

    Raises ValueError for a tag other than O, B-TYPE and I-TYPE, and TypeError for a string instead of a sequence.
    """
    if isinstance(tags, str):
        raise TypeError("the tags of a sentence must be a sequence of strings, not a single string")
    found: list[Entity] = []
    before, start = "", 0
    for position, tag in enumerate([*tags, "O"]):
        mark, _, kind = tag.partition("-")
        if tag != "O" and (mark not in ("B", "I") or not kind):
            raise ValueError(f"tag {tag!r} is not one of O, B-TYPE and I-TYPE")
        if mark == "I" and kind == before:
            continue
        if before:
            found.append(Entity(before, start, position))
        before, start = kind, position
    return found


def entity_f1(hypotheses: TaggedSentences, references: TaggedSentences) -> dict[str, PrecisionRecall]:
    """Precision, recall and F1 by entity type, and under "" for all types, of the predicted tags of N sentences.

    An entity is correct if its type, start and end are; scores are 0 where a denominator is 0. Raises ValueError for
    unequal numbers of sentences or words, no sentences, or an invalid tag; TypeError as `entities`.
    """
    check_lengths(hypotheses, references)
    if not len(hypotheses):
        raise ValueError("no sentences: an empty corpus has no score")
    found, true, right = (collections.Counter[str]() for _ in range(3))
    for number, (predicted, reference) in enumerate(zip(hypotheses, references, strict=True)):
        if len(predicted) != len(reference):
            raise ValueError(f"sentence {number} has {len(reference)} tags, but {len(predicted)} predicted ones")
        sides = [set(entities(tags)) for tags in (predicted, reference)]
        for counter, side in ((found, sides[0]), (true, sides[1]), (right, sides[0] & sides[1])):
            counter.update(entity.type for entity in side)
    for counter in (found, true, right):
        counter[""] = counter.total()

    def scores(kind: str) -> PrecisionRecall:
        hits, predicted, reference = right[kind], found[kind], true[kind]
        f1 = 2 * hits / max(predicted + reference, 1)
        return PrecisionRecall(hits / max(predicted, 1), hits / max(reference, 1), f1)

    return {kind: scores(kind) for kind in sorted({*found, *true})}
