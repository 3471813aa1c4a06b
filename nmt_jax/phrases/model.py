"""A trained phrase-based model: its files, and the translation of lines."""

import dataclasses
import itertools
import json
import pathlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from nmt_jax.data.lines import read_lines
from nmt_jax.errors import UserError
from nmt_jax.ngram.binary import read_binary
from nmt_jax.ngram.model import NgramModel
from nmt_jax.ngram.trie import NONE
from nmt_jax.phrases import features, tokens
from nmt_jax.phrases.lattice import Lattice
from nmt_jax.phrases.options import COPIED, Options
from nmt_jax.phrases.phrase_table import PhraseTable
from nmt_jax.phrases.stack_decoder import Limits, decode
from nmt_jax.storage.files import whole_file

BATCH_WORDS = 512  # words of sentences that are translated together
MOST_PATHS = 100  # paths that are looked at for each of the distinct translations: many have the same words


class Translation(NamedTuple):
    """A translation of a line: its tokens, its score, and its features float64[F]."""

    tokens: list[str]
    score: float
    features: np.ndarray

    @property
    def text(self) -> str:
        """The translation without marks between tokens."""
        return tokens.join(self.tokens)


@dataclasses.dataclass(frozen=True)
class Files:
    """The files of a phrase-based model in a workdir."""

    folder: pathlib.Path

    @property
    def table(self) -> pathlib.Path:
        """The phrase table."""
        return self.folder / "phrases.npz"

    @property
    def words(self) -> pathlib.Path:
        """The words of the source language, one per line."""
        return self.folder / "source.txt"

    @property
    def language_model(self) -> pathlib.Path:
        """The n-gram model of the target language."""
        return self.folder / "target.ngram"

    @property
    def weights(self) -> pathlib.Path:
        """The tuned weights, written last."""
        return self.folder / "weights.json"

    @property
    def size(self) -> int:
        """Size of all files in bytes."""
        return sum(file.stat().st_size for file in self.folder.iterdir())


class PhraseModel:
    """A phrase table, a language model and weights."""

    def __init__(
        self,
        words: Sequence[str],
        table: PhraseTable,
        language_model: NgramModel,
        weights: np.ndarray,
        limits: Limits,
        lowercase: bool = False,
    ) -> None:
        """words: of the source language, by number. lowercase: whether the model reads lower-cased text."""
        self.table, self.language_model, self.weights, self.limits = table, language_model, weights, limits
        self._numbers = {word: number for number, word in enumerate(words)}
        self._lowercase = lowercase

    @classmethod
    def load(cls, files: Files, limits: Limits, lowercase: bool, weights: np.ndarray | None = None) -> "PhraseModel":
        """Reads the files; weights: by default those of the files. Raises UserError for a damaged file."""
        chosen = read_weights(files.weights) if weights is None else weights
        table, words = PhraseTable.load(files.table), list(read_lines(files.words))
        if len(words) != table.trie.num_words:
            raise UserError(f"{files.words}: {len(words)} words, not the {table.trie.num_words} of the phrase table")
        return cls(words, table, read_binary(files.language_model), chosen, limits, lowercase)

    def translate(self, lines: Sequence[str], n_best: int = 1, most_paths: int = MOST_PATHS) -> list[list[Translation]]:
        """Returns the best translations of each line, distinct and in order, between 1 and n_best.

        most_paths: how many paths are looked at for each of them.
        """
        found: list[list[Translation]] = [[Translation([], 0.0, np.zeros(len(features.NAMES)))] for _ in lines]
        sentences = [tokens.split(line, self._lowercase) for line in lines]
        for group in _groups([len(one) for one in sentences]):
            numbers = [np.array([self._numbers.get(word, NONE) for word in sentences[line]]) for line in group]
            lattice = decode(self.table, self.language_model, numbers, self.weights, self.limits)
            for number, line in enumerate(group):
                found[line] = list(self._distinct(lattice, number, sentences[line], n_best, most_paths))
        return found

    def _distinct(
        self, lattice: Lattice, number: int, source: Sequence[str], n_best: int, most_paths: int
    ) -> Iterator[Translation]:
        seen = set()
        spelled: dict[int, str] = {}  # the words of each arc
        for path in itertools.islice(lattice.paths(number), n_best * most_paths):
            for arc in path.arcs:
                if arc not in spelled:
                    spelled[arc] = self._words(lattice.options, int(lattice.arcs.option[arc]), source)
            text = " ".join([spelled[arc] for arc in path.arcs])
            if text not in seen:
                seen.add(text)
                yield Translation(text.split(" "), path.score, lattice.features(np.array(path.arcs)).sum(axis=0))
            if len(seen) == n_best:
                return

    def _words(self, options: Options, option: int, source: Sequence[str]) -> str:
        if options.row[option] == COPIED:
            return source[options.start[option]]
        words = options.words[option, : options.lengths[option]].tolist()
        return " ".join([self.language_model.vocabulary.words[word] for word in words])


def _groups(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yields the numbers of lines that are translated together, those of similar lengths; not those without words."""
    group: list[int] = []
    size = 0
    for line in sorted(filter(lengths.__getitem__, range(len(lengths))), key=lengths.__getitem__):
        if group and size + lengths[line] > BATCH_WORDS:
            yield group
            group, size = [], 0
        group.append(line)
        size += lengths[line]
    if group:
        yield group


def write_weights(path: pathlib.Path, weights: np.ndarray, **more: float) -> None:
    """Writes weights by name as JSON; more: numbers about the training."""
    content = {"weights": dict(zip(features.NAMES, weights.tolist(), strict=True)), **more}
    with whole_file(path) as file:
        file.write((json.dumps(content, indent=2) + "\n").encode())


def read_weights(path: pathlib.Path) -> np.ndarray:
    """Returns the weights of a file, float64[F]. Raises UserError for anything else."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))["weights"]
        return np.array([float(content[name]) for name in features.NAMES])
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{path}: not a file of weights; delete it, and train again") from None


def write_words(path: pathlib.Path, words: Iterable[str]) -> None:
    """Writes one word per line."""
    with whole_file(path) as file:
        file.writelines(f"{word}\n".encode() for word in words)
