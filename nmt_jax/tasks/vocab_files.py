"""Files below `vocab/` of a workdir: made when training starts, and read from then on; and files of word vectors."""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import sentencepiece
from ml_collections import ConfigDict

from metrics_jax.embedding.vectors import Vectors
from nmt_jax.data.prepared.cache import cached_file
from nmt_jax.data.readers.labelled import open_labelled
from nmt_jax.data.vocabulary.vocab import Vocab
from nmt_jax.data.vocabulary.words import Words
from nmt_jax.errors import UserError
from nmt_jax.storage.files import whole_file

VOCAB_FORMAT = 2  # increase it whenever equal texts and settings give another vocabulary


def write_text(path: Path, text: str) -> None:
    """Write a file as a whole or not at all; several processes may write it at the same time."""
    with whole_file(path) as file:
        file.write(text.encode())


def load_or_make(path: Path, make: Callable[[], Any]) -> Any:
    """Return the content of the JSON file `path`, which is first written with the result of `make` if missing."""
    if not path.exists():
        write_text(path, json.dumps(make(), ensure_ascii=False) + "\n")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: damaged ({error}); restore it from a copy of the workdir") from None


def load_or_train_vocab(
    path: Path,
    model: str,
    settings: ConfigDict,
    texts: Callable[[], Iterable[str]],
    cache: tuple[Path, Callable[[], Sequence[Any]]] | None = None,
) -> Vocab:
    """Return the vocabulary in `path`; if missing, copied from `model`, or trained as `config.vocab` says.

    cache: a folder of prepared data, and what identifies `texts`; a vocabulary trained on them before is taken from it.
    """
    if path.exists():
        return Vocab.load(path)
    names = ("size", "algorithm", "byte_fallback", "sample_lines")
    options = {name: settings[name] for name in names if name in settings}  # workdirs of older versions lack the last
    if settings.get("symbols"):  # else the name in the cache is that of older versions
        options["symbols"] = list(settings.symbols)

    def train(file: BinaryIO) -> None:
        file.write(Vocab.train(texts(), **options).model)

    if model:
        vocab = Vocab.load(model)
    elif cache:
        folder, identity = cache
        key = [VOCAB_FORMAT, sentencepiece.__version__, options, *identity()]
        vocab = Vocab.load(cached_file(folder, "vocab", key, ".model", train))
    else:
        vocab = Vocab.train(texts(), **options)
    vocab.save(path)
    return Vocab.load(path)


def load_vectors(data: ConfigDict) -> Vectors:
    """Return the word vectors of the file `data.vectors`; raises UserError if it is damaged. data: `config.data`."""
    try:
        return Vectors.load(data.vectors)
    except ValueError as error:
        raise UserError(f"config.data.vectors: {error}") from None


def load_or_count_words(path: Path, settings: ConfigDict, texts: Callable[[], Iterable[Iterable[str]]]) -> Words:
    """Return the words in `path`; if missing, those of `texts()`, counted. settings: `config.vocab`."""
    if not path.exists():
        Words.count(texts(), min_count=settings.min_count, size=settings.size).save(path)
    return Words.load(path)


def load_or_collect_labels(path: Path, data: ConfigDict) -> list[str]:
    """Return the labels in `path`; if missing, those of the training texts, sorted.

    Numbers are sorted as numbers. The position of a label is its number. Raises UserError if all texts have one label.
    data: `config.data`.
    """

    def collect() -> list[str]:
        labels = {item.label for item in open_labelled(data, "train")}
        if len(labels) < 2:
            raise UserError(f"config.data.label={data.label!r}: all training texts have the same label")
        return sorted(labels, key=int if all(label.isdecimal() for label in labels) else None)

    return load_or_make(path, collect)
