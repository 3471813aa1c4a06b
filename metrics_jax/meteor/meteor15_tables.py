"""METEOR 1.5's own data (Denkowski and Lavie, 2014): word lists, synonyms and paraphrases."""

import dataclasses
import functools
import gzip
import hashlib
import importlib.resources
import importlib.util
import os
import pathlib
import re
import zipfile
import zlib
from collections.abc import Sequence

# Languages whose prefixes are read from METEOR's files. This package has English and German ones; Czech has none.
PREFIXES = {"es": "spanish", "fr": "french", "ru": "russian"}
SYNONYM_FILES = ("synonym/english.synsets", "synonym/english.exceptions")
LONGEST_PHRASE = 7  # words of the longest phrase in METEOR's paraphrase tables
# All entries of one phrase; group 1 is the phrase with its line end.
_ENTRIES = re.compile(rb"[^\n]*\n([^\n]*\n)[^\n]*\n(?:[^\n]*\n\1[^\n]*\n)*")
# Endings and their replacements in base forms; the first base form that has synsets is used.
_ENDINGS = (
    ("s", ""), ("ses", "s"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"), ("men", "man"), ("ies", "y"),
    ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", ""), ("er", ""), ("est", ""), ("er", "e"),
    ("est", "e"),
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Tables:
    """METEOR's data in `directory`, by default in $METEOR_DATA or in an installed package pycocoevalcap.

    A directory contains METEOR's jar (a zip file with prefixes and synonyms) or its unpacked files, and the paraphrases
    as `data/paraphrase-en.gz` or `paraphrase-en.gz`. files: the files that are used, which determine the fingerprint.
    Raises ValueError if one of them is missing.
    """

    directory: str | os.PathLike[str] = ""
    files: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        folder = self.directory or os.environ.get("METEOR_DATA") or _installed()
        for name in self.files:
            if not folder or _find(str(folder), name) is None:
                raise ValueError(
                    f"METEOR 1.5's {name} is not {f'in {folder}' if folder else 'installed'}: pip install "
                    "pycocoevalcap, which contains METEOR's jar and English paraphrases, pass METEOR's own folder as "
                    "Tables(directory) or in $METEOR_DATA, or remove the module that needs the file"
                )
        object.__setattr__(self, "directory", str(pathlib.Path(folder).resolve()) if folder else "")

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the stored files, in the order of `files`."""
        return _fingerprint(str(self.directory), self.files)

    def prefixes(self, language: str) -> tuple[frozenset[str], frozenset[str]]:
        """The words of a language that keep a final period: always, and only before a number."""
        return _prefixes(str(self.directory), language)

    def synonyms(self) -> "Synonyms":
        """The English synonyms, read once per process."""
        return _synonyms(str(self.directory))

    def paraphrases(self, language: str) -> "Paraphrases":
        """The paraphrases of a language, read once per process."""
        return _paraphrases(str(self.directory), language)


def files(language: str, modules: Sequence[str], norm: bool) -> tuple[str, ...]:
    """The files of METEOR that scores with these options depend on, except for data in this package."""
    return (
        *([f"nonbreaking/{PREFIXES[language]}.prefixes"] if norm and language in PREFIXES else ()),
        *(SYNONYM_FILES if "synonym" in modules else ()),
        *([f"paraphrase-{language}.gz"] if "paraphrase" in modules else ()),
    )


def _installed() -> str:
    """METEOR's folder in the package pycocoevalcap, which is not imported; "" if it is not installed."""
    spec = importlib.util.find_spec("pycocoevalcap")
    locations = spec.submodule_search_locations if spec else None
    return str(pathlib.Path(next(iter(locations)), "meteor")) if locations else ""


def _find(directory: str, name: str) -> pathlib.Path | None:
    """The file itself, or the jar that contains it."""
    for path in (pathlib.Path(directory, name), pathlib.Path(directory, "data", name)):
        if path.is_file():
            return path
    for jar in sorted(pathlib.Path(directory).glob("meteor-*.jar")):
        if zipfile.is_zipfile(jar):
            with zipfile.ZipFile(jar) as archive:
                if name in archive.namelist():
                    return jar
    return None


def _read(directory: str, name: str) -> bytes:
    """The bytes of a file, unpacked if it is in a jar. Raises ValueError if it cannot be read."""
    path = _find(directory, name)
    try:
        if path is None:
            raise FileNotFoundError("file not found")
        if path.suffix == ".jar":
            with zipfile.ZipFile(path) as archive:
                return archive.read(name)
        return path.read_bytes()
    except (OSError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"cannot read METEOR's {name} in {directory}: {error}") from error


@functools.cache
def _fingerprint(directory: str, files: tuple[str, ...]) -> str:
    return hashlib.sha256(b"".join(_read(directory, name) for name in files)).hexdigest()


@functools.cache
def _packaged_words() -> dict[str, frozenset[str]]:
    """The word lists in this package, by label."""
    text = importlib.resources.files("metrics_jax").joinpath("meteor/meteor15_words.txt").read_text("utf-8")
    lines = [line.split() for line in text.split("\n") if line and not line.startswith("# ")]
    return {label: frozenset(word for name, *words in lines if name == label for word in words) for label, *_ in lines}


def function_words() -> frozenset[str]:
    """METEOR's English function words. It has lists for six languages, but uses this one for all."""
    return _packaged_words()["function:"]


@functools.cache
def _prefixes(directory: str, language: str) -> tuple[frozenset[str], frozenset[str]]:
    if language not in PREFIXES:
        words = _packaged_words()
        return words.get(f"{language}:", frozenset()), words.get(f"{language}-numeric:", frozenset())
    lines = _read(directory, f"nonbreaking/{PREFIXES[language]}.prefixes").decode().split("\n")
    entries = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    return frozenset(word for word, *note in entries if not note), frozenset(word for word, *note in entries if note)


class Synonyms:
    """METEOR's English synonyms, which are those of WordNet 3.0.

    synsets: lines with a word, alternating with lines of the numbers of its synsets. exceptions: lines with a word,
    alternating with lines of its irregular forms.
    """

    def __init__(self, synsets: str, exceptions: str) -> None:
        lines = synsets.split("\n")
        self._synsets = dict(zip(lines[::2], lines[1::2], strict=False))
        self._bases: dict[str, list[str]] = {}
        lines = exceptions.split("\n")
        for base, forms in zip(lines[::2], lines[1::2], strict=False):
            for form in forms.split():
                self._bases.setdefault(form, []).append(base)
        self.synsets = functools.lru_cache(2**18)(self._look_up)

    def _look_up(self, word: str) -> frozenset[str]:
        """The numbers of the synsets of a word and of its base forms."""
        forms = (word, *self._base_forms(word))
        return frozenset(number for form in forms for number in self._synsets.get(form, "").split())

    def _base_forms(self, word: str) -> list[str]:
        if word in self._bases:
            return self._bases[word]
        if len(word) > 2 and not word.endswith("ss"):
            for ending, replacement in _ENDINGS:
                if word.endswith(ending) and (base := word[: -len(ending)] + replacement) in self._synsets:
                    return [base]
        return []


class Paraphrases:
    """A paraphrase table: lines with a probability, a phrase and a paraphrase, sorted by phrase.

    The text is kept in memory as it is (272 MB for English), with the position of each of its 430,000 phrases.
    """

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._spans = {entries[1][:-1].decode(): entries.span() for entries in _ENTRIES.finditer(self._text)}
        self.phrases = self._spans.keys()
        self.of = functools.lru_cache(2**16)(self._look_up)

    def _look_up(self, phrase: str) -> tuple[str, ...]:
        """The paraphrases of a phrase in the order of the table; empty for a phrase that is not in `phrases`."""
        start, end = self._spans.get(phrase, (0, 0))
        return tuple(self._text[start:end].decode().split("\n")[2::3])


@functools.cache
def _synonyms(directory: str) -> Synonyms:
    return Synonyms(*(_read(directory, name).decode() for name in SYNONYM_FILES))


@functools.cache
def _paraphrases(directory: str, language: str) -> Paraphrases:
    name = f"paraphrase-{language}.gz"
    try:
        return Paraphrases(gzip.decompress(_read(directory, name)))
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"cannot unpack METEOR's {name} in {directory}: {error}") from error
