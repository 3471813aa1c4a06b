"""Speed of translating a test set with a trained Transformer: sentences per second, from a cold start and warm.

    python -m benchmarks.translate --workdir=RUN --source=FILE --reference=FILE [--dtype=int8]
        [--peer=PYTHON [--peer_compute=int8]]

One thread, beam 5. Cold: in a new process, from reading the workdir to the last translation, with compiled programs
in the cache on disk (`cold`) and without (`coldest`). Warm: once more in the same process. The peer translates with
CTranslate2 and the model written by `nmt-jax export`, with the same search (`peer_exported.py`); its cold figure
includes loading.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from benchmarks import measure

INNER = "--inner"  # marks the measured process


def inner(workdir: str, source: str, output: str, dtype: str) -> None:
    """Translate twice and print the seconds of each pass."""
    started = time.perf_counter(), time.process_time()
    measure.one_thread()
    from nmt_jax.training.trained import open_translator
    from nmt_jax.workdir import Workdir

    lines = pathlib.Path(source).read_text(encoding="utf-8").splitlines()
    translator, params = open_translator([Workdir(pathlib.Path(workdir))], dtype=dtype)
    search = translator.search(beam_size=5)
    figures = {}
    for name in ("cold", "warm"):
        begin = started if name == "cold" else (time.perf_counter(), time.process_time())
        found = translator.translate(params, lines, search)
        figures[name] = time.perf_counter() - begin[0]
        figures[f"{name}_cpu"] = time.process_time() - begin[1]
    pathlib.Path(output).write_text("".join(f"{one[0].text}\n" for one in found), encoding="utf-8")
    print(" ".join(map(str, figures.values())))


def ours(options: argparse.Namespace, cache: str, output: str) -> list[float]:
    """Return seconds and CPU-seconds, cold and warm, of a new process."""
    command = [sys.executable, "-m", "benchmarks.translate", INNER]
    command += [options.workdir, options.source, output, options.dtype]
    environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": cache}
    finished = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return [float(value) for value in finished.stdout.split()]


def main() -> None:
    if sys.argv[1:2] == [INNER]:
        return inner(*sys.argv[2:])
    parser = argparse.ArgumentParser()
    parser.add_argument("--workdir", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--reference", required=True)
    parser.add_argument("--dtype", default="model", choices=("model", "float32", "bfloat16", "int8"))
    parser.add_argument("--peer", help="Python with ctranslate2 and sentencepiece.")
    parser.add_argument("--peer_compute", default="float32", choices=("float32", "int8"))
    options = parser.parse_args()
    from metrics_jax import BLEU

    references = pathlib.Path(options.reference).read_text(encoding="utf-8").splitlines()
    number, figures = len(references), {}
    with tempfile.TemporaryDirectory() as folder:
        output = f"{folder}/output"
        for name in ("coldest", "cold"):
            cold, cold_cpu, warm, warm_cpu = ours(options, f"{folder}/cache", output)
            figures |= {f"{name}_seconds": cold, f"{name}_cpu_seconds": cold_cpu}
        translations = pathlib.Path(output).read_text(encoding="utf-8").splitlines()
        figures |= {"sentences_per_second": number / warm, "sentences_per_cpu_second": number / warm_cpu}
        figures["bleu"] = BLEU()(translations, references).score
        if options.peer:
            exported = f"{folder}/exported"
            command = [sys.executable, "-m", "nmt_jax", "export", f"--workdir={options.workdir}"]
            subprocess.run(
                [*command, "--to=ctranslate2", f"--output={exported}"], check=True, stderr=subprocess.DEVNULL
            )
            arrays = {"folder": exported, "source": str(pathlib.Path(options.source).resolve())}
            arrays["compute"] = options.peer_compute
            peer = measure.peer(options.peer, "peer_exported.py", arrays)
            theirs = peer.pop("translations")
            same = sum(a == b for a, b in zip(theirs, translations, strict=True))
            figures["ctranslate2_bleu"] = BLEU()(theirs, references).score
            figures |= {f"ctranslate2_{key}": value for key, value in peer.items()} | {"same_translations": same}
            figures["ratio"] = figures["sentences_per_cpu_second"] / peer["sentences_per_cpu_second"]
    kinds = {"dtype": options.dtype, "peer_compute": options.peer_compute}
    measure.report(benchmark="translate", sentences=number, **kinds, **figures)
    return None


if __name__ == "__main__":
    main()
