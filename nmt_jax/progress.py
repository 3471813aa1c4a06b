"""Progress displays on stderr: of a loop over items, and of a training run."""

import datetime
import math
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import rich.console
    import rich.progress

T = TypeVar("T")

INTERVAL = 0.1  # seconds between two updates
DELAY = 1.0  # seconds before the display appears
LINE_SECONDS = 10.0  # between two plain lines, so that the log of a long batch job stays readable


def _console() -> "rich.console.Console":
    import rich.console  # here and below: only needed on a terminal

    return rich.console.Console(stderr=True)


def track(items: Iterable[T], description: str, total: int | None = None, each: int = 1) -> Iterator[T]:
    """Yields the items; on a terminal, displays their count and rate, and the time left if `total` is given.

    description: the label of the display. total: the final count. each: how much one item adds to the count, for
    example the lines of a batch.
    """
    if not sys.stderr.isatty():
        yield from items
        return
    import rich.progress

    columns = ["{task.description}", "{task.completed:,.0f}", "{task.fields[rate]}"]
    bar = [rich.progress.BarColumn(), rich.progress.TimeRemainingColumn()] if total else []
    with rich.progress.Progress(*columns, *bar, console=_console(), transient=True) as progress:
        task = progress.add_task(description, total=total, rate="", visible=False)
        began = shown = time.monotonic()
        for count, item in enumerate(items, start=1):
            yield item
            if (now := time.monotonic()) - shown > INTERVAL:
                done = min(count * each, total) if total else count * each
                rate = f"{done / (now - began):,.0f}/s"
                progress.update(task, completed=done, rate=rate, visible=now - began > DELAY)
                shown = now


def print_table(rows: Sequence[tuple[str, str]]) -> None:
    """Prints rows (name, value): a table on a terminal, otherwise a line per row."""
    if not sys.stderr.isatty():
        print("\n".join(f"{name}: {value}" for name, value in rows), file=sys.stderr, flush=True)
        return
    import rich.box
    import rich.table
    import rich.text

    table = rich.table.Table(box=rich.box.SIMPLE, show_header=False)
    table.add_column(style="bold")
    table.add_column()
    for name, value in rows:
        table.add_row(name, rich.text.Text(value))  # Text: square brackets are not markup here
    _console().print(table)


class RunProgress:
    """The progress of a training run: a bar on a terminal, otherwise a line every ten seconds.

    Shows step, loss, dev metric, speed and time left, from step `start` to `steps`.
    """

    def __init__(self, steps: int, start: int, dev_metric: str, seconds_left: float = math.inf, quiet: bool = False):
        """`seconds_left`: the time limit of the run, which may come before `steps`. `quiet`: print nothing."""
        self._steps, self._start, self._dev_metric, self._limit = steps, start, dev_metric, seconds_left
        self._began = self._last_line = time.monotonic()
        self._loss = self._dev = self._speed = ""
        self._quiet = quiet
        self._bar: rich.progress.Progress | None = None
        if sys.stderr.isatty() and not quiet:
            from rich.progress import BarColumn, Progress

            columns = ("{task.percentage:>3.0f}%", BarColumn(bar_width=None), "{task.fields[text]}")
            self._bar = Progress(*columns, console=_console(), expand=True)
            self._task = self._bar.add_task("", total=steps, completed=start, text="compiling")

    def __enter__(self) -> "RunProgress":
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar:
            self._bar.stop()

    def begin(self) -> None:
        """Start the clock for the time left, after compilation, which is not repeated."""
        self._began = time.monotonic()

    def update(self, step: int, loss: float, speed: str) -> None:
        """Show a training step."""
        self._loss = f"  loss {loss:.4f}"
        self._speed = f"  {speed}  {self._time_left(step)} left"
        if self._bar:
            self._show(step)
        elif time.monotonic() - self._last_line >= LINE_SECONDS:
            self.note(self._text(step))

    def evaluated(self, step: int, metrics: Mapping[str, float], improved: bool) -> None:
        """Show the result of an evaluation."""
        values = "  ".join(f"{name} {value:.4g}" for name, value in metrics.items())
        if self._dev_metric in metrics:
            self._dev = f"  {self._dev_metric} {metrics[self._dev_metric]:.4g}"
        self.note(f"step {step}/{self._steps}  {values}{'  (best so far)' if improved else ''}")
        self._show(step)

    def note(self, text: str) -> None:
        """Print a line, on a terminal above the bar."""
        if self._quiet:
            return
        self._last_line = time.monotonic()
        if self._bar:
            self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            print(text, file=sys.stderr, flush=True)

    def _text(self, step: int) -> str:
        return f"step {step}/{self._steps}{self._loss}{self._dev}{self._speed}"

    def _show(self, step: int) -> None:
        if self._bar:
            self._bar.update(self._task, completed=step, text=self._text(step))

    def _time_left(self, step: int) -> str:
        elapsed = time.monotonic() - self._began
        seconds = min(elapsed * (self._steps - step) / max(step - self._start, 1), max(self._limit - elapsed, 0.0))
        return str(datetime.timedelta(seconds=round(seconds)))
