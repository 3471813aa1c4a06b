"""Where parallel text comes from: text files, a prepared TFDS data set, or the embedded grammar.

Every corpus is a stream of (source, target) strings that can be read again and again, is never held in memory as a
whole, and has a fingerprint of its content. Several sources are one string (`sources.join`). Nothing is downloaded.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import pathlib
from collections.abc import Iterator
from typing import Any, Protocol

import tensorflow_datasets as tfds

from nmt_jax.data import grammar
from nmt_jax.data.lines import find, read_lines
from nmt_jax.data.readers import sources
from nmt_jax.errors import UserError

KINDS = ("grammar", "text", "tfds")
SPLITS = ("train", "dev", "test")
HELD_OUT = 1000  # dev and test pairs of the embedded grammar
_CHUNK = 1024  # records read at a time from a TFDS data set


class Corpus(Protocol):
    """Parallel text: iterating gives (source, target) pairs in a fixed order, each time from the start."""

    @property
    def name(self) -> str:
        """What people call it."""

    def __iter__(self) -> Iterator[tuple[str, str]]: ...

    def fingerprint(self) -> str:
        """SHA-256 of the content."""


def open_text(data: Any, split: str) -> Corpus:
    """The split ("train", "dev" or "test") of the corpus that `config.data` describes.

    Raises UserError at once where the files are missing, and while reading where their content is at fault.
    """
    if split not in SPLITS:
        raise ValueError(f"split {split!r} is not one of {', '.join(SPLITS)}")
    languages = sources.languages(data.source)
    if data.corpus == "grammar":
        if len(languages) > 1:
            raise UserError(f"config.data.source: the embedded grammar has one source, not {data.source!r}")
        return GrammarCorpus(split, data.size if split == "train" else HELD_OUT)
    if data.corpus not in KINDS:
        raise UserError(f"config.data.corpus: {data.corpus!r} is not one of {', '.join(KINDS)}")
    if not data.directory:
        raise UserError(f"config.data.directory: name the folder that holds the {data.corpus} corpus")
    directory = pathlib.Path(data.directory).expanduser()
    if data.corpus == "text":
        base = directory / data[split]
        return TextCorpus(tuple(find(f"{base}.{language}") for language in languages), find(f"{base}.{data.target}"))
    return TfdsCorpus(find_prepared(directory, data.name), data[split], tuple(languages), data.target)


# Text files


@dataclasses.dataclass(frozen=True)
class TextCorpus:
    """Files, line n of the target the translation of line n of each source."""

    sources: tuple[pathlib.Path, ...]
    target: pathlib.Path

    @property
    def paths(self) -> list[pathlib.Path]:
        """Sources and target."""
        return [*self.sources, self.target]

    @property
    def name(self) -> str:
        """All paths."""
        return ", ".join(map(str, self.paths))

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Raises UserError, naming all files and their counts, where one has more lines than another."""
        files = [read_lines(path) for path in self.paths]
        for number, lines in enumerate(itertools.zip_longest(*files), start=1):
            if None in lines:
                rests = [sum(1 for _ in file) for file in files]
                counts = [number - (line is None) + rest for line, rest in zip(lines, rests, strict=True)]
                first, *others = (f"{path} has {count}" for path, count in zip(self.paths, counts, strict=True))
                raise UserError(
                    f"{self.paths[counts.index(max(counts))]}:{number}: no partner for this line: "
                    f"{' and '.join([first + ' lines', *others])}; parallel files need the same number"
                )
            yield sources.join(lines[:-1]), lines[-1]

    def fingerprint(self) -> str:
        """SHA-256 of all files as they lie on the disk."""
        return _hash_files(self.paths)


def _hash_files(paths: list[pathlib.Path]) -> str:
    whole = hashlib.sha256()
    for path in paths:
        try:
            with open(path, "rb") as file:
                whole.update(hashlib.file_digest(file, "sha256").digest())
        except OSError as error:
            raise UserError(f"{path}: cannot read it: {error.strerror}") from error
    return whole.hexdigest()


# TensorFlow Datasets, without TensorFlow


def find_prepared(directory: pathlib.Path, name: str) -> pathlib.Path:
    """The folder of the newest version of TFDS data set `name` (builder/config[/version]) in a TFDS data_dir.

    Raises UserError, with the command that prepares it, where it is not there as ArrayRecord.
    """
    if not name:
        raise UserError("config.data.name: name the TFDS data set, for example wmt14_translate/de-en")
    folder = directory / name
    if not (folder / "dataset_info.json").exists():
        versions = [path.parent for path in folder.glob("*/dataset_info.json") if _version(path.parent) is not None]
        folder = max(versions, key=lambda path: _version(path) or (), default=folder)
    if not any(folder.glob("*array_record*")):
        raise UserError(
            f"{directory / name}: not prepared here as ArrayRecord; prepare it (this downloads it) with: "
            'python -c "import tensorflow_datasets as tfds, tensorflow_datasets.translate; '
            f"tfds.builder('{name}', data_dir='{directory}', file_format='array_record').download_and_prepare()\""
        )
    return folder


def _version(folder: pathlib.Path) -> tuple[int, ...] | None:
    parts = folder.name.split(".")
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else None


@dataclasses.dataclass(frozen=True)
class TfdsCorpus:
    """A split of a TFDS data set whose features are one text per language, prepared as ArrayRecord in `folder`."""

    folder: pathlib.Path
    split: str
    sources: tuple[str, ...]
    target: str

    @property
    def name(self) -> str:
        """Folder and split."""
        return f"{self.folder} {self.split}"

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Raises UserError where the data set lacks the split or a language."""
        builder = self._builder()
        records = builder.as_data_source(self.split)
        for start in range(0, len(records), _CHUNK):
            for record in records.__getitems__(range(start, min(start + _CHUNK, len(records)))):
                texts = [record[language].decode("utf-8") for language in (*self.sources, self.target)]
                yield sources.join(texts[:-1]), texts[-1]

    def _builder(self) -> tfds.core.DatasetBuilder:
        builder = tfds.builder_from_directory(self.folder)
        if self.split not in builder.info.splits:
            raise UserError(f"{self.folder}: no split {self.split!r}; it has {', '.join(sorted(builder.info.splits))}")
        languages = sorted(builder.info.features)
        for language in (*self.sources, self.target):
            if language not in languages:
                raise UserError(f"{self.folder}: no language {language!r}; it has {', '.join(languages)}")
        return builder

    def fingerprint(self) -> str:
        """SHA-256 of the files of the split and the languages."""
        files = [pathlib.Path(path) for path in self._builder().info.splits[self.split].filepaths]
        languages = " ".join((*self.sources, self.target))
        return hashlib.sha256(f"{_hash_files(files)} {languages}".encode()).hexdigest()


# The embedded grammar


@dataclasses.dataclass(frozen=True)
class GrammarCorpus:
    """`size` English-German pairs of the embedded grammar."""

    split: str
    size: int

    @property
    def name(self) -> str:
        """The grammar and the split."""
        return f"embedded grammar {self.split}"

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return grammar.pairs(self.split, self.size)

    def fingerprint(self) -> str:
        """SHA-256 of the pairs."""
        whole = hashlib.sha256()
        for source, target in self:
            whole.update(f"{source}\t{target}\n".encode())
        return whole.hexdigest()
