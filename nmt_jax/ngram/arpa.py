"""ARPA files: n-grams as text, with base-10 log-probabilities and backoffs, as SRILM and KenLM read and write them."""

import array
import gzip
import math
import os
import re
from typing import IO, NamedTuple, NoReturn

import numpy as np

from nmt_jax.data.lines import find, read_lines
from nmt_jax.errors import UserError
from nmt_jax.ngram.model import NgramModel
from nmt_jax.ngram.trie import NONE, Trie, pack
from nmt_jax.ngram.vocabulary import BOS, EOS, SPECIAL, UNK, Vocabulary, split
from nmt_jax.progress import track
from nmt_jax.storage.files import whole_file
from nmt_jax.storage.paths import path_of

NEVER = -100.0  # log-probability of <unk> if a file does not list it, as in KenLM
CHUNK = 1 << 16  # n-grams that are formatted together


def write_arpa(model: NgramModel, path: str | os.PathLike[str]) -> None:
    """Writes a model, compressed if the name ends in .gz. Numbers are those of float32, exactly."""
    with whole_file(path_of(path)) as file:
        if os.fspath(path).endswith(".gz"):
            with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0, compresslevel=6) as compressed:
                _write(model, compressed)
        else:
            _write(model, file)


def _write(model: NgramModel, file: IO[bytes] | gzip.GzipFile) -> None:
    sizes = model.trie.sizes
    heading = "".join(f"ngram {order}={size}\n" for order, size in enumerate(sizes, start=1))
    file.write(f"\\data\\\n{heading}".encode())
    words = np.array(model.vocabulary.words, object)
    for order, size in enumerate(sizes, start=1):
        file.write(f"\n\\{order}-grams:\n".encode())
        spelled = words[model.trie.spelled(order)]
        for start in track(range(0, size, CHUNK), f"writing {order}-grams", total=-(-size // CHUNK)):
            part = slice(start, start + CHUNK)
            columns = [_numbers(model.log_probabilities[order - 1][part]), map(" ".join, spelled[part].tolist())]
            if order < len(sizes):
                columns.append(_numbers(model.backoffs[order - 1][part]))
            file.writelines(f"{row}\n".encode() for row in map("\t".join, zip(*columns, strict=True)))
    file.write(b"\n\\end\\\n")


def _numbers(values: np.ndarray) -> list[str]:
    """Returns numbers with the digits that identify a float32."""
    return [f"{value:.9g}" for value in values.astype(np.float32).tolist()]


def read_arpa(path: str | os.PathLike[str]) -> NgramModel:
    """Reads a file, plain or .gz. Log-probabilities and backoffs are float32.

    Raises UserError `FILE:LINE` for a file that is truncated or malformed, an n-gram that is listed twice, one whose
    context w_1 … w_{n-1} is not listed, and one with a word that is not a unigram.
    """
    lines = _Lines(path)
    sizes = _read_sizes(lines)
    numbers = {word: number for number, word in enumerate(SPECIAL)}
    trie, log_probabilities, backoffs = Trie(0, ()), [], []
    for order, size in enumerate(sizes, start=1):
        if order > 1:
            lines.expect(f"\\{order}-grams:")
        section = _read_section(lines, order, size, numbers)
        if order == 1:
            section = _with_unknown(lines, section, len(numbers))
        keys = section.words if order == 1 else _find_keys(lines, section, trie, order)
        ranks = np.argsort(keys, kind="stable")
        keys = keys[ranks]
        if len(twice := np.flatnonzero(keys[1:] == keys[:-1])):
            lines.fail(f"this {order}-gram is listed twice; keep one of the lines", section.places[ranks[twice[0] + 1]])
        trie = Trie(len(numbers), (*trie.keys, keys) if order > 1 else ())
        log_probabilities.append(section.log_probabilities[ranks].astype(np.float32))
        backoffs.append(section.backoffs[ranks].astype(np.float32))
    lines.expect("\\end\\")
    return NgramModel(Vocabulary(list(numbers)), trie, tuple(log_probabilities), tuple(backoffs[:-1]))


class _Lines:
    """The lines of a file that are not blank, as lists of words, and the number of the current line."""

    def __init__(self, path: str | os.PathLike[str]):
        self.path, self.number = find(path), 0
        self._lines = read_lines(self.path)

    def next(self, expected: str) -> list[str]:
        """Returns the words of the next line; raises UserError at the end of the file."""
        for line in self._lines:
            self.number += 1
            if words := split(line):
                return words
        self.number += 1
        self.fail(f"the file ends here, expected {expected}; obtain the file again")

    def expect(self, heading: str) -> None:
        """Raises UserError if the next line is not this heading."""
        if (words := self.next(heading)) != [heading]:
            self.fail(f"found {' '.join(words)[:40]!r}, expected {heading}; this is not a valid ARPA file")

    def fail(self, what: str, number: int | None = None) -> NoReturn:
        """Raises UserError for a line, by default the current one."""
        raise UserError(f"{self.path}:{number or self.number}: {what}")


class _Section(NamedTuple):
    """The n-grams of an order as listed: words int64[size * n], their numbers, and the numbers of the lines."""

    log_probabilities: np.ndarray
    backoffs: np.ndarray
    words: np.ndarray
    places: np.ndarray


def _read_sizes(lines: _Lines) -> list[int]:
    """Reads the numbers of n-grams of each order, and the heading of the unigrams."""
    lines.expect("\\data\\")
    sizes: list[int] = []
    while (words := lines.next("\\1-grams:")) != ["\\1-grams:"]:
        match = re.fullmatch(rf"ngram {len(sizes) + 1} ?= ?(\d+)", " ".join(words))
        if not match:
            lines.fail(f"found {' '.join(words)[:40]!r}, expected ngram {len(sizes) + 1}=NUMBER or \\1-grams:")
        sizes.append(int(match[1]))
    if not sizes:
        lines.fail("expected ngram 1=NUMBER before \\1-grams:")
    return sizes


def _read_section(lines: _Lines, order: int, size: int, numbers: dict[str, int]) -> _Section:
    """Reads the n-grams of an order; unigrams are added to `numbers`."""
    log_probabilities, backoffs = array.array("d"), array.array("d")
    found, places = array.array("q"), array.array("q")
    for done in track(range(size), f"reading {order}-grams", size):
        fields = lines.next(f"{size - done:,} more {order}-grams")
        if fields[0].startswith("\\"):
            lines.fail(f"found {fields[0][:40]!r}, expected {size - done:,} more {order}-grams; obtain the file again")
        try:
            log_probability, *backoff = map(float, (fields[0], *fields[order + 1 :]))
        except ValueError:
            log_probability, backoff = math.nan, []
        if not log_probability <= 0 or len(fields) not in (order + 1, order + 2) or not math.isfinite(sum(backoff)):
            what = f"expected a log10 probability, at most 0, {order} words, and a log10 backoff if there is one"
            lines.fail(f"found {' '.join(fields)[:60]!r}, {what}")
        for word in fields[1 : order + 1]:
            if order == 1:
                numbers.setdefault(word, len(numbers))
            elif word not in numbers:
                lines.fail(f"the word {word[:40]!r} is not listed as a 1-gram; list it, or remove this {order}-gram")
            found.append(numbers[word])
        log_probabilities.append(log_probability)
        backoffs.append(backoff[0] if backoff else 0.0)
        places.append(lines.number)
    return _Section(*map(np.array, (log_probabilities, backoffs, found, places)))


def _with_unknown(lines: _Lines, section: _Section, num_words: int) -> _Section:
    """Returns the unigrams with `<unk>`. Raises UserError if `<s>` or `</s>` is not among them."""
    for number in (BOS, EOS):
        if number not in section.words:
            lines.fail(f"the 1-gram {SPECIAL[number]} is not listed; estimate the model with marked line ends")
    if UNK in section.words:
        return section
    added = (NEVER, 0.0, UNK, lines.number)
    return _Section(*(np.append(column, value) for column, value in zip(section, added, strict=True)))


def _find_keys(lines: _Lines, section: _Section, trie: Trie, order: int) -> np.ndarray:
    """Returns the keys of n-grams of an order from 2 in a trie of the orders below."""
    words = section.words.reshape(-1, order)
    contexts = words[:, 0]
    for shorter in range(2, order):
        contexts = trie.find(shorter, contexts, words[:, shorter - 1])
    if len(lost := np.flatnonzero(contexts == NONE)):
        what = f"its first {order - 1} words are not listed as a {order - 1}-gram; list them, or remove this {order}-gram"
        lines.fail(what, int(section.places[lost[0]]))
    return pack(contexts, words[:, -1])
