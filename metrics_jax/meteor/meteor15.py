"""METEOR 1.5 (Denkowski and Lavie, 2014) as its Java program computes it."""

import dataclasses
import functools
import itertools
import math
import os
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from metrics_jax.api import AdditiveMetric, References, best, flatten, pair
from metrics_jax.meteor import meteor15_tables
from metrics_jax.meteor.meteor import check_modules
from metrics_jax.meteor.meteor15_aligner import MODULES, Aligner, Match
from metrics_jax.meteor.meteor15_normalizer import LANGUAGES as NORMALIZED
from metrics_jax.meteor.meteor15_normalizer import Normalizer
from metrics_jax.meteor.meteor15_stemmers import STEMMED, stemmer
from metrics_jax.meteor.meteor15_tables import Tables

MODULES_OF = {  # the default modules of each language
    "en": MODULES,
    "cz": ("exact", "paraphrase"),
    **dict.fromkeys(("de", "es", "fr", "ru"), ("exact", "stem", "paraphrase")),
    **dict.fromkeys(("ar-bw-red", "da", "fi", "hu", "it", "nl", "no", "pt", "ro", "se", "tr"), ("exact", "stem")),
}
# For the tasks ranking, adequacy, edit rate and tuning: (alpha, beta, gamma, delta), and module weights, which are
# assigned by position whatever the modules are. "li" (language-independent) and "tune" exist for all languages.
TUNED = {
    ("rank", "en"): ((0.85, 0.2, 0.6, 0.75), (1.0, 0.6, 0.8, 0.6)),
    ("rank", "cz"): ((0.95, 0.2, 0.6, 0.8), (1.0, 0.4, 0.0, 0.0)),
    ("rank", "de"): ((0.95, 1.0, 0.55, 0.55), (1.0, 0.8, 0.2, 0.0)),
    ("rank", "es"): ((0.65, 1.3, 0.5, 0.8), (1.0, 0.8, 0.6, 0.0)),
    ("rank", "fr"): ((0.9, 1.4, 0.6, 0.65), (1.0, 0.2, 0.4, 0.0)),
    ("rank", "ru"): ((0.75, 1.4, 0.7, 0.5), (1.0, 0.5, 0.5, 0.0)),
    ("adq", "en"): ((0.75, 1.4, 0.45, 0.7), (1.0, 1.0, 0.6, 0.8)),
    ("hter", "en"): ((0.4, 1.5, 0.35, 0.55), (1.0, 0.2, 0.6, 0.8)),
    ("util", "en"): ((0.65, 0.1, 0.55, 0.65), (1.0, 0.0, 0.0, 0.8)),
}
UNTUNED = {"li": ((0.75, 1.4, 0.7, 0.5), (1.0, 0.5, 0.5, 0.5)), "tune": ((0.5, 1.0, 0.5, 0.5), (1.0, 0.5, 0.5, 0.5))}
TASKS = {task for task, _ in TUNED} | set(UNTUNED)


@dataclasses.dataclass(frozen=True)
class Meteor15(AdditiveMetric):
    """METEOR 1.5, 0 to 1: weighted matches of words, stems, synonyms and paraphrases, with a fragmentation penalty.

    P and R weight a content word by delta, a function word by 1 - delta, and a match by its module; F_mean = 1 / ((1 -
    alpha) / P + alpha / R), penalty = gamma (chunks / matched words)^beta, score = (1 - penalty) F_mean. Texts that
    match completely in one chunk have no penalty, and add no chunk to a corpus, which is scored on its summed counts.
    Of several references, the best is used, on ties the first. A text without matches scores 0.

    The options are those of the program: language (-l, with its codes "cz" and "se"), task (-t, which determines
    default parameters and weights), modules (-m; default weights are assigned by position), weights (-w), parameters
    (-p: alpha, beta, gamma, delta; the default weights are then those of "adq"), norm (-norm: tokenise, normalise and
    lower-case), otherwise lowercase (-lower; words are split at white space), no_punct (-noPunct). tables: METEOR's own
    data, by default as found by `Tables`; needed for synonyms, paraphrases, and `norm` in "es", "fr" and "ru".
    """

    language: str = "en"
    task: str = "rank"
    modules: tuple[str, ...] | None = None
    weights: tuple[float, ...] | None = None
    parameters: tuple[float, ...] | None = None
    norm: bool = True
    lowercase: bool = True
    no_punct: bool = False
    tables: Tables | str | os.PathLike[str] | None = None

    name: ClassVar[str] = "meteor15"

    def __post_init__(self) -> None:
        language = self.language
        if language not in MODULES_OF:
            raise ValueError(f"language={language!r}: METEOR 1.5 supports {', '.join(MODULES_OF)}")
        modules = MODULES_OF[language] if self.modules is None else tuple(self.modules)
        check_modules(modules, MODULES)
        if "synonym" in modules and language != "en":
            raise ValueError(f"METEOR 1.5 has no synonyms for {language!r}: remove `synonym` from the modules")
        if "stem" in modules and language not in STEMMED:
            raise ValueError(f"METEOR 1.5 has no stemmer for {language!r}: remove `stem` from the modules")
        if self.norm and language not in NORMALIZED:
            raise ValueError(f"METEOR 1.5 cannot normalise {language!r}: use norm=False with tokenised texts")
        if self.norm and not self.lowercase:
            raise ValueError("norm=True implies lower-casing: use norm=False as well, or lowercase=True")
        if self.no_punct and not self.norm:
            raise ValueError("no_punct=True needs norm=True: only the normaliser identifies punctuation")
        parameters, weights = self._numbers(len(modules))
        files = meteor15_tables.files(language, modules, self.norm)
        directory = self.tables.directory if isinstance(self.tables, Tables) else self.tables or ""
        object.__setattr__(self, "modules", modules)
        object.__setattr__(self, "parameters", parameters)
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "tables", Tables(directory, files) if files else None)

    def _numbers(self, num_modules: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Parameters and weights, as given or by default. Raises ValueError where METEOR has no defaults."""
        tuned = {task: numbers for (task, language), numbers in TUNED.items() if language == self.language}
        known = {**tuned, **UNTUNED}
        if self.task not in known and (self.parameters is None or self.task not in TASKS):
            raise ValueError(f"task={self.task!r}: for {self.language!r} METEOR 1.5 supports {', '.join(known)}")
        if self.parameters is not None and self.weights is None and "adq" not in known:
            raise ValueError(f"parameters for {self.language!r} need weights, too: METEOR 1.5 has no default for them")
        parameters = known[self.task][0] if self.parameters is None else tuple(map(float, self.parameters))
        task = self.task if self.parameters is None else "adq"
        weights = known[task][1][:num_modules] if self.weights is None else tuple(map(float, self.weights))
        alpha, beta, gamma, delta = parameters if len(parameters) == 4 else (-1.0,) * 4
        if not (0 <= alpha <= 1 and 0 <= beta < math.inf and 0 <= gamma <= 1 and 0 <= delta <= 1):
            raise ValueError(
                f"parameters={parameters!r}: must be alpha, beta, gamma, delta, with beta >= 0, the others from 0 to 1"
            )
        if len(weights) != num_modules or not all(0 <= weight < math.inf for weight in weights):
            raise ValueError(f"weights={weights!r}: must be one for each of {num_modules} modules, none negative")
        return parameters, weights

    def statistics(self, hypotheses: Sequence[str], references: References) -> np.ndarray:
        """Statistics float[N, 5 + 4 M] for the best reference and M modules.

        Words and function words of the hypothesis, the same of the reference, chunks; then, for each module, matched
        content words of hypothesis and reference, and matched function words of both.
        """
        texts, owner = flatten(hypotheses, references)
        pairs = pair([self.words(text) for text in texts], owner)
        counts = np.array([self._count(*words) for words in zip(*pairs, strict=True)], np.float64)
        return counts[best(self.score(counts), owner)]

    def score(self, statistics: np.ndarray) -> np.ndarray:
        _, _, f_mean, penalty = self._ratios(statistics)
        return np.nan_to_num(f_mean * (1 - penalty))

    def parts(self, statistics: np.ndarray) -> dict[str, float | np.ndarray]:
        """What the program prints, under its names, from summed statistics float[5 + 4 M]; 0 where it divides by 0."""
        precision, recall, f_mean, penalty = (float(np.nan_to_num(ratio)) for ratio in self._ratios(statistics))
        return {
            "precision": precision,
            "recall": recall,
            "f1": 2 * precision * recall / (precision + recall) if precision + recall else 0.0,
            "fmean": f_mean,
            "frag_penalty": penalty,
            "chunks": float(statistics[4]),
            "test_words": float(statistics[0]),
            "reference_words": float(statistics[2]),
        }

    def words(self, text: str) -> list[str]:
        """The words of a text as they are compared."""
        if self.norm:
            return self._normalizer.words(text)
        text = (text.lower() if self.lowercase else text).translate(_WHITE)
        return [word for word in text.split(" ") if word]

    def align(self, hypothesis: Sequence[str], reference: Sequence[str]) -> list[Match]:
        """The matches of two texts' words, in the order of the reference."""
        return self._aligner.align(hypothesis, reference)

    def _count(self, hypothesis: list[str], reference: list[str]) -> list[int]:
        function = meteor15_tables.function_words()
        is_function = [word.lower() in function for word in hypothesis]
        is_reference_function = [word.lower() in function for word in reference]
        assert self.modules is not None
        matched = [[0] * 4 for _ in self.modules]
        matches = self.align(hypothesis, reference)
        chunks = 0
        next_pair = None  # the positions in both texts right after the previous match
        for j, reference_words, i, words, module in matches:
            chunks += next_pair != (j, i)
            next_pair = (j + reference_words, i + words)
            for k in range(i, i + words):
                matched[module][2 * is_function[k]] += 1
            for k in range(j, j + reference_words):
                matched[module][2 * is_reference_function[k] + 1] += 1
        sizes = [len(hypothesis), sum(is_function), len(reference), sum(is_reference_function)]
        is_complete = chunks == 1 and sum(map(sum, matched)) == sizes[0] + sizes[2]
        return [*sizes, 0 if is_complete else chunks, *itertools.chain(*matched)]

    def _ratios(self, statistics: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Precision, recall, F_mean and penalty, float[...] each; NaN for divisions by 0."""
        assert self.parameters is not None
        alpha, beta, gamma, delta = self.parameters
        words, function, reference_words, reference_function, chunks = np.moveaxis(statistics[..., :5], -1, 0)
        matched = statistics[..., 5:].reshape(*statistics.shape[:-1], -1, 4)
        weighted = matched * np.array(self.weights)[:, None]
        terms = np.concatenate([weighted[..., :2] * delta, weighted[..., 2:] * (1 - delta)], axis=-2)
        weighted = terms.cumsum(axis=-2)[..., -1, :]  # summed in the program's order, since the last bit decides ties
        with np.errstate(divide="ignore", invalid="ignore"):
            precision = weighted[..., 0] / (delta * (words - function) + (1 - delta) * function)
            reference_weight = delta * (reference_words - reference_function) + (1 - delta) * reference_function
            recall = weighted[..., 1] / reference_weight
            f_mean = 1 / ((1 - alpha) / precision + alpha / recall)
            penalty = gamma * _power(chunks / (matched.sum((-2, -1)) / 2), beta)
        return precision, recall, f_mean, penalty

    @functools.cached_property
    def _normalizer(self) -> Normalizer:
        prefixes, numeric = self._tables.prefixes(self.language)
        return Normalizer(self.language, prefixes, numeric, self.no_punct)

    @functools.cached_property
    def _aligner(self) -> Aligner:
        assert self.modules is not None
        return Aligner(
            self.modules,
            stemmer(self.language) if "stem" in self.modules else None,
            self._tables.synonyms().synsets if "synonym" in self.modules else None,
            self._tables.paraphrases(self.language) if "paraphrase" in self.modules else None,
        )

    @property
    def _tables(self) -> Tables:
        return self.tables if isinstance(self.tables, Tables) else Tables()


_WHITE = str.maketrans("\t\n\r\f", "    ")  # word separators in Java
_power = np.vectorize(math.pow, otypes=[np.float64])  # NumPy's last bit depends on the number of segments
