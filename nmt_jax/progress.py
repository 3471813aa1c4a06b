"""A count on stderr, on a terminal, of what takes a while."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

import rich.console
import rich.progress

T = TypeVar("T")

SECONDS = 0.1  # between two updates
PATIENCE = 1.0  # seconds before a count is worth showing


def track(items: Iterable[T], what: str, total: int | None = None, each: int = 1) -> Iterator[T]:
    """The items, counted on a terminal while they come; with the time left if there is a `total` of them.

    each: how many of what is counted an item stands for.
    """
    if not sys.stderr.isatty():
        yield from items
        return
    columns = ["{task.description}", "{task.completed:,.0f}", "{task.fields[rate]}"]
    bar = [rich.progress.BarColumn(), rich.progress.TimeRemainingColumn()] if total else []
    console = rich.console.Console(stderr=True)
    with rich.progress.Progress(*columns, *bar, console=console, transient=True) as progress:
        task = progress.add_task(what, total=total, rate="", visible=False)
        began = shown = time.monotonic()
        for count, item in enumerate(items, start=1):
            yield item
            if (now := time.monotonic()) - shown > SECONDS:
                done = min(count * each, total) if total else count * each
                rate = f"{done / (now - began):,.0f}/s"
                progress.update(task, completed=done, rate=rate, visible=now - began > PATIENCE)
                shown = now
