"""The boundary of the program: closed and full streams, locales, errors of the system, logs of libraries."""

import os
import pathlib
import subprocess
import sys
from collections.abc import Callable

import pytest

from nmt_jax import __main__ as cli
from nmt_jax.commands import score
from nmt_jax.errors import UserError
from tests.conftest import ROOT


def raising(error: Exception) -> Callable[..., int]:
    """A function that raises `error`."""

    def fail(*_: object) -> int:
        raise error

    return fail


def shell(command: str, folder: pathlib.Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a shell command in which `nmt-jax` is this program."""
    program = f'nmt-jax() {{ "{sys.executable}" -m nmt_jax "$@"; }}\n'
    variables = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(
        ["bash", "-c", program + command], cwd=folder, env=variables, capture_output=True, text=True, timeout=120
    )


def test_a_closed_pipe_is_no_error():
    finished = shell("nmt-jax --help | true; echo ${PIPESTATUS[0]}")
    assert finished.stderr == ""
    assert finished.stdout in ("0\n", "141\n")  # depending on which program is first


def test_a_full_disk_behind_stdout_is_an_error():
    finished = shell("nmt-jax --help > /dev/full")
    assert finished.returncode == 2
    assert finished.stderr.startswith("nmt-jax: error: stdout: No space left on device; free some space")
    assert finished.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("ulimit -f 0; nmt-jax translate --workdir={translator} --output=lines <<< a", "lines.parts/job.json: "),
        pytest.param(
            "ulimit -f 1; nmt-jax export --workdir={translator} --to=safetensors --output=model",
            "model: cannot be written: ",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "ulimit -f 0; nmt-jax train {page} --workdir=w", "cannot write the workdir: ", marks=pytest.mark.slow
        ),
        pytest.param("ulimit -f 5; nmt-jax train {page} --workdir=w", "joint.model: ", marks=pytest.mark.slow),
        pytest.param(
            "ulimit -f 100; NMT_JAX_CACHE=$PWD nmt-jax train {page} --workdir=w",
            "Failed to finalize writing",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "(nmt-jax train {page} --workdir=v; ulimit -f 20; nmt-jax train {page} --workdir=w) 2>&1 | tail -n 1 >&2; "
            "exit ${{PIPESTATUS[0]}}",
            "cannot save step 1: ",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_full_disk_behind_a_file_is_an_error(command, words, translator_workdir, tmp_path):
    # A limit on the size of files fails where a full disk does.
    page = f"--config={ROOT}/configs/quickstart.py:smoke=true"
    finished = shell(command.format(translator=translator_workdir, page=page), tmp_path)
    assert finished.returncode == 2
    assert words in finished.stderr
    assert "File too large" in finished.stderr
    assert finished.stderr.count("nmt-jax: error: ") == 1
    assert "Traceback" not in finished.stderr


def test_a_closed_stdout_is_an_error_and_its_descriptor_is_not_used_again(tmp_path):
    (tmp_path / "x").write_text("a\n")
    finished = shell("nmt-jax score x --reference=x >&-", tmp_path)
    assert finished.returncode == 2
    assert finished.stderr.startswith("nmt-jax: error: stdout: Bad file descriptor")
    assert (tmp_path / "x").read_text() == "a\n"


def test_a_closed_stdin_is_an_error_only_if_it_is_read(tmp_path):
    (tmp_path / "x").write_text("a\n")
    assert shell("nmt-jax score x --reference=x <&-", tmp_path).returncode == 0
    finished = shell("nmt-jax score - --reference=x <&-", tmp_path)
    assert finished.returncode == 2
    assert finished.stderr.startswith("nmt-jax: error: stdin: Bad file descriptor")


@pytest.mark.parametrize("end", ["2>&-", "2>/dev/full", "<&- 2>&-"])
def test_without_stderr_the_error_is_in_the_exit_code_alone(end):
    finished = shell(f"nmt-jax trian {end}")
    assert (finished.returncode, finished.stdout, finished.stderr) == (2, "", "")


@pytest.mark.slow
@pytest.mark.parametrize("verb", cli.VERBS)
def test_every_verb_stands_closed_streams(verb, tmp_path):
    # Each with another argument; over four verbs, these are all pairs.
    for number, streams in enumerate(("<&-", ">&-", "2>&-", "<&- >&- 2>&-"), start=list(cli.VERBS).index(verb)):
        arguments = ("--help", "", "--workdir=nowhere", "nowhere")[number % 4]
        finished = shell(f"nmt-jax {verb} {arguments} {streams}", tmp_path)
        assert "Traceback" not in finished.stderr
        assert finished.stderr.count("\n") <= 1
        assert finished.returncode in ((0,) if arguments == "--help" and ">&-" not in streams else (0, 2))
        assert "nmt-jax: error" not in finished.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "POSIX"},
    ],
)
def test_text_is_utf_8_in_every_locale(settings, tmp_path):
    (tmp_path / "ä").write_text("süß – schön\n", encoding="utf-8")
    assert "–" in shell("nmt-jax --help", **settings).stdout
    finished = shell(
        "nmt-jax score ä --reference=ä --metrics=chrf; nmt-jax score ö --reference=ä", tmp_path, **settings
    )
    assert finished.stdout.startswith("ä\tchrf\t100.00\t")
    assert finished.stderr.startswith("nmt-jax: error: ö: no such file")


def test_control_characters_are_escaped(mistake):
    assert "no metric 'a\\x1b[31mb\\x07'" in mistake("score", "x", "--reference=x", "--metrics=a\x1b[31mb\x07")


def test_a_name_that_is_too_long(mistake):
    assert mistake("score", "y", f"--reference={'x' * 300}").endswith("x: File name too long; use a shorter name")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "out of memory: lower what is computed at once, such as --beam_size"),
        (
            type("JaxRuntimeError", (RuntimeError,), {})("RESOURCE_EXHAUSTED: 9 GB\n"),
            "out of memory (RESOURCE_EXHAUSTED",
        ),
        (OSError(28, "No space left on device", "/a\nb"), "/a b: No space left on device; free some space"),
        (OSError(1, "Not permitted", "a", None, "b"), "a -> b: Not permitted; check the permissions"),
        (PermissionError(), "PermissionError"),
        (RecursionError("too deep"), "an input file is nested too deeply (too deep)"),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "no"), "text that is not valid Unicode"),
        (RuntimeError("Unable to initialize backend 'x'"), "Unable to initialize backend 'x'; JAX_PLATFORMS="),
        (ValueError("invalid truth value 'x' for environment 'JAX_ENABLE_X64'"), "invalid truth value 'x'"),
        (RuntimeError("[part 3] No space left on device\n"), "[part 3] No space left on device; free some space"),
        (UserError(""), "UserError"),
    ],
)
def test_what_a_user_can_cause_is_one_line(monkeypatch, mistake, error, words):
    monkeypatch.setattr(score, "main", raising(error))
    assert mistake("score").startswith(words)


def test_an_error_of_the_program_itself_is_raised(monkeypatch):
    monkeypatch.setattr(score, "main", raising(KeyError("x")))
    with pytest.raises(KeyError):
        cli.main(["score"])


def test_a_message_is_never_empty(monkeypatch, mistake):
    def fail(*_: object) -> int:
        raise UserError("--metrics: ") from ZeroDivisionError()

    monkeypatch.setattr(score, "main", fail)
    assert mistake("score") == "--metrics: ZeroDivisionError"


@pytest.mark.parametrize(("flags_given", "shown"), [([], 0), (["--verbose"], 1)])
def test_logs_of_libraries_are_in_the_workdir(flags_given, shown, tmp_path):
    program = (
        "import logging, sys, threading, warnings\n"
        "from nmt_jax import __main__ as cli\n"
        "from nmt_jax.commands import plot\n"
        "def work(*_):\n"
        "    logging.getLogger('orbax').warning('lost %d', 3); warnings.warn('of a library')\n"
        "    thread = threading.Thread(target=lambda: 1 / 0); thread.start(); thread.join()\n"
        "plot.main = work; sys.exit(cli.main())\n"
    )
    command = [sys.executable, "-c", program, "plot", f"--workdir={tmp_path}", *flags_given]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    log = (tmp_path / "nmt_jax.log").read_text()
    for text in ("WARNING orbax: lost 3", "of a library", "ZeroDivisionError"):
        assert log.count(text) == 1
        assert finished.stderr.count(text) == shown
