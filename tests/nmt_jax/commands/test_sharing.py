"""Verbs on several processes: the output is that of one process, byte for byte, whatever is killed on the way."""

import functools
import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from nmt_jax.__main__ import main
from nmt_jax.commands.launch import SHARING
from tests.conftest import ROOT
from tests.fixtures import judged_texts
from tests.fuzz.mistakes import flags_of
from tests.fuzz.workplace import SOURCE, TARGET

# For each verb its arguments; words in braces are files, with COPIES times as many lines as in tests.fuzz.
COPIES = 12
COMMANDS = {
    "summarize": "--input={source} --sentences=1 --chunk=5 --format=json",
    "mbr": "--input={candidates} --utility=chrf --format=json",
    "rerank": "--input={candidates} --weights={weights} --format=json --chunk=5",
    "score": "{source} {target} --reference={target} --metrics=bleu,ter --paired=bootstrap --format=json --segments",
    "judge": "{judged.tsv} --human=human --system=system --item=item --metrics=chrf,bleu --confidence --trials=20",
    "perturb": "--input={source} --metrics=rougeL",
    "neighbours": "--vectors={glove} --input={words} --count=2 --chunk=3",
    "align": "--source={source} --target={target} --model=ibm1 --iterations=2 --format=json --chunk=6",
    "translate": "--workdir={translator} --input={source} --chunk=4",
    "generate": "--workdir={language_model} --prompts={target} --num_samples=4 --length=5",
    "classify": "--workdir={classifier} --input={target} --chunk=7",
    "tag": "--workdir={tagger} --input={source} --format=json --chunk=6",
    "answer": "--workdir={answerer} --input={questions} --format=squad --chunk=3",
}
KILLED = ((4, 2), (2, 1))  # processes of a job and of the one that goes on, for every other verb
FAST = ["summarize", "mbr", "rerank", "score", "judge", "perturb", "neighbours"]  # without a model


def write_texts(folder):
    """Write the inputs of the verbs; no line occurs twice."""
    source = [f"{line} {copy}" for copy in range(COPIES) for line in SOURCE]
    target = [f"{line} {copy}" for copy in range(COPIES) for line in TARGET]
    files = {"source": source, "target": target, "words": ["der", "Mann - Frau + Haus", "Haus", ""] * COPIES}
    files["candidates"] = [f"{n}\t{-k}.5\t{text} {n}" for n in range(1, 4 * COPIES) for k, text in enumerate(TARGET)]
    files["weights"] = ['{"weights": {"direct": 0.5, "words": 0.4}}']
    files["questions"] = [
        f'{{"id": "{n}", "question": "Who sleeps?", "context": "The man {n} sleeps."}}' for n in range(COPIES)
    ]
    for name, lines in files.items():
        (folder / name).write_text("\n".join(lines) + "\n")
    (folder / "glove").write_text("der 1 0 1\nMann 0 1 0.5\nHaus -1 0 0.5\nFrau 0.5 0.5 0\n")
    judged_texts.write(folder / "judged.tsv", judged_texts.rows(systems=3, items=12))


def arguments(verb, folder):
    names = {path.name: path for path in folder.iterdir()}
    text = COMMANDS[verb]
    for name, path in names.items():
        text = text.replace(f"{{{name}}}", str(path))
    return [verb, *shlex.split(text)]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    write_texts(tmp_path / "in")
    return tmp_path / "in"


@pytest.mark.parametrize("verb", FAST)
def test_shares_of_the_lines_make_the_output_of_one_process(verb, folder, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("nmt_jax.distributed.tables.ROWS", 5)
    assert main(arguments(verb, folder)) == 0
    expected = capsys.readouterr().out
    for processes in (1, 2, 4):
        output = tmp_path / f"out{processes}"
        order = random.Random(verb).sample(range(processes), processes)
        for process in order:
            flags = [f"--output={output}", f"--processes={processes}", f"--process={process}"]
            assert main([*arguments(verb, folder), *flags]) == 0
        assert output.read_text() == expected
        assert not (tmp_path / f"out{processes}.parts").exists()
    assert capsys.readouterr().out == ""


def test_the_report_on_stderr_is_about_all_lines(folder, tmp_path, capsys):
    assert main(arguments("mbr", folder)) == 0
    expected = capsys.readouterr().err
    assert expected.startswith("nmt-jax: 47 lines: expected utility")
    for process in range(2):
        assert main([*arguments("mbr", folder), f"--output={tmp_path}/o", "--processes=2", f"--process={process}"]) == 0
    assert capsys.readouterr().err.splitlines()[-1] == expected.strip()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["--processes=2", "--process=0"], "2 processes write one file: name it by --output=FILE"),
        (
            ["--output=o", "--processes=99", "--process=0"],
            "source: 48 lines are too few for 99 processes; use at most 48",
        ),
        (["--output=o", "--processes=2"], "--processes=N and --process=I must be given together"),
        (["--output=o", "--processes=2", "--process=2"], "--process=2: must be less than --processes=2"),
        (["--overwrite"], "--overwrite has no effect without --output=FILE"),
        (["--output=missing/o"], "missing/o: cannot be written: missing is not a folder"),
    ],
)
def test_flags_that_make_no_sense(changes, words, folder, mistake):
    assert words in mistake(*arguments("summarize", folder), *changes)


def test_several_processes_cannot_share_stdin(mistake, tmp_path):
    error = mistake("summarize", f"--output={tmp_path}/o", "--processes=2", "--process=0")
    assert error == "nmt-jax summarize: 2 processes cannot share stdin: name a file that all of them can read"
    assert not list(tmp_path.iterdir())


def test_parts_of_an_older_run_are_kept(folder, nmt_jax, mistake, tmp_path):
    flags = [f"--output={tmp_path}/o", "--processes=2", "--process=0"]
    assert nmt_jax(*arguments("summarize", folder), *flags).code == 0
    before = sorted((tmp_path / "o.parts").iterdir())
    assert "o was started with a different sentences: " in mistake(
        *arguments("summarize", folder), *flags, "--sentences=2"
    )
    text = (folder / "source").read_text()
    (folder / "source").write_text(text.replace("sleeps", "sings", 1))
    assert "00000000.part was made from another input" in mistake(*arguments("summarize", folder), *flags)
    (folder / "source").write_text(text)
    assert sorted((tmp_path / "o.parts").iterdir()) == before


def test_every_verb_that_launch_names_can_be_shared():
    assert set(SHARING) == set(COMMANDS)
    for verb in SHARING:
        assert {"output", "overwrite", "processes", "process", "coordinator"} <= set(flags_of(verb))


def launch(verb, folder, output, processes, devices, environment, *flags):
    command = [sys.executable, "-m", "nmt_jax", "launch", f"--processes={processes}", f"--devices={devices}", "--"]
    command += ["nmt-jax", *arguments(verb, folder), f"--output={output}", *flags]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, cwd=ROOT)


@pytest.fixture(scope="module")
def inputs(workplace):
    write_texts(workplace)
    return workplace


@pytest.fixture(scope="module")
def whole(inputs) -> Callable[[str], tuple[bytes, float]]:
    """What one process writes for a verb, and how many seconds it takes."""

    @functools.cache
    def run(verb: str) -> tuple[bytes, float]:
        began = time.monotonic()
        command = [sys.executable, "-m", "nmt_jax", *arguments(verb, inputs)]
        return subprocess.run(command, capture_output=True, check=True).stdout, time.monotonic() - began

    return run


@pytest.mark.slow
@pytest.mark.parametrize("verb", COMMANDS)
def test_processes_and_devices_do_not_change_the_output(verb, inputs, whole, tmp_path):
    environment = os.environ | {"NMT_JAX_CACHE": str(tmp_path / "cache")}
    for processes, devices in ((3, 1), (2, 2)):
        output = tmp_path / f"{processes}-{devices}"
        process = launch(verb, inputs, output, processes, devices, environment)
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
        assert output.read_bytes() == whole(verb)[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "model", "layouts"),
    [
        ("translate", "translator", ((1, 1), (2, 2))),
        ("classify", "classifier", ((1, 1), (2, 1), (3, 1))),  # one and three devices do not split it
        ("generate", "language_model", ((1, 1), (2, 1))),
    ],
)
def test_a_model_that_is_split_uses_the_devices_of_all_processes(verb, model, layouts, inputs, tmp_path):
    environment = os.environ | {"NMT_JAX_CACHE": str(tmp_path / "cache")}
    (tmp_path / "in").mkdir()
    write_texts(tmp_path / "in")
    shutil.copytree(inputs / model, tmp_path / "in" / model)
    config = tmp_path / "in" / model / "config.json"
    settings = json.loads(config.read_text()) | {"mesh": {"model": 2, "fsdp": False}}
    if verb == "translate":
        settings["decode"]["average"] = 2
    config.write_text(json.dumps(settings))
    for processes, devices in layouts:
        process = launch(verb, tmp_path / "in", tmp_path / f"{processes}-{devices}", processes, devices, environment)
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
    outputs = {(tmp_path / f"{processes}-{devices}").read_bytes() for processes, devices in layouts}
    assert len(outputs) == 1


@pytest.mark.slow
@pytest.mark.parametrize("verb", COMMANDS)
def test_a_killed_job_goes_on_with_another_number_of_processes(verb, inputs, whole, tmp_path):
    environment = os.environ | {"NMT_JAX_CACHE": str(tmp_path / "cache")}
    expected, seconds = whole(verb)
    chance, output = random.Random(verb), tmp_path / "killed"
    first, second = KILLED[list(COMMANDS).index(verb) % len(KILLED)]
    # If one is killed before it joins, the others wait no longer than this for it.
    process = launch(verb, inputs, output, first, 1, environment, "--join_seconds=20")
    time.sleep(chance.uniform(0.3, 1.5) * seconds)
    children = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True).stdout.split()
    if children:
        os.kill(int(chance.choice(children)), signal.SIGKILL)
    process.communicate(timeout=120)
    if not output.exists():
        process = launch(verb, inputs, output, second, 2, environment)
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
    assert output.read_bytes() == expected
    assert not output.with_name(f"{output.name}.parts").exists()
