"""Counters in the text format of Prometheus."""

import os
import pathlib
import resource
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)  # seconds of requests


class Requests:
    """The answers by path and status, and a histogram of the seconds they took by path."""

    def __init__(self) -> None:
        self.answers: Counter[tuple[str, int]] = Counter()
        self._buckets: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()

    def count(self, path: str, status: int, seconds: float) -> None:
        """Count an answer; status 0: the client went before it."""
        self.answers[path, status] += 1
        buckets = self._buckets.setdefault(path, [0] * (len(BOUNDS) + 1))
        buckets[sum(seconds > bound for bound in BOUNDS)] += 1
        self._seconds[path] += seconds  # type: ignore[assignment]

    def rows(self) -> Iterator[str]:
        """The lines of both metrics."""
        answers = {
            f'path="{path}",status="{status}"': float(count) for (path, status), count in sorted(self.answers.items())
        }
        yield from metric("nmt_jax_requests_total", "counter", "Answers; status 0: the client went away.", answers)
        name = "nmt_jax_request_duration_seconds"
        yield from _head(name, "histogram", "Time from the head of a request to the end of its answer.")
        for path, buckets in sorted(self._buckets.items()):
            total = 0
            for bound, count in zip((*BOUNDS, "+Inf"), buckets, strict=True):
                total += count
                yield f'{name}_bucket{{path="{path}",le="{bound}"}} {total}'
            yield f'{name}_sum{{path="{path}"}} {self._seconds[path]:.6f}'
            yield f'{name}_count{{path="{path}"}} {total}'


def metric(name: str, kind: str, meaning: str, values: Mapping[str, float]) -> Iterator[str]:
    """The lines of a metric with its values by labels, "" for none."""
    yield from _head(name, kind, meaning)
    for labels, value in values.items():
        yield f"{name}{{{labels}}} {value:.15g}" if labels else f"{name} {value:.15g}"


def process() -> Iterator[str]:
    """The lines about memory, time and files of this process, those that Linux tells."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = used.ru_utime + used.ru_stime
    yield from metric("process_cpu_seconds_total", "counter", "CPU time of the process.", {"": seconds})
    try:
        fields = pathlib.Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        uptime = float(pathlib.Path("/proc/uptime").read_text().split()[0])
        files = len(list(pathlib.Path("/proc/self/fd").iterdir()))
        ticks = os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return
    start = time.time() - uptime + int(fields[19]) / ticks
    memory = int(fields[21]) * resource.getpagesize()
    yield from metric("process_start_time_seconds", "gauge", "Start of the process since the epoch.", {"": start})
    yield from metric("process_resident_memory_bytes", "gauge", "Resident memory.", {"": memory})
    yield from metric("process_virtual_memory_bytes", "gauge", "Virtual memory.", {"": int(fields[20])})
    yield from metric("process_open_fds", "gauge", "Open files and connections.", {"": files})


def text(parts: Iterable[Iterable[str]]) -> str:
    """The text of metrics."""
    return "".join(f"{row}\n" for part in parts for row in part)


def _head(name: str, kind: str, meaning: str) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"
