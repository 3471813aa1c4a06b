"""Apache Beam as the engine that prepares corpora: on all cores of this machine, or on a cluster.

Elements are large, such as a slice of 131,072 pairs, so that Beam's time per element does not matter. Results are
files: workers must see the files of the corpus and the cache under the same paths.
"""

import contextlib
import functools
import importlib.util
import io
import pathlib
import queue
import shlex
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from nmt_jax.data.prepared.engine import this_process
from nmt_jax.errors import UserError, did_you_mean, explain, one_line
from nmt_jax.storage.files import whole_file

RUNNERS = ("direct", "spark", "flink", "dataflow")
DEFAULTS = {"direct": ("direct_num_workers=0",)}  # 0: one per core
DIED = "subprocess exited with return code"  # the exception of the thread that waits for a worker process
LONGEST = 320  # characters of a message of Beam
MISSING = "--runner={}: Apache Beam is not installed: pip install 'nmt-jax[beam]'"


class BeamEngine:
    """Works on items in a Beam pipeline of its own for each call."""

    def __init__(self, runner: str, options: Sequence[str] = ()) -> None:
        """The runner is one of RUNNERS, and its options are `NAME=VALUE`.

        Raises UserError if Beam is not installed, or an option is unknown or has an invalid value.
        """
        if importlib.util.find_spec("apache_beam") is None:
            raise UserError(MISSING.format(runner))
        self.runner = runner
        self.options = _parse_options([*DEFAULTS.get(runner, ()), *options])
        self._pipeline()  # it is checked before anything is read

    def __call__(self, work: Callable[[Any], None], items: Sequence[Any], folder: pathlib.Path) -> None:
        """See `Engine`. Raises UserError if a cluster fails."""
        if len(items) < 2:
            this_process(work, items, folder)
            return
        import apache_beam

        pipeline = self._pipeline()
        numbered = pipeline | "items" >> apache_beam.Create(list(enumerate(items)))
        spread = numbered | "spread" >> apache_beam.Reshuffle()
        _ = spread | "work" >> apache_beam.Map(functools.partial(_work_on, work, folder))
        if self.runner == "direct":
            _run_with_workers(pipeline)
        else:
            self._run_on_cluster(pipeline)
        for note in sorted(folder.glob("error-*")):
            raise UserError(note.read_text())

    def _pipeline(self) -> Any:
        """A new pipeline. Raises UserError if the runner needs other options."""
        import apache_beam

        try:
            return apache_beam.Pipeline(runner=_make_runner(self.runner), options=self.options)
        except (ImportError, ValueError) as error:
            raise self._failure(error) from error

    def _run_on_cluster(self, pipeline: Any) -> None:
        try:
            pipeline.run().wait_until_finish()
        except Exception as error:  # Beam raises many types
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> UserError:
        reason = one_line(str(error))[:LONGEST] or type(error).__name__
        return UserError(
            f"--runner={self.runner}: {reason}; see --verbose, and Beam's documentation of --runner_option"
        )


def _run_with_workers(pipeline: Any) -> None:
    """Runs a pipeline on processes of this machine. Raises UserError if one dies; Beam would wait for it forever."""
    ends: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()

    def run() -> None:
        try:
            pipeline.run().wait_until_finish()
        except BaseException as error:
            ends.put(error)
        else:
            ends.put(None)

    previous = threading.excepthook

    def report(arguments: threading.ExceptHookArgs) -> None:
        reason = str(arguments.exc_value)
        if DIED not in reason:
            previous(arguments)
            return
        advice = "use fewer, such as --runner_option=direct_num_workers=1"
        ends.put(UserError(f"--runner=direct: {reason}, perhaps for lack of memory: {advice}"))

    threading.excepthook = report
    try:
        threading.Thread(target=run, daemon=True).start()
        if error := ends.get():
            raise error
    finally:
        threading.excepthook = previous


def _work_on(work: Callable[[Any], None], folder: pathlib.Path, numbered: tuple[int, Any]) -> None:
    """Works on an item; leaves a note if a UserError is raised, since the engine would raise another exception."""
    number, item = numbered
    name = f"error-{number:06d}"
    if any(error.name < name for error in folder.glob("error-*")):
        return  # that one will be raised
    try:
        work(item)
    except Exception as error:
        line = explain(error)
        if line is None:
            raise
        with whole_file(folder / name) as file:
            file.write(line.encode())


def _parse_options(options: Sequence[str]) -> Any:
    """The options as Beam's. Raises UserError if one is unknown or invalid."""
    from apache_beam.options.pipeline_options import PipelineOptions

    known = PipelineOptions([]).get_all_options()
    for option in options:
        name, equals, _ = option.partition("=")
        if not equals:
            raise UserError(f"--runner_option={option}: expected NAME=VALUE")
        if name not in known:
            raise UserError(f"--runner_option={option}: not an option of Apache Beam{did_you_mean(name, known)}")
    parsed = PipelineOptions([f"--{option}" for option in options])
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            parsed.get_all_options()
    except SystemExit:
        raise UserError(f"--runner_option: {one_line(complaint.getvalue()).rpartition('error: ')[2]}") from None
    return parsed


def _make_runner(name: str) -> Any:
    """Beam's runner; of `direct`, the one in Python with processes, not the one that Beam downloads."""
    from apache_beam.runners.portability.fn_api_runner import FnApiRunner
    from apache_beam.runners.runner import create_runner
    from apache_beam.transforms.environments import SubprocessSDKEnvironment

    if name == "direct":
        command = f"exec {shlex.quote(sys.executable)} -m nmt_jax.data.prepared.beam_worker"
        return FnApiRunner(default_environment=SubprocessSDKEnvironment.from_command_string(command))
    return create_runner(name)
