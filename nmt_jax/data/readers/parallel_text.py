"""Parallel text: text files, a prepared TFDS data set, VQA, or the embedded grammar, scenes or speech.

The source of a text file may name a file per line instead, such as an array of features (`PathCorpus`).

Every corpus is a stream of (source, target) strings that can be read repeatedly, is never held in memory as a whole,
and has a fingerprint of its content. Several sources are joined into one string (`sources.join`). Nothing is
downloaded.
"""

from __future__ import annotations

import dataclasses
import functools
import gzip
import hashlib
import pathlib
import shutil
import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from nmt_jax.data import grammar, scenes, speech
from nmt_jax.data.lines import find, parallel_lines, sha256_of
from nmt_jax.data.readers import sources
from nmt_jax.data.readers.audio import SPEECH, utterance_name
from nmt_jax.data.readers.images import SCENES, scene_name
from nmt_jax.data.readers.rows import TEXT
from nmt_jax.data.readers.slices import Slice, bounds, text_slices, written_slices
from nmt_jax.data.readers.splits import FingerprintedCorpus, GrammarSplit, corpus_folder
from nmt_jax.data.readers.visual_questions import VQA, VisualQuestions
from nmt_jax.errors import UserError
from nmt_jax.storage.paths import is_remote, path_of

if TYPE_CHECKING:
    import tensorflow_datasets as tfds

KINDS = ("grammar", "text", "tfds", VQA, SCENES, SPEECH)
SYNTHETIC = "synthetic"  # the split of additional training pairs, in text files
HELD_OUT = 1000  # dev and test pairs of the embedded grammar and scenes
HELD_OUT_SPEECH = 500  # utterances, or as many as there are for training
_CHUNK = 1024  # records read at a time from a TFDS data set


class ParallelText(FingerprintedCorpus[tuple[str, str]], Protocol):
    """(source, target) pairs, all of them or in slices."""

    def slices(self, size: int, scratch: pathlib.Path) -> Sequence[Slice]:
        """The corpus in slices of `size` pairs, in order; the last may be shorter.

        scratch: a folder for copies of text that cannot be read from the middle. It must exist as long as the slices.
        Raises UserError as iterating over the corpus does, but perhaps earlier.
        """


def open_text(data: Any, split: str) -> ParallelText:
    """The split ("train", "dev" or "test") of the parallel corpus that `config.data` describes, or "synthetic".

    Raises UserError immediately if files are missing, and while reading if their content is invalid.
    """
    languages, kinds = sources.languages(data.source), sources.kinds(data)
    if split == SYNTHETIC:
        return _text(path_of(data.synthetic).expanduser(), languages, data.target, kinds)
    if data.corpus == SCENES:
        texts = tuple(language if kind == TEXT else "" for language, kind in zip(languages, kinds, strict=True))
        return SceneCorpus(split, data.size if split == "train" else HELD_OUT, texts, data.target, data.name)
    if data.corpus == SPEECH:
        return SpeechCorpus(split, data.size if split == "train" else min(data.size, HELD_OUT_SPEECH))
    directory = corpus_folder(data, split, KINDS, f"the {data.corpus} corpus")
    if directory is None:
        if len(languages) > 1:
            raise UserError(f"config.data.source: the embedded grammar has one source language, not {data.source!r}")
        return GrammarCorpus.of(data, split, HELD_OUT, data.source == "de")
    if data.corpus == "text":
        return _text(directory / data[split], languages, data.target, kinds)
    if data.corpus == VQA:
        return VisualQuestions(directory, data[split])
    return TfdsCorpus(find_prepared(directory, data.name), data[split], tuple(languages), data.target)


def _text(prefix: pathlib.Path, languages: Sequence[str], target: str, kinds: Sequence[str]) -> TextCorpus:
    files = tuple(find(f"{prefix}.{language}") for language in languages), find(f"{prefix}.{target}")
    named = tuple(kind != TEXT for kind in kinds)
    return PathCorpus(*files, named) if any(named) else TextCorpus(*files)


@dataclasses.dataclass(frozen=True)
class TextCorpus:
    """Text files; line n of the target translates line n of each source."""

    sources: tuple[pathlib.Path, ...]
    target: pathlib.Path

    @property
    def paths(self) -> list[pathlib.Path]:
        """The files of the sources and of the target."""
        return [*self.sources, self.target]

    @property
    def name(self) -> str:
        return ", ".join(map(str, self.paths))

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Raises UserError with the line counts of all files if they differ."""
        for lines in parallel_lines(self.paths):
            yield sources.join(lines[:-1]), lines[-1]

    def slices(self, size: int, scratch: pathlib.Path) -> Sequence[Slice]:
        """Compressed files are decompressed into `scratch`."""
        try:
            plain = [_decompressed(path, scratch / f"text-{number}") for number, path in enumerate(self.paths)]
            slices = text_slices(plain, [str(path) for path in self.paths], size)
        except (OSError, EOFError, zlib.error):
            self._raise_error()
            raise
        return slices or self._raise_error()

    def _raise_error(self) -> list[Slice]:
        """Raise what is wrong with the files; [] if nothing is."""
        for _ in self:
            pass
        return []

    def fingerprint(self) -> str:
        return self._fingerprint

    @functools.cached_property
    def _fingerprint(self) -> str:
        return _hash_files(self.paths)


@dataclasses.dataclass(frozen=True)
class PathCorpus(TextCorpus):
    """Text files of which some sources name a file per line; a relative path begins at the folder of the source.

    named: which sources do.
    """

    named: tuple[bool, ...]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for line, target in super().__iter__():
            texts = sources.split(line, len(self.sources))
            parts = zip(texts, self.sources, self.named, strict=True)
            yield (
                sources.join(
                    [str(path.parent / text) if names and text.strip() else text for text, path, names in parts]
                ),
                target,
            )

    def slices(self, size: int, scratch: pathlib.Path) -> Sequence[Slice]:
        """The pairs are written to `scratch` with whole paths first."""
        return written_slices(self, [str(path) for path in self.paths], size, scratch)

    @functools.cached_property
    def _fingerprint(self) -> str:
        """Of the text, and of the size and the time of change of every file it names.

        Raises UserError with the line of a file that is missing.
        """
        whole = hashlib.sha256(_hash_files(self.paths).encode())
        for number, (line, _) in enumerate(self, start=1):
            parts = zip(sources.split(line, len(self.sources)), self.sources, self.named, strict=True)
            for path, source, names in parts:
                if not names or not path.strip():
                    continue
                try:
                    status = path_of(path).stat()
                except (OSError, ValueError) as error:  # ValueError: a null character in the path
                    reason = getattr(error, "strerror", None) or error
                    raise UserError(f"{source}:{number}: {path}: {reason}") from None
                whole.update(f"{path}\t{status.st_size}\t{status.st_mtime_ns}\n".encode())
        return whole.hexdigest()


def _decompressed(path: pathlib.Path, copy: pathlib.Path) -> pathlib.Path:
    """The path of a plain file; of a compressed one, that of its decompressed copy."""
    if path.suffix != ".gz":
        return path
    with gzip.open(path, "rb") as source, copy.open("wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
    return copy


def _hash_files(paths: list[pathlib.Path]) -> str:
    return hashlib.sha256(b"".join(bytes.fromhex(sha256_of(path)) for path in paths)).hexdigest()


def find_prepared(directory: pathlib.Path, name: str) -> pathlib.Path:
    """The folder of the newest version of the TFDS data set `name` (builder/config[/version]) in a TFDS data_dir.

    Raises UserError with the command that prepares it if it does not exist in the ArrayRecord format.
    """
    if not name:
        raise UserError("config.data.name: name the TFDS data set, for example wmt14_translate/de-en")
    if is_remote(directory):
        raise UserError(f"config.data.directory={directory}: TFDS data sets are read from a local folder; copy it")
    folder = directory / name
    if not (folder / "dataset_info.json").exists():
        versions = [path.parent for path in folder.glob("*/dataset_info.json") if _version(path.parent) is not None]
        folder = max(versions, key=lambda path: _version(path) or (), default=folder)
    if not any(folder.glob("*array_record*")):
        raise UserError(
            f"{directory / name}: not prepared as ArrayRecord; prepare it (this downloads the data) with: "
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
        return f"{self.folder} {self.split}"

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Raises UserError if the data set lacks the split or a language."""
        return self.read(0, len(self))

    def __len__(self) -> int:
        return int(self._builder().info.splits[self.split].num_examples)

    def read(self, first: int, last: int) -> Iterator[tuple[str, str]]:
        """Pairs `first` to `last` - 1, counted from 0."""
        records = self._builder().as_data_source(self.split)
        for start in range(first, last, _CHUNK):
            for record in records.__getitems__(range(start, min(start + _CHUNK, last))):
                texts = [record[language].decode("utf-8") for language in (*self.sources, self.target)]
                yield sources.join(texts[:-1]), texts[-1]

    def slices(self, size: int, scratch: pathlib.Path) -> Sequence[Slice]:
        return [TfdsSlice(*bound, self) for bound in bounds(len(self), size)]

    def _builder(self) -> tfds.core.DatasetBuilder:
        import tensorflow_datasets as tfds  # takes a quarter of a second

        builder = tfds.builder_from_directory(self.folder)
        if self.split not in builder.info.splits:
            raise UserError(f"{self.folder}: no split {self.split!r}; it has {', '.join(sorted(builder.info.splits))}")
        languages = sorted(builder.info.features)
        for language in (*self.sources, self.target):
            if language not in languages:
                raise UserError(f"{self.folder}: no language {language!r}; it has {', '.join(languages)}")
        return builder

    def fingerprint(self) -> str:
        return self._fingerprint

    @functools.cached_property
    def _fingerprint(self) -> str:
        files = [pathlib.Path(path) for path in self._builder().info.splits[self.split].filepaths]
        languages = " ".join((*self.sources, self.target))
        return hashlib.sha256(f"{_hash_files(files)} {languages}".encode()).hexdigest()


@dataclasses.dataclass(frozen=True)
class TfdsSlice:
    """A slice of a TFDS data set."""

    number: int
    first: int
    count: int
    corpus: TfdsCorpus

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return self.corpus.read(self.first, self.first + self.count)


@dataclasses.dataclass(frozen=True)
class GrammarCorpus(GrammarSplit):
    """`size` English-German, or `german_first` German-English, sentence pairs of the embedded grammar."""

    german_first: bool = False

    def __iter__(self) -> Iterator[tuple[str, str]]:
        pairs = grammar.pairs(self.split, self.size)
        return ((german, english) for english, german in pairs) if self.german_first else pairs

    def slices(self, size: int, scratch: pathlib.Path) -> Sequence[Slice]:
        """The pairs are generated in order, so they are written to `scratch` first."""
        return written_slices(self, [self.name, self.name], size, scratch)

    def fingerprint(self) -> str:
        return _hash_grammar(self.split, self.size) + "-reversed" * self.german_first


@dataclasses.dataclass(frozen=True)
class SceneCorpus:
    """The first `size` embedded scenes of a split and a family: their texts beside the names of the drawings.

    sources: the name of the text of each source (`Scene.text`), "" for the name of the drawing; target: that of a text.
    """

    split: str
    size: int
    sources: tuple[str, ...]
    target: str
    family: str

    @property
    def name(self) -> str:
        return f"embedded scenes {self.split}"

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for number in range(self.size):
            scene, name = scenes.scene(self.split, number, self.family), scene_name(self.split, number, self.family)
            yield (
                sources.join([scene.text(text) if text else name for text in self.sources]),
                scene.text(self.target),
            )

    def slices(self, size: int, scratch: pathlib.Path) -> Sequence[Slice]:
        """The captions are written to `scratch` first."""
        return written_slices(self, [self.name, self.name], size, scratch)

    def fingerprint(self) -> str:
        return hashlib.sha256(f"scenes {scenes.VERSION} {self}".encode()).hexdigest()


@dataclasses.dataclass(frozen=True)
class SpeechCorpus:
    """The names of the first `size` utterances of a split of the embedded speech, and their words."""

    split: str
    size: int

    @property
    def name(self) -> str:
        return f"embedded speech {self.split}"

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for number in range(self.size):
            yield utterance_name(self.split, number), speech.utterance(self.split, number).text

    def slices(self, size: int, scratch: pathlib.Path) -> Sequence[Slice]:
        """The words are written to `scratch` first."""
        return written_slices(self, [self.name, self.name], size, scratch)

    def fingerprint(self) -> str:
        """Raises UserError without espeak-ng, whose version it contains."""
        return hashlib.sha256(f"speech {speech.VERSION} {speech.program_version()} {self}".encode()).hexdigest()


@functools.cache
def _hash_grammar(split: str, size: int) -> str:
    """The hash of generated pairs, once per process: it takes as long as writing them."""
    whole = hashlib.sha256()
    for source, target in grammar.pairs(split, size):
        whole.update(f"{source}\t{target}\n".encode())
    return whole.hexdigest()
