"""Speed of `nmt-jax serve` beside translation in one process: time of one sentence, and sentences per second.

    python -m benchmarks.serve --workdir=RUN --source=FILE [--requests=2000] [--clients=64]

Both translate the lines of the file in a random order, with compiled programs in the cache on disk. `direct_…` is
what `nmt-jax translate` does after it has opened the model. The requests have one line each; every answer is compared
with the direct translation, but for the first, which is one of the page, sent as soon as the server prints its address.
After a first pass, with its figures in `first_…`, both take turns in three rounds, and the figures are medians.
"""

import argparse
import concurrent.futures
import functools
import http.client
import json
import pathlib
import random
import re
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from benchmarks import measure

ROUNDS = 3
SINGLE = 100  # requests, one after the other
PAGE = {"n_best": 5, "attention": True}  # what the page asks for
CHUNK = 512  # lines, as in `nmt-jax translate`

local = threading.local()


def ask(port: int, line: str, **options: Any) -> str:
    """Return the translation of a line; each thread keeps its connection. options: other fields of the request."""
    if not hasattr(local, "connection"):
        local.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    body = json.dumps({"lines": [line], **options}).encode()
    local.connection.request("POST", "/api/translate", body, {"Content-Type": "application/json"})
    answer = json.load(local.connection.getresponse())
    return answer["results"][0][0]["text"]


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = call()
    return time.perf_counter() - began, result


def median_ms(translate: Callable[[str], Any], lines: list[str]) -> float:
    """Return the median time of a line in the second of two passes."""
    for line in lines:
        translate(line)
    return 1000 * statistics.median(seconds(functools.partial(translate, line))[0] for line in lines)


def resident(process: int) -> float:
    """Memory of a process in MiB."""
    status = pathlib.Path(f"/proc/{process}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workdir", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=64)
    options = parser.parse_args()
    from nmt_jax.training.trained import open_translator
    from nmt_jax.workdir import Workdir

    lines = pathlib.Path(options.source).read_text(encoding="utf-8").splitlines()
    lines = random.Random(0).choices(lines, k=options.requests)
    figures: dict[str, float] = {}
    translator, params = open_translator([Workdir(options.workdir)])

    def direct(texts: list[str]) -> list[str]:
        chunks = (texts[first : first + CHUNK] for first in range(0, len(texts), CHUNK))
        return [found[0].text for chunk in chunks for found in translator.translate(params, chunk, translator.search())]

    expected = direct(lines)
    figures["direct_median_ms"] = median_ms(lambda line: direct([line]), lines[:SINGLE])

    command = [sys.executable, "-m", "nmt_jax", "serve", f"--workdir={options.workdir}", "--port=0", "--metrics=chrf"]
    begun = time.perf_counter()
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr
            port = next(int(found[1]) for line in server.stderr if (found := re.search(r"127\.0\.0\.1:(\d+)/", line)))
            figures["start_seconds"] = time.perf_counter() - begun
            figures["first_request_seconds"] = seconds(lambda: ask(port, lines[0], **PAGE))[0]

            def served() -> list[str]:
                # New threads have new connections: the server closes those that are idle for some seconds.
                with concurrent.futures.ThreadPoolExecutor(options.clients) as threads:
                    return list(threads.map(lambda line: ask(port, line), lines))

            taken, answers = seconds(served)
            figures["first_sentences_per_second"] = len(lines) / taken
            figures["first_memory_mib"] = resident(server.pid)
            different = sum(map(str.__ne__, answers, expected))
            rates: dict[str, list[float]] = {"direct_sentences_per_second": [], "sentences_per_second": []}
            for _ in range(ROUNDS):
                for name, translate in zip(rates, (lambda: direct(lines), served), strict=True):
                    taken, answers = seconds(translate)
                    rates[name].append(len(lines) / taken)
                    different += sum(map(str.__ne__, answers, expected))
            figures |= {name: statistics.median(values) for name, values in rates.items()}
            ratios = (one / other for other, one in zip(*rates.values(), strict=True))
            figures |= {"ratio": statistics.median(ratios), "different": different}
            figures["memory_mib"] = resident(server.pid)
            del local.connection  # idle since the first request
            figures["median_ms"] = median_ms(lambda line: ask(port, line), lines[:SINGLE])
        finally:
            server.terminate()
    measure.report(benchmark="serve", requests=len(lines), clients=options.clients, **figures)


if __name__ == "__main__":
    main()
