"""Synonyms from a WordNet database (Fellbaum, 1998) in the file format of Princeton's distribution, wndb(5WN)."""

import dataclasses
import functools
import gzip
import hashlib
import os
import pathlib
import zlib

PARTS = ("noun", "verb", "adj", "adv")
FILES = tuple(name for part in PARTS for name in (f"data.{part}", f"index.{part}", f"{part}.exc"))
# Inflectional endings and their replacements in base forms, morphy(7WN).
_ENDINGS: dict[str, tuple[tuple[str, str], ...]] = {
    "noun": (
        ("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"),
        ("men", "man"), ("ies", "y"),
    ),
    "verb": (("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", "")),
    "adj": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "adv": (),
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class WordNet:
    """The WordNet database in `directory`, by default in $WNSEARCHDIR or /usr/share/wordnet; files may be gzipped.

    Files are read on first use, once per process; two objects with the same directory are equal. Raises ValueError if
    there is no database. Words are looked up in lower case, both as they are and in their base forms: those in an
    exception list, or, for other words, those in the index that the rules of detachment give (as in nltk).
    """

    directory: str | os.PathLike[str] = ""

    def __post_init__(self) -> None:
        folder = self.directory or default_directory()
        for name in FILES:
            if not any(path.is_file() for path in _paths(folder, name)):
                raise ValueError(
                    f"no WordNet database in {folder} ({name} is missing): install the Debian package wordnet-base, or "
                    "unpack WordNet 3.0 from wordnet.princeton.edu and pass its folder dict as WordNet(directory) or "
                    "in $WNSEARCHDIR"
                )
        object.__setattr__(self, "directory", str(pathlib.Path(folder).resolve()))

    def synsets(self, word: str) -> frozenset[tuple[str, int]]:
        """The synsets of a word, for any part of speech, as (part of speech, byte offset in the data file)."""
        return _synsets(str(self.directory), word)

    def synonyms(self, word: str) -> frozenset[str]:
        """The single words in these synsets, spelled as in the database (`America`); empty for an unknown word."""
        return _synonyms(str(self.directory), word)

    def bases(self, word: str) -> tuple[tuple[str, str], ...]:
        """The base forms of a word in the database, as (part of speech, base form), in the order of PARTS."""
        directory = str(self.directory)
        return tuple((part, base) for part in PARTS for base in sorted(_base_forms(directory, part, word.lower())))

    def senses(self, part: str, base: str) -> tuple[tuple[str, ...], ...]:
        """The words of each synset of a base form, the most frequent sense first; `_` stands for a blank."""
        return _senses(str(self.directory), part, base)

    def num_tagged(self, part: str, base: str) -> int:
        """The number of senses of a base form that occur in the tagged texts behind the order of senses; 0 if none."""
        line = _index(str(self.directory), part).get(base)
        if line is None:
            return 0
        fields = line.split()
        return int(fields[-int(fields[1]) - 1])

    def irregular_forms(self, part: str, base: str) -> tuple[str, ...]:
        """The forms of a base form in the exception list, in alphabetical order."""
        return _irregular_forms(str(self.directory), part).get(base, ())

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the unpacked files, in the order of FILES."""
        return _fingerprint(str(self.directory))


def default_directory() -> str:
    """$WNSEARCHDIR, or else the directory of Debian's package."""
    return os.environ.get("WNSEARCHDIR") or "/usr/share/wordnet"


def _paths(directory: str | os.PathLike[str], name: str) -> tuple[pathlib.Path, pathlib.Path]:
    return pathlib.Path(directory, name), pathlib.Path(directory, f"{name}.gz")


def read_file(directory: str, name: str) -> bytes:
    """The bytes of a database file, unpacked. Raises ValueError if it cannot be read."""
    plain, packed = _paths(directory, name)
    try:
        return plain.read_bytes() if plain.is_file() else gzip.decompress(packed.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"cannot read {name} of the WordNet database in {directory}: {error}") from error


_data = functools.lru_cache(maxsize=8)(read_file)  # the data files of two databases


@functools.cache
def _fingerprint(directory: str) -> str:
    return hashlib.sha256(b"".join(read_file(directory, name) for name in FILES)).hexdigest()


@functools.lru_cache(maxsize=8)
def _index(directory: str, part: str) -> dict[str, str]:
    """Base forms and the rest of their lines; lines that begin with a space contain the licence."""
    lines = read_file(directory, f"index.{part}").decode("utf-8", "replace").split("\n")
    return dict(line.split(" ", 1) for line in lines if " " in line and line[0] != " ")


@functools.lru_cache(maxsize=8)
def _exceptions(directory: str, part: str) -> dict[str, list[str]]:
    """Irregular forms and their base forms; if a form has two lines, the second is used, as in nltk."""
    lines = read_file(directory, f"{part}.exc").decode("utf-8", "replace").split("\n")
    return {form: bases for form, *bases in (line.split() for line in lines if line.strip())}


@functools.lru_cache(maxsize=8)
def _irregular_forms(directory: str, part: str) -> dict[str, tuple[str, ...]]:
    """Base forms and their irregular forms."""
    found: dict[str, list[str]] = {}
    for form, bases in sorted(_exceptions(directory, part).items()):
        for base in bases:
            found.setdefault(base, []).append(form)
    return {base: tuple(forms) for base, forms in found.items()}


def _base_forms(directory: str, part: str, word: str) -> set[str]:
    """A lower-case word and its possible base forms, as far as the index contains them."""
    regular = [word[: -len(old)] + new for old, new in _ENDINGS[part] if word.endswith(old)]
    return {word, *_exceptions(directory, part).get(word, regular)} & _index(directory, part).keys()


@functools.lru_cache(2**18)
def _synsets(directory: str, word: str) -> frozenset[tuple[str, int]]:
    bases = ((part, base) for part in PARTS for base in _base_forms(directory, part, word.lower()))
    return frozenset((part, offset) for part, base in bases for offset in _offsets(directory, part, base))


def _offsets(directory: str, part: str, base: str) -> list[int]:
    """The offsets of the synsets of a base form in the index, the most frequent sense first."""
    # pos synset_cnt p_cnt [ptr_symbol...] sense_cnt tagsense_cnt synset_offset [synset_offset...]
    fields = _index(directory, part)[base].split()
    return [int(offset) for offset in fields[-int(fields[1]) :]]


@functools.lru_cache(2**18)
def _synonyms(directory: str, word: str) -> frozenset[str]:
    names = {name for part, offset in _synsets(directory, word) for name in _members(directory, part, offset)}
    return frozenset(name for name in names if "_" not in name)


@functools.lru_cache(2**18)
def _senses(directory: str, part: str, base: str) -> tuple[tuple[str, ...], ...]:
    if base not in _index(directory, part):
        return ()
    return tuple(tuple(_members(directory, part, offset)) for offset in _offsets(directory, part, base))


def _members(directory: str, part: str, offset: int) -> list[str]:
    """The words of the synset at `offset`, without the syntactic markers `(a)`, `(p)` and `(ip)`."""
    data = _data(directory, f"data.{part}")
    line = data[offset : data.find(b"\n", offset)].decode("utf-8", "replace")
    if line[:9] != f"{offset:08d} ":
        raise ValueError(f"data.{part} and index.{part} in {directory} are from different versions of WordNet")
    # synset_offset lex_filenum ss_type w_cnt word lex_id [word lex_id...] p_cnt ...; w_cnt is hexadecimal
    fields = line[14:].split(" ")
    return [name.partition("(")[0] for name in fields[1 : 1 + 2 * int(fields[0], 16) : 2]]
