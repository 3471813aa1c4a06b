"""Metrics of the surface of a text: BLEU, chrF and TER, computed by sacreBLEU (Post, 2018).

Defaults, option names, scale and signatures are sacreBLEU's. An empty hypothesis scores 0 (TER 100) against a reference
with words in it; two empty strings score 0 (TER 0).
"""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from metrics_jax.api import References, Result, check_texts

TOKENIZERS = ("13a", "intl", "char", "zh", "none")  # sacreBLEU's others download a model, or need another package


class _Surface:
    """The doors of `api.Metric` around a sacreBLEU metric."""

    name: ClassVar[str]
    higher_is_better: ClassVar[bool] = True
    unsigned: ClassVar[
        tuple[str, ...]
    ] = ()  # options that change the number, but which sacreBLEU's signature leaves out

    def _program(self) -> Any:
        """The sacreBLEU metric with this one's options; imported here, as `import metrics_jax` must stay cheap."""
        raise NotImplementedError

    def _parts(self, total: Any) -> dict[str, float | np.ndarray]:
        """Named ingredients of sacreBLEU's score object."""
        raise NotImplementedError

    def _segment_metric(self) -> "_Surface":
        """The metric as it is applied to one segment."""
        return self

    @property
    def signature(self) -> str:
        """sacreBLEU's signature without the number of references, which a call adds."""
        program = self._program()
        program.num_refs = None
        return self._sign(program)

    def statistics(self, hypotheses: Sequence[str], references: References) -> np.ndarray:
        """-> float[N, K], additive over segments; errors as `api.check_texts`."""
        grouped = check_texts(hypotheses, references)
        return np.asarray(self._program()._extract_corpus_statistics(hypotheses, _by_reference(grouped)), np.float64)

    def score(self, statistics: np.ndarray) -> np.ndarray:
        """Summed statistics float[..., K] -> float[...] on sacreBLEU's scale."""
        program = self._program()
        return np.apply_along_axis(lambda row: program._compute_score_from_stats(row.tolist()).score, -1, statistics)

    def __call__(
        self, hypotheses: Sequence[str], references: References, sources: Sequence[str] | None = None
    ) -> Result:
        """Score a corpus; `references[i]`, a string or several, belong to `hypotheses[i]`; sources do not matter."""
        grouped = check_texts(hypotheses, references)
        statistics = self.statistics(hypotheses, grouped)
        program = self._program()
        total = program._compute_score_from_stats(statistics.sum(axis=0).tolist())
        counts = {len(group) for group in grouped}
        program.num_refs = counts.pop() if len(counts) == 1 else -1  # -1 reads `nrefs:var`
        return Result(
            score=float(total.score),
            segments=self._segment_metric().score(statistics),
            signature=self._sign(program),
            parts=self._parts(total),
        )

    def _sign(self, program: Any) -> str:
        """sacreBLEU's signature, and what it leaves out where that is not the default."""
        unsigned = [name for name in self.unsigned if getattr(self, name) != getattr(type(self), name)]
        return "|".join([program.get_signature().format(), *(f"{name}:{getattr(self, name)}" for name in unsigned)])


@dataclasses.dataclass(frozen=True)
class BLEU(_Surface):
    """BLEU (Papineni et al., 2002), 0 to 100; segments are scored with `effective_order`, as sacreBLEU does."""

    lowercase: bool = False
    tokenize: str = "13a"
    smooth_method: str = "exp"
    smooth_value: float | None = None
    max_ngram_order: int = 4
    effective_order: bool = False

    name: ClassVar[str] = "bleu"
    unsigned: ClassVar[tuple[str, ...]] = ("max_ngram_order",)

    def __post_init__(self) -> None:
        if self.tokenize not in TOKENIZERS:
            raise ValueError(f"tokenize={self.tokenize!r} is none of {', '.join(TOKENIZERS)}")
        if self.smooth_method not in ("exp", "floor", "add-k", "none"):
            raise ValueError(f"smooth_method={self.smooth_method!r} is none of exp, floor, add-k, none")

    def _program(self) -> Any:
        from sacrebleu.metrics.bleu import BLEU as Program  # noqa: N811

        return Program(**dataclasses.asdict(self), force=True)  # force: no warning about text that looks tokenised

    def _segment_metric(self) -> "BLEU":
        return dataclasses.replace(self, effective_order=True)

    def _parts(self, total: Any) -> dict[str, float | np.ndarray]:
        return {
            "precisions": np.asarray(total.precisions),
            "brevity_penalty": float(total.bp),
            "hypothesis_length": float(total.sys_len),
            "reference_length": float(total.ref_len),
        }


@dataclasses.dataclass(frozen=True)
class ChrF(_Surface):
    """chrF (Popović, 2015), and chrF++ with `word_order=2` (Popović, 2017), 0 to 100."""

    char_order: int = 6
    word_order: int = 0
    beta: int = 2
    lowercase: bool = False
    whitespace: bool = False
    eps_smoothing: bool = False

    name: ClassVar[str] = "chrf"
    unsigned: ClassVar[tuple[str, ...]] = ("beta",)

    def _program(self) -> Any:
        from sacrebleu.metrics.chrf import CHRF

        return CHRF(**dataclasses.asdict(self))

    def _parts(self, total: Any) -> dict[str, float | np.ndarray]:
        return {}


@dataclasses.dataclass(frozen=True)
class TER(_Surface):
    """Translation edit rate (Snover et al., 2006), edits per hundred reference words: lower is better."""

    normalized: bool = False
    no_punct: bool = False
    asian_support: bool = False
    case_sensitive: bool = False

    name: ClassVar[str] = "ter"
    higher_is_better: ClassVar[bool] = False

    def _program(self) -> Any:
        from sacrebleu.metrics.ter import TER as Program  # noqa: N811

        return Program(**dataclasses.asdict(self))

    def _parts(self, total: Any) -> dict[str, float | np.ndarray]:
        return {"edits": float(total.num_edits), "reference_length": float(total.ref_length)}


def _by_reference(grouped: list[list[str]]) -> list[tuple[str | None, ...]]:
    """References by segment -> by number, None where a segment has fewer: sacreBLEU's layout."""
    return list(itertools.zip_longest(*grouped))
