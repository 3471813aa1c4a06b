"""Output formats of translations: one line each, rows of an n-best list, or JSON, also with word alignments.

Alignments come from attention between pieces. They are written in the Pharaoh format: `0-0 1-2`, source first.
"""

import dataclasses
import json
from typing import Any

import numpy as np

from nmt_jax.alignment.attention import attention_links, between_words
from nmt_jax.alignment.links import format_links
from nmt_jax.errors import UserError
from nmt_jax.translation.requests import Hypothesis


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
        return [text, format_links(attention_links(_weights(hypothesis), self.threshold))] if self.aligned else [text]

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
