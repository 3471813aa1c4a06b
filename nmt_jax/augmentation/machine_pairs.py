"""Pairs of real text and its translation by a model: back-translation, forward translation.

Back-translation (Sennrich et al., 2016): the target is real, and the source is its translation by a model of the
opposite direction. Forward translation, or self-training: the source is real, and the target is its translation.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from nmt_jax.augmentation.augmenter import Change, Pair, augment
from nmt_jax.translation.requests import Hypothesis

KINDS = ("back_translation", "forward_translation")


class SourceEdit(NamedTuple):
    """What happens to the source of each pair: noise first, then the tag (Caswell et al., 2019), a word in front."""

    noise: Change | None = None
    tag: str = ""
    seed: int = 0

    def __call__(self, source: str, number: int, copy: int) -> str:
        """Returns the source of copy `copy` of line `number`, counted from 0; it does not depend on other lines."""
        if self.noise:
            source = augment(Pair(source), self.noise, self.seed, number, copy).source
        return f"{self.tag} {source}" if self.tag else source


def make_pairs(
    lines: Sequence[str], hypotheses: Iterable[Sequence[Hypothesis]], back: bool, edit: SourceEdit, first: int
) -> Iterator[Pair]:
    """Yields a pair of each real line and each of its translations; those with an empty side are left out.

    back: whether the real lines are the targets. first: the number of the first line, counted from 0.
    """
    for number, (line, found) in enumerate(zip(lines, hypotheses, strict=True), start=first):
        for copy, hypothesis in enumerate(found):
            translation = " ".join(hypothesis.text.splitlines())  # bytes of a model may spell a line break
            if line.strip() and translation.strip():
                source, target = (translation, line) if back else (line, translation)
                yield Pair(edit(source, number, copy), target)
