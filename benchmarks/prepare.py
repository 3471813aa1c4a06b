"""Preparation of a large corpus: one process against Beam's direct runner on all cores.

    python -m benchmarks.prepare FOLDER [--pairs=3000000]     # in an environment with the extra `beam`

FOLDER gets the corpus, Multi30k and the sample of OpenNMT (39,000 pairs) again and again with one other word on each
side, and two caches, which must be equal. Each preparation is a process of its own: filters, vocabulary of a sample,
token ids. Prints wall time, CPU-seconds and the largest resident memory, of the process and of its workers.
"""

import argparse
import filecmp
import functools
import importlib
import multiprocessing
import os
import pathlib
import random
import resource
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from benchmarks.measure import SHARED
from nmt_jax import config as configs
from nmt_jax.commands import prepare
from nmt_jax.data.prepared.beam_engine import BeamEngine
from nmt_jax.data.prepared.engine import Engine, this_process
from nmt_jax.data.readers.parallel_text import TextCorpus

CORPORA = ("multi30k", "opennmt_ende10k")
FILTERS = '["duplicates", "identical", "length_ratio:4", "letters:0.6"]'
SETTINGS = {"data.corpus": "text", "data.dev": "val", "vocab.size": "8000", "vocab.sample_lines": "200000"}


def read(name: str, split: str = "train") -> list[tuple[str, str]]:
    """The English-German pairs of a corpus."""
    folder = SHARED / "data" / name
    return list(TextCorpus((folder / f"{split}.en.gz",), folder / f"{split}.de.gz"))


def write_corpus(folder: pathlib.Path, count: int) -> None:
    """Writes `count` pairs, and the development pairs of Multi30k."""
    folder.mkdir(parents=True, exist_ok=True)
    pairs = [pair for name in CORPORA for pair in read(name)]
    generator = random.Random(1)
    write(folder, "train", (vary(pairs, number, generator) for number in range(count)))
    write(folder, "val", read("multi30k", "val"))


def vary(pairs: list[tuple[str, str]], number: int, generator: random.Random) -> tuple[str, ...]:
    """Pair `number`; after the last, the pairs are repeated, with another word on each side."""
    pair = pairs[number % len(pairs)]
    if number < len(pairs):
        return pair
    sides = [text.split(" ") for text in pair]
    for words, other in zip(sides, generator.choice(pairs), strict=True):
        words[generator.randrange(len(words))] = generator.choice(other.split(" "))
    return tuple(map(" ".join, sides))


def write(folder: pathlib.Path, split: str, pairs: Iterable[tuple[str, ...]]) -> None:
    """Writes a split as two files."""
    with (folder / f"{split}.en").open("w") as source, (folder / f"{split}.de").open("w") as target:
        for pair in pairs:
            source.write(f"{pair[0]}\n")
            target.write(f"{pair[1]}\n")


class Timed:
    """An engine that prints what each stage takes."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def __call__(self, work: Callable[[Any], None], items: Sequence[Any], folder: pathlib.Path) -> None:
        began, before = time.monotonic(), cpu_seconds()
        self.engine(functools.partial(work_and_note, work, folder), items, folder)
        here, workers = (after - start for after, start in zip(cpu_seconds(), before, strict=True))
        peaks = [int(path.read_text()) for path in folder.glob("peak-*")]
        print(
            f"  {len(items)} items: {time.monotonic() - began:.1f} s, CPU {here:.1f} s, of workers {workers:.1f} s; "
            f"largest process that worked {max(peaks) >> 10} MiB"
        )


def work_and_note(work: Callable[[Any], None], folder: pathlib.Path, item: Any) -> None:
    """Works, and notes the largest resident memory of this process so far; `getrusage` would count its parent's."""
    work(item)
    status = pathlib.Path("/proc/self/status").read_text()
    (folder / f"peak-{os.getpid()}").write_text(status.split("VmHWM:")[1].split()[0])


def cpu_seconds() -> list[float]:
    """Of this process, and of its workers that have ended."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return [usage.ru_utime + usage.ru_stime for usage in usages]


def measure(name: str, folder: pathlib.Path) -> None:
    """Prepares the corpus in `folder`; name: of the cache and the engine."""
    changes = {"data.directory": str(folder), "data.filters": FILTERS, "data.cache": str(folder / name)}
    config = configs.load("configs/transformer.py", SETTINGS | changes)
    began = time.monotonic()
    prepare.run(config, Timed(BeamEngine("direct") if name == "beam" else this_process))
    here, workers = cpu_seconds()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(
        f"{name}: {time.monotonic() - began:.0f} s, CPU {here:.0f} s, of workers {workers:.0f} s; at most {memory} MiB",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--pairs", type=int, default=3_000_000)
    options = parser.parse_args()
    write_corpus(options.folder, options.pairs)
    caches = [options.folder / name for name in ("process", "beam")]
    for cache in caches:
        shutil.rmtree(cache, ignore_errors=True)
        # By its full name, since workers do not know the module `__main__` of this process.
        target = importlib.import_module("benchmarks.prepare").measure
        process = multiprocessing.get_context("spawn").Process(target=target, args=(cache.name, options.folder))
        process.start()
        process.join()
    files = [[path for path in sorted(cache.rglob("*")) if path.is_file()] for cache in caches]
    names = [[str(path.relative_to(cache)) for path in found] for cache, found in zip(caches, files, strict=True)]
    equal = names[0] == names[1] and not any(filecmp.cmpfiles(*caches, names[0], shallow=False)[1:])
    print("the caches are", "equal" if equal else "NOT equal")


if __name__ == "__main__":
    main()
