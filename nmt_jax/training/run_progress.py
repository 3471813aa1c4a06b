"""What the user sees of a training run on stderr: a table, then a live bar on a terminal or plain lines elsewhere."""

import datetime
import math
import sys
import time
from collections.abc import Mapping, Sequence
from types import TracebackType

import jax
import rich.box
import rich.console
import rich.progress
import rich.table
import rich.text

LINE_SECONDS = 10.0  # between two plain lines, so that the log of a long batch job stays readable


def print_table(rows: Sequence[tuple[str, str]]) -> None:
    """What the run will do, one (name, value) a row."""
    if jax.process_index():
        return
    if not sys.stderr.isatty():
        print("\n".join(f"{name}: {value}" for name, value in rows), file=sys.stderr, flush=True)
        return
    table = rich.table.Table(box=rich.box.SIMPLE, show_header=False)
    table.add_column(style="bold")
    table.add_column()
    for name, value in rows:
        table.add_row(name, rich.text.Text(value))  # Text: square brackets are no markup here
    rich.console.Console(stderr=True).print(table)


class Progress:
    """Step, loss, dev metric, speed and time left of a run, from `start` to `steps`."""

    def __init__(self, steps: int, start: int, dev_metric: str, seconds_left: float = math.inf):
        """`seconds_left`: the time limit of the run, where that may come before `steps`."""
        self._steps, self._start, self._dev_metric, self._limit = steps, start, dev_metric, seconds_left
        self._began = self._line = time.monotonic()
        self._loss = self._dev = self._left = ""
        self._quiet = jax.process_index() > 0
        self._bar: rich.progress.Progress | None = None
        if sys.stderr.isatty() and not self._quiet:
            columns = ("{task.percentage:>3.0f}%", rich.progress.BarColumn(bar_width=None), "{task.fields[text]}")
            self._bar = rich.progress.Progress(*columns, console=rich.console.Console(stderr=True), expand=True)
            self._task = self._bar.add_task("", total=steps, completed=start, text="compiling")

    def __enter__(self) -> "Progress":
        if self._bar:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar.stop()

    def begin(self) -> None:
        """Start the clock of the time left: what came before (compiling) is not repeated."""
        self._began = time.monotonic()

    def update(self, step: int, loss: float, speed: str) -> None:
        """Show a step; on no terminal one line every ten seconds."""
        self._loss = f"  loss {loss:.4f}"
        self._left = f"  {speed}  {self._time_left(step)} left"
        if self._bar:
            self._show(step)
        elif time.monotonic() - self._line >= LINE_SECONDS:
            self._say(self._text(step))

    def evaluated(self, step: int, metrics: Mapping[str, float], improved: bool) -> None:
        """Show the result of an evaluation."""
        values = "  ".join(f"{name} {value:.4g}" for name, value in metrics.items())
        if self._dev_metric in metrics:
            self._dev = f"  {self._dev_metric} {metrics[self._dev_metric]:.4g}"
        self._say(f"step {step}/{self._steps}  {values}{'  (best so far)' if improved else ''}")
        self._show(step)

    def note(self, text: str) -> None:
        """One line, above the bar where there is one."""
        self._say(text)

    def _text(self, step: int) -> str:
        return f"step {step}/{self._steps}{self._loss}{self._dev}{self._left}"

    def _show(self, step: int) -> None:
        if self._bar:
            self._bar.update(self._task, completed=step, text=self._text(step))

    def _say(self, text: str) -> None:
        if self._quiet:
            return
        self._line = time.monotonic()
        if self._bar:
            self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            print(text, file=sys.stderr, flush=True)

    def _time_left(self, step: int) -> str:
        elapsed = time.monotonic() - self._began
        seconds = min(elapsed * (self._steps - step) / max(step - self._start, 1), max(self._limit - elapsed, 0.0))
        return str(datetime.timedelta(seconds=round(seconds)))
