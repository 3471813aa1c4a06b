"""A progress display on stderr, shown on terminals only."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

import rich.console
import rich.progress

T = TypeVar("T")

INTERVAL = 0.1  # seconds between two updates
DELAY = 1.0  # seconds before the display appears


def track(items: Iterable[T], description: str, total: int | None = None, each: int = 1) -> Iterator[T]:
    """Yields the items and displays their count and rate, and the time left if `total` is given.

    Args:
      items: what to iterate over.
      description: the label of the display.
      total: the final count, if known.
      each: how much one item adds to the count, for example the lines of a batch.
    """
    if not sys.stderr.isatty():
        yield from items
        return
    columns = ["{task.description}", "{task.completed:,.0f}", "{task.fields[rate]}"]
    bar = [rich.progress.BarColumn(), rich.progress.TimeRemainingColumn()] if total else []
    console = rich.console.Console(stderr=True)
    with rich.progress.Progress(*columns, *bar, console=console, transient=True) as progress:
        task = progress.add_task(description, total=total, rate="", visible=False)
        began = shown = time.monotonic()
        for count, item in enumerate(items, start=1):
            yield item
            if (now := time.monotonic()) - shown > INTERVAL:
                done = min(count * each, total) if total else count * each
                rate = f"{done / (now - began):,.0f}/s"
                progress.update(task, completed=done, rate=rate, visible=now - began > DELAY)
                shown = now
