"""The boundary between the program and its process: standard streams, exit codes of errors, logs of libraries."""

import contextlib
import gc
import io
import logging
import os
import pathlib
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from typing import Any

from nmt_jax import interrupts
from nmt_jax.errors import explain, one_line

USAGE_ERROR = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells count
BROKEN_PIPE = 141  # 128 + SIGPIPE
LOG = "nmt_jax.log"
MANY = 100_000  # new objects between two collections; by default 700, which slows down imports of many modules
PACKAGES = tuple(str(pathlib.Path(__file__).parent.parent / name) for name in ("nmt_jax", "metrics_jax"))


def run(program: Callable[[], int]) -> int:
    """Call `program` and return the exit code; an error that a user can cause is printed as one line.

    0: success. 2: invalid input. 128 + signal: interrupted. 141: nothing reads the output. An error of the program
    itself is raised.
    """
    try:
        code = program()
        sys.stdout.flush()
        return code
    except interrupts.Interrupted as interrupted:  # what was saved is already on stderr
        return 128 + interrupted.signal
    except KeyboardInterrupt:
        interrupts.end()
        print("nmt-jax: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # `nmt-jax … | head`
        return BROKEN_PIPE
    except Exception as error:
        if (message := explain(error)) is None:
            raise
        _flush_or_discard()  # the error comes after the output
        if HANDLER.verbose:
            traceback.print_exception(error)
        print(f"nmt-jax: error: {message}", file=sys.stderr)
        return USAGE_ERROR
    finally:
        _flush_or_discard()
        interrupts.end()


def _flush_or_discard() -> None:
    """Write what is left for stdout; discard it if this fails, since the interpreter tries once more at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# The process


def start_process() -> None:
    """Prepare a process that runs nothing but the program: signals, streams, locale, logs of libraries, and memory."""
    if sys.getfilesystemencoding() != "utf-8":  # arguments, names and texts are UTF-8 in every locale
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
    open_streams()  # first, since it reserves descriptors
    interrupts.start()
    log_libraries()
    gc.set_threshold(MANY)


def log_libraries() -> None:
    """Send logs, warnings and background exceptions of libraries to the log."""
    logging.root.addHandler(HANDLER)
    warnings.showwarning = _show_warning
    threading.excepthook = _log_thread
    sys.unraisablehook = _log_unraisable


def open_streams() -> None:
    """Open the standard streams as UTF-8, whatever the locale, with their names in errors.

    The descriptor of a closed stream is reserved, so that no other file gets its number. Using a closed stdin or stdout
    raises OSError; what is written to a closed stderr is lost.
    """
    for descriptor, mode in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, mode)  # gets the lowest free number, which is `descriptor`
    stdin, stdout, stderr = _Stream(0, "r", "stdin"), _Stream(1, "w", "stdout"), _Stderr(2, "w", "stderr")
    interactive = stdout.isatty()
    sys.stdin = io.TextIOWrapper(io.BufferedReader(stdin), "utf-8")
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(stdout), "utf-8", "surrogateescape", line_buffering=interactive)
    sys.stderr = io.TextIOWrapper(io.BufferedWriter(stderr), "utf-8", "backslashreplace", line_buffering=True)


class _Stream(io.FileIO):
    """A standard stream; its errors have its name."""

    def __init__(self, descriptor: int, mode: str, label: str):
        super().__init__(descriptor, mode, closefd=False)
        self._label = label

    def readinto(self, buffer: Any) -> Any:
        with self._named():
            return super().readinto(buffer)

    def readall(self) -> Any:
        with self._named():
            return super().readall()

    def write(self, data: Any) -> Any:
        with self._named():
            return super().write(data)

    @contextlib.contextmanager
    def _named(self) -> Any:
        try:
            yield
        except OSError as error:
            error.filename = self._label
            raise


class _Stderr(_Stream):
    """Messages that cannot be written, because the disk is full or the terminal is gone, do not stop the program."""

    def write(self, data: Any) -> Any:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError:
            return len(data)


# Logs of libraries


class LogHandler(logging.Handler):
    """Appends records to `nmt_jax.log` in the workdir, if there is one, and to stderr if `verbose`."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        self.folder: pathlib.Path | None = None
        self.verbose = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; what cannot be written is lost."""
        with contextlib.suppress(Exception):
            text = self.format(record) + "\n"
            if self.verbose:
                sys.stderr.write(text)
            if self.folder and self.folder.is_dir():
                with open(self.folder / LOG, "a", encoding="utf-8", errors="backslashreplace") as file:
                    file.write(text)


HANDLER = LogHandler()


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any, **__: Any
) -> None:
    """Print a warning of our own code; log one of a library."""
    if filename.startswith(PACKAGES):
        sys.stderr.write(format_warning(message))
    else:
        logging.getLogger(category.__name__).warning("%s:%d: %s", filename, lineno, message)


def format_warning(message: Warning | str, *_: object, **__: object) -> str:
    """Format a warning without its place in the code."""
    return f"nmt-jax: warning: {one_line(str(message))}\n"


def _log_thread(failed: threading.ExceptHookArgs) -> None:
    """Log the traceback of a thread."""
    if failed.exc_value is not None:
        logging.getLogger("threading").error("exception in a thread", exc_info=failed.exc_value)


def _log_unraisable(failed: Any) -> None:
    """Log an error in a destructor or a callback; Ctrl-C during one ends the process, since it would be forgotten."""
    if isinstance(failed.exc_value, KeyboardInterrupt):
        interrupts.leave(signal.SIGINT)
    where = f"{failed.err_msg or 'exception ignored in'} {failed.object!r}"
    logging.getLogger("unraisable").error(where, exc_info=failed.exc_value)
