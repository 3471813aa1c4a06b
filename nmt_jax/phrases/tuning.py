"""Tuning of the weights in rounds: the n-best lists of all rounds, and the mean of old and new weights."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nmt_jax.phrases.model import Translation
from nmt_jax.translation.pairwise_tuning import normalized, qualities


def interpolated(old: np.ndarray, new: np.ndarray, share: float) -> np.ndarray:
    """Returns share * new + (1 - share) * old, both scaled to a sum of magnitudes of 1."""
    return share * normalized(new) + (1 - share) * normalized(old)


class NBestLists:
    """The translations of each line that the rounds have found: their features, and their scores by a metric."""

    def __init__(self, references: Sequence[str], metric: Any) -> None:
        """metric: of `metrics_jax`; for BLEU, its smoothed form for sentences, BLEU+1, is used."""
        self._references, self._metric = references, metric
        self._texts: list[set[str]] = [set() for _ in references]
        self.features = [np.zeros((0, 0)) for _ in references]
        self.scores = [np.zeros(0) for _ in references]

    def add(self, found: Sequence[Sequence[Translation]]) -> None:
        """Adds the translations of each line that are new."""
        new = [
            [one for one in translations if one.text not in texts]
            for translations, texts in zip(found, self._texts, strict=True)
        ]
        if not any(new):
            return
        scores = qualities(self._metric, [[one.text for one in translations] for translations in new], self._references)
        for line, (translations, own) in enumerate(zip(new, scores, strict=True)):
            if translations:
                rows = np.array([one.features for one in translations])
                self.features[line] = np.concatenate([self.features[line].reshape(-1, rows.shape[1]), rows])
                self.scores[line] = np.concatenate([self.scores[line], own])
                self._texts[line].update(one.text for one in translations)
