"""METEOR as nltk's program computes it (nltk.translate.meteor_score, 3.10.4), fault for fault."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from metrics_jax.api import AdditiveMetric, References
from metrics_jax.meteor.meteor import best_counts, check_parameters, name_parts, score_counts
from metrics_jax.surface.stemmers import porter
from metrics_jax.surface.synonyms import WordNet
from metrics_jax.surface.tokenizers import check_tokenizer, tokenize


@dataclasses.dataclass(frozen=True)
class MeteorNLTK(AdditiveMetric):
    """METEOR, 0 to 1, with nltk's alignment: compare it with published numbers of nltk only.

    What nltk does and the papers do not: from its last word to its first, each word of the hypothesis takes the last
    free word of the reference that fits, so crossings and chunks are not minimised; the words that no stem matched stay
    stems, and as stems are looked up in WordNet (`bicycle`, now `bicycl`, never meets `bike`); synonyms are compared
    with the reference's word as it stands, not with its base form, and in the database's spelling (`America` meets
    nothing in lower case).

    tokenize: see `tokenizers`; "none", also called "whitespace", splits at white space. Tokens are lower-cased after
    they are split. wordnet: by default the database that `synonyms.WordNet` finds; nltk's is WordNet 3.0. Of several
    references the best counts. The corpus score is the mean over segments. No match, an empty text included, scores 0.
    """

    alpha: float = 0.9
    beta: float = 3.0
    gamma: float = 0.5
    tokenize: str = "none"
    wordnet: WordNet | None = None

    name: ClassVar[str] = "meteor_nltk"

    def __post_init__(self) -> None:
        check_parameters(self.alpha, self.beta, self.gamma)
        if self.tokenize == "whitespace":
            object.__setattr__(self, "tokenize", "none")
        check_tokenizer(self.tokenize)
        if self.wordnet is None:
            object.__setattr__(self, "wordnet", WordNet())

    def statistics(self, hypotheses: Sequence[str], references: References) -> np.ndarray:
        """-> float[N, 6]: score, 1, matches, chunks, hypothesis length, reference length, of the best reference."""
        score = functools.partial(score_counts, alpha=self.alpha, beta=self.beta, gamma=self.gamma)
        counts, scores = best_counts(hypotheses, references, self._split, self.align, score)
        return np.column_stack([scores, np.ones(len(scores)), counts])

    def score(self, statistics: np.ndarray) -> np.ndarray:
        """Summed statistics float[..., 6] -> mean score float[...], 0 to 1."""
        return statistics[..., 0] / np.maximum(statistics[..., 1], 1)

    def parts(self, statistics: np.ndarray) -> dict[str, float | np.ndarray]:
        """Summed statistics float[6] -> precision, recall, f_mean and penalty of the summed counts, and the counts."""
        return name_parts(statistics[2:], self.alpha, self.beta, self.gamma)

    def _split(self, texts: Sequence[str]) -> list[list[str]]:
        return [[token.lower() for token in tokens] for tokens in tokenize(texts, self.tokenize)]

    def align(self, hypothesis: Sequence[str], reference: Sequence[str]) -> dict[int, int]:
        """The words of two texts -> matched positions, hypothesis: reference."""
        assert self.wordnet is not None
        alignment: dict[int, int] = {}
        words, reference_words = list(enumerate(hypothesis)), list(enumerate(reference))
        for module in ("exact", "stem", "synonym"):
            if module == "stem":
                stem = porter("NLTK_EXTENSIONS")
                words = [(i, stem(word)) for i, word in words]
                reference_words = [(j, stem(word)) for j, word in reference_words]
            places: dict[str, list[int]] = {}
            for j, word in reference_words:
                places.setdefault(word, []).append(j)
            for i, word in reversed(words):
                fitting = places.keys() & (self.wordnet.synonyms(word) if module == "synonym" else {word})
                if fitting:
                    last = max(fitting, key=lambda other: places[other][-1])
                    alignment[i] = places[last].pop()
                    if not places[last]:
                        del places[last]
            taken = set(alignment.values())
            words = [(i, word) for i, word in words if i not in alignment]
            reference_words = [(j, word) for j, word in reference_words if j not in taken]
        return alignment
