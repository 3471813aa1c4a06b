"""METEOR as computed by nltk (nltk.translate.meteor_score, 3.10.4), including its deviations from the papers."""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from metrics_jax.api import References
from metrics_jax.meteor.meteor import MeteorFormula
from metrics_jax.surface.stemmers import porter
from metrics_jax.surface.tokenizers import check_tokenizer, tokenize
from metrics_jax.surface.wordnet import WordNet


@dataclasses.dataclass(frozen=True)
class MeteorNLTK(MeteorFormula):
    """METEOR, 0 to 1, with nltk's alignment; use it only for comparison with published scores of nltk.

    Deviations of nltk from the papers: going from its last word to its first, each hypothesis word is matched with the
    last free reference word that fits, so that crossings and chunks are not minimised. Words left unmatched by stem
    remain stems, and are looked up in WordNet as such (`bicycl` never matches `bike`). Synonyms are compared with the
    reference word as it is, not with its base form, and in the database's spelling (`America` matches nothing in lower
    case).

    tokenize: see `tokenizers`; "none", also called "whitespace", splits at white space. Tokens are lower-cased after
    splitting. wordnet: by default the database that `wordnet.WordNet` finds; nltk uses WordNet 3.0. Of several
    references, the best is used. The corpus score is the mean over segments. A text without matches scores 0.
    """

    tokenize: str = "none"
    wordnet: WordNet | None = None

    name: ClassVar[str] = "meteor_nltk"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tokenize == "whitespace":
            object.__setattr__(self, "tokenize", "none")
        check_tokenizer(self.tokenize)
        if self.wordnet is None:
            object.__setattr__(self, "wordnet", WordNet())

    def statistics(self, hypotheses: Sequence[str], references: References) -> np.ndarray:
        """Statistics float[N, 6] for the best reference: score, 1, matches, chunks, lengths of both texts."""
        counts, scores = self.best_counts(hypotheses, references)
        return np.column_stack([scores, np.ones(len(scores)), counts])

    def score(self, statistics: np.ndarray) -> np.ndarray:
        """Summed statistics float[..., 6] -> mean score float[...], 0 to 1."""
        return statistics[..., 0] / np.maximum(statistics[..., 1], 1)

    def words(self, texts: Sequence[str]) -> list[list[str]]:
        return [[token.lower() for token in tokens] for tokens in tokenize(texts, self.tokenize)]

    def align(self, hypothesis: Sequence[str], reference: Sequence[str]) -> dict[int, int]:
        assert self.wordnet is not None
        alignment: dict[int, int] = {}
        words, reference_words = list(enumerate(hypothesis)), list(enumerate(reference))
        for module in ("exact", "stem", "synonym"):
            if module == "stem":
                stem = porter("NLTK_EXTENSIONS")
                words = [(i, stem(word)) for i, word in words]
                reference_words = [(j, stem(word)) for j, word in reference_words]
            positions: dict[str, list[int]] = {}
            for j, word in reference_words:
                positions.setdefault(word, []).append(j)
            for i, word in reversed(words):
                fitting = positions.keys() & (self.wordnet.synonyms(word) if module == "synonym" else {word})
                if fitting:
                    last = max(fitting, key=lambda other: positions[other][-1])
                    alignment[i] = positions[last].pop()
                    if not positions[last]:
                        del positions[last]
            taken = set(alignment.values())
            words = [(i, word) for i, word in words if i not in alignment]
            reference_words = [(j, word) for j, word in reference_words if j not in taken]
        return alignment
