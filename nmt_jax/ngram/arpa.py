"""ARPA files: n-grams as text, with base-10 log-probabilities and backoffs, as SRILM and KenLM read and write them."""

import gzip
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
CHUNK = 1 << 16  # n-grams that are written or read together


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
        columns = [model.log_probabilities[order - 1]]
        if order < len(sizes):
            columns.append(model.backoffs[order - 1])
        row = "%.9g\t%s\t%.9g\n" if order < len(sizes) else "%.9g\t%s\n"  # nine digits identify a float32
        for start in track(range(0, size, CHUNK), f"writing {order}-grams", total=-(-size // CHUNK)):
            part = slice(start, start + CHUNK)
            log_p, *backoff = (column[part].astype(np.float32).tolist() for column in columns)
            ngrams = map(" ".join, words[model.trie.spelled(order, part)].tolist())
            file.write("".join(map(row.__mod__, zip(log_p, ngrams, *backoff, strict=True))).encode())
    file.write(b"\n\\end\\\n")


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
        keys = section.words[:, 0] if order == 1 else _find_keys(lines, section, trie, order)
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
        return self.take(1, expected)[0][0]

    def take(self, count: int, expected: str) -> tuple[list[list[str]], list[int]]:
        """Returns the words and the numbers of the next lines; raises UserError at the end of the file."""
        rows: list[list[str]] = []
        places: list[int] = []
        for line in self._lines:
            self.number += 1
            if words := split(line):
                rows.append(words)
                places.append(self.number)
                if len(rows) == count:
                    return rows, places
        self.number += 1
        self.fail(f"the file ends here, expected {expected}; obtain the file again")

    def expect(self, heading: str) -> None:
        """Raises UserError if the next line is not this heading."""
        if (words := self.next(heading)) != [heading]:
            self.fail(f"found '{' '.join(words)[:40]}', expected {heading}; this is not a valid ARPA file")

    def fail(self, what: str, number: int | None = None) -> NoReturn:
        """Raises UserError for a line, by default the current one."""
        raise UserError(f"{self.path}:{number or self.number}: {what}")


def _read_sizes(lines: _Lines) -> list[int]:
    """Reads the numbers of n-grams of each order, and the heading of the unigrams."""
    lines.expect("\\data\\")
    sizes: list[int] = []
    while (words := lines.next("\\1-grams:")) != ["\\1-grams:"]:
        match = re.fullmatch(rf"ngram {len(sizes) + 1} ?= ?([0-9]{{1,15}})", " ".join(words))
        if not match:
            lines.fail(f"found '{' '.join(words)[:40]}', expected ngram {len(sizes) + 1}=NUMBER or \\1-grams:")
        sizes.append(int(match[1]))
    if not sizes:
        lines.fail("expected ngram 1=NUMBER before \\1-grams:")
    return sizes


class _Section(NamedTuple):
    """The n-grams of an order as listed: words int64[size, n] are numbers, places those of the lines."""

    log_probabilities: np.ndarray
    backoffs: np.ndarray
    words: np.ndarray
    places: np.ndarray


def _read_section(lines: _Lines, order: int, size: int, numbers: dict[str, int]) -> _Section:
    """Reads the n-grams of an order; unigrams are added to `numbers`."""
    parts = [_Section(np.zeros(0), np.zeros(0), np.zeros((0, order), np.int64), np.zeros(0, np.int64))]
    for start in track(range(0, size, CHUNK), f"reading {order}-grams", -(-size // CHUNK)):
        left = size - start
        rows, places = lines.take(min(CHUNK, left), f"{left:,} {order}-grams after line {lines.number}")
        try:
            parts.append(_parse(rows, places, order, numbers))
        except (ValueError, LookupError):
            for row, place in zip(rows, places, strict=True):
                if mistake := _mistake(row, order, numbers):
                    lines.fail(mistake, place)
            raise
    return _joined(parts)


def _joined(parts: list[_Section]) -> _Section:
    return _Section(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _parse(rows: list[list[str]], places: list[int], order: int, numbers: dict[str, int]) -> _Section:
    """Returns n-grams that were listed as words. Raises ValueError or LookupError if there is a mistake."""
    if any(len(row) - order not in (1, 2) for row in rows):
        raise ValueError
    if order == 1:
        for row in rows:
            numbers.setdefault(row[1], len(numbers))
    log_probabilities = np.array([float(row[0]) for row in rows], np.float64)
    backoffs = np.array([float(row[order + 1]) if len(row) > order + 1 else 0.0 for row in rows], np.float64)
    if not (log_probabilities <= 0).all() or np.isnan(backoffs).any():
        raise ValueError
    words = np.array([[numbers[row[place]] for row in rows] for place in range(1, order + 1)], np.int64)
    return _Section(log_probabilities, backoffs, words.T, np.array(places))


def _mistake(row: list[str], order: int, numbers: dict[str, int]) -> str | None:
    """Returns what is wrong with the line of an n-gram."""
    if row[0].startswith("\\"):
        return f"found {row[0][:40]}, but there are fewer {order}-grams than \\data\\ says; obtain the file again"
    if order > 1 and len(row) > order:
        for word in row[1 : order + 1]:
            if word not in numbers:
                return f"the word {word[:40]!r} is not listed as a 1-gram; list it, or remove this {order}-gram"
    try:
        _parse([row], [0], order, numbers)
    except ValueError:
        what = f"expected a log10 probability of at most 0, {order} words, and a log10 backoff if there is one"
        return f"found {' '.join(row)[:60]!r}, {what}"
    return None


def _with_unknown(lines: _Lines, section: _Section, num_words: int) -> _Section:
    """Returns the unigrams with `<unk>`. Raises UserError if `<s>` or `</s>` is not among them."""
    for number in (BOS, EOS):
        if number not in section.words:
            lines.fail(f"the 1-gram {SPECIAL[number]} is not listed; estimate the model with marked line ends")
    if UNK in section.words:
        return section
    added = ([NEVER], [0.0], [[UNK]], [lines.number])
    return _joined([section, _Section(*map(np.array, added))])


def _find_keys(lines: _Lines, section: _Section, trie: Trie, order: int) -> np.ndarray:
    """Returns the keys of n-grams of an order from 2 in a trie of the orders below."""
    words = section.words
    contexts = words[:, 0]
    for shorter in range(2, order):
        contexts = trie.find(shorter, contexts, words[:, shorter - 1])
    if len(lost := np.flatnonzero(contexts == NONE)):
        what = (
            f"its first {order - 1} words are not listed as a {order - 1}-gram; list them, or remove this {order}-gram"
        )
        lines.fail(what, int(section.places[lost[0]]))
    return pack(contexts, words[:, -1])
