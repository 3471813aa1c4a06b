"""Output formats of translations: one line each, rows of an n-best list, or JSON, also with word alignments.

Alignments come from attention between pieces. They are written in the Pharaoh format: `0-0 1-2`, source first.
"""

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from nmt_jax.errors import UserError
from nmt_jax.translation.requests import Hypothesis

SPACE = "▁"  # prefix of a piece that begins a word


@dataclasses.dataclass(frozen=True)
class TranslationFormat:
    """What is written for a line.

    rows: LINE, SCORE, TEXT for each hypothesis, separated by tabs; otherwise the text of the best one. as_json: a JSON
    object instead. aligned: with links between words, each target word's best, or all of at least `threshold`.
    attention: with attention weights.
    """

    as_json: bool = False
    rows: bool = False
    aligned: bool = False
    threshold: float | None = None
    attention: bool = False

    @classmethod
    def of(cls, form: str, rows: bool, alignment: str | None, attention: bool) -> "TranslationFormat":
        """Return the format that flags describe; raises UserError if they are invalid."""
        if attention and form != "json":
            raise UserError("--attention needs --format=json")
        threshold = None
        if alignment not in (None, "argmax"):
            try:
                threshold = float(str(alignment))
            except ValueError:
                raise UserError(
                    f"--alignment={alignment}: must be argmax or the smallest weight of a link, such as 0.2"
                ) from None
            if not 0 < threshold <= 1:
                raise UserError(f"--alignment={alignment}: must be above 0 and at most 1")
        return cls(form == "json", rows, alignment is not None, threshold, attention)

    @property
    def needs_attention(self) -> bool:
        """Whether the output contains alignments or attention weights."""
        return self.aligned or self.attention

    def show(self, number: int, hypotheses: list[Hypothesis]) -> bytes:
        """Return the output for line `number`, counted from 1, in UTF-8."""
        if self.as_json:
            entry = {"line": number, "hypotheses": [self._object(hypothesis) for hypothesis in hypotheses]}
            lines = [json.dumps(entry, ensure_ascii=False)]
        elif self.rows:
            lines = ["\t".join([str(number), f"{one.score:.6f}", *self._columns(one)]) for one in hypotheses]
        else:
            lines = ["\t".join(self._columns(hypotheses[0]))]
        return "".join(line + "\n" for line in lines).encode()

    def _columns(self, hypothesis: Hypothesis) -> list[str]:
        # A model with byte fallback can generate a line break or a tab, which would break lines and columns.
        text = " ".join(hypothesis.text.split("\n"))
        if self.rows or self.aligned:
            text = " ".join(text.split("\t"))
        return [text, pharaoh(links(_weights(hypothesis), self.threshold))] if self.aligned else [text]

    def _object(self, hypothesis: Hypothesis) -> dict[str, Any]:
        text, *alignment = self._columns(hypothesis)
        entry: dict[str, Any] = {"score": round(hypothesis.score, 6), "text": text, "pieces": hypothesis.pieces}
        if hypothesis.scored:
            entry["log_probs"] = [round(value, 6) for value in hypothesis.scored.log_probs]
        if alignment:
            entry["alignment"] = alignment[0]
        if self.attention:
            entry["attention"] = [[round(float(value), 4) for value in row] for row in _weights(hypothesis)]
        return entry


def _weights(hypothesis: Hypothesis) -> np.ndarray:
    """Attention between words, float[T, S]."""
    scored = hypothesis.scored
    return between_words(scored.attention, scored.source_pieces, scored.pieces) if scored else np.zeros((0, 0))


# Word alignments


def word_numbers(pieces: Sequence[str]) -> np.ndarray:
    """Return the number of the word that each piece belongs to.

    It is -1 for special pieces, such as </s>, and for a blank that begins no word.
    """
    numbers = np.full(len(pieces), -1)
    word, begins = -1, True
    for position, piece in enumerate(pieces):
        if piece in ("<s>", "</s>", "<pad>"):
            continue
        if piece.startswith(SPACE):
            begins = True
        if piece.strip(SPACE):
            word += begins
            begins = False
            numbers[position] = word
    return numbers


def between_words(weights: np.ndarray, source: Sequence[str], target: Sequence[str]) -> np.ndarray:
    """Return attention weights between words, from those of target pieces on source pieces, float[T, S].

    Weights are averaged over the pieces of a target word and summed over the pieces of a source word.
    """
    rows, columns = word_numbers(target), word_numbers(source)
    num_rows, num_columns = rows.max(initial=-1) + 1, columns.max(initial=-1) + 1
    in_target = (rows[None] == np.arange(num_rows)[:, None]).astype(float)
    in_source = (columns[:, None] == np.arange(num_columns)[None]).astype(float)
    return in_target / np.maximum(in_target.sum(axis=1, keepdims=True), 1) @ weights @ in_source


def links(weights: np.ndarray, threshold: float | None = None) -> list[tuple[int, int]]:
    """Return (source, target) links from word weights float[T, S]: each target word with its best source word.

    With a threshold, all links of at least that weight.
    """
    if not weights.size:
        return []
    if threshold is None:
        return [(int(source), target) for target, source in enumerate(weights.argmax(axis=1))]
    return [(int(source), int(target)) for target, source in np.argwhere(weights >= threshold)]


def pharaoh(pairs: Sequence[tuple[int, int]]) -> str:
    """Return (source, target) links as "0-0 1-2", in the order of the source."""
    return " ".join(f"{source}-{target}" for source, target in sorted(pairs))
