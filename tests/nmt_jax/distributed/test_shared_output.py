"""Processes that share an output: every block is computed once, and one process joins the parts."""

import itertools
import threading

import numpy as np
import pytest

from nmt_jax.distributed import shared_output
from nmt_jax.distributed.parts import Part, Parts
from nmt_jax.distributed.process_spec import ProcessSpec, free_port
from nmt_jax.distributed.rendezvous import Rendezvous
from nmt_jax.distributed.shared_output import SharedOutput
from nmt_jax.distributed.tables import Tables
from nmt_jax.errors import UserError

JOB = {"input": "x"}
NUM_BLOCKS = 13
WHOLE = b"".join(b"%d\n" % block for block in range(NUM_BLOCKS))


@pytest.fixture(autouse=True)
def losses(monkeypatch):
    """Lost processes are collected here instead of ending the test process."""
    found = []
    monkeypatch.setattr(Rendezvous, "_lose", lambda self, process, why: found.append((process, why)))
    return found


def work(shared, stop=None):
    """Do the share of a process, or fail after `stop` blocks; returns the blocks that it computed."""
    taken = []
    with shared:
        for block in range(NUM_BLOCKS):
            if shared.takes(block, f"input of {block}"):
                if len(taken) == stop:
                    raise KeyboardInterrupt
                taken.append(block)
                shared.parts.write(block, Part(b"%d\n" % block, f"input of {block}"))
        if shared.is_joiner(NUM_BLOCKS):
            shared.parts.join(NUM_BLOCKS)
    return taken


def together(path, processes, jobs=None, **options):
    """The blocks of each process, or its UserError; processes that meet, as threads."""
    address, found = f"127.0.0.1:{free_port()}", [None] * processes

    def run(process):
        spec = ProcessSpec(address, processes, process) if processes > 1 else None
        job = jobs[process] if jobs else JOB
        try:
            found[process] = work(SharedOutput(path, job, spec, join_seconds=20, lost_seconds=20, **options))
        except UserError as error:
            found[process] = error

    threads = [threading.Thread(target=run, args=(process,)) for process in range(processes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
        assert not thread.is_alive()
    return found


@pytest.mark.parametrize("processes", [1, 2, 4])
def test_processes_that_meet_divide_the_blocks(processes, tmp_path):
    found = together(tmp_path / "out", processes)
    assert sorted(itertools.chain(*found)) == list(range(NUM_BLOCKS))
    assert max(map(len, found)) - min(map(len, found)) <= 1
    assert (tmp_path / "out").read_bytes() == WHOLE
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_a_job_goes_on_with_another_number_of_processes(processes, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        work(SharedOutput(tmp_path / "out", JOB, ProcessSpec("", 2, 1)), stop=4)
    found = together(tmp_path / "out", processes)
    assert sorted(itertools.chain(*found)) == [0, 2, 4, 6, 8, 9, 10, 11, 12]
    assert max(map(len, found)) - min(map(len, found)) <= 1
    assert (tmp_path / "out").read_bytes() == WHOLE


def test_the_last_of_independent_processes_joins(tmp_path, capsys):
    order = [2, 0, 3, 1]
    for process in order:
        assert not (tmp_path / "out").exists()
        taken = work(SharedOutput(tmp_path / "out", JOB, ProcessSpec("", 4, process)))
        assert taken == list(range(process, NUM_BLOCKS, 4))
    assert (tmp_path / "out").read_bytes() == WHOLE
    notes = capsys.readouterr().err.splitlines()
    assert len(notes) == 3
    assert notes[0].startswith("nmt-jax: process 2 of 4 has done its share; ")
    assert "10 blocks are not finished" in notes[0]


def test_a_requeued_process_does_only_what_is_missing(tmp_path):
    work(SharedOutput(tmp_path / "out", JOB, ProcessSpec("", 2, 0)))
    with pytest.raises(KeyboardInterrupt):
        work(SharedOutput(tmp_path / "out", JOB, ProcessSpec("", 2, 1)), stop=2)
    assert work(SharedOutput(tmp_path / "out", JOB, ProcessSpec("", 2, 1))) == [5, 7, 9, 11]
    assert (tmp_path / "out").read_bytes() == WHOLE


def test_an_independent_process_that_comes_late_changes_nothing(tmp_path, capsys):
    for process in (0, 1):
        work(SharedOutput(tmp_path / "out", JOB, ProcessSpec("", 2, process)))
    assert work(SharedOutput(tmp_path / "out", JOB, ProcessSpec("", 3, 2))) == []
    assert capsys.readouterr().err.endswith(f"process 2 of 3 has nothing to do: {tmp_path}/out is complete\n")
    with pytest.raises(UserError, match="exists; delete it"):
        work(SharedOutput(tmp_path / "out", JOB, ProcessSpec("", 3, 2), overwrite=True))
    assert (tmp_path / "out").read_bytes() == WHOLE
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("moment", ["check", "start"])
def test_an_independent_process_starts_while_the_last_one_joins(moment, monkeypatch, tmp_path, capsys):
    """The output appears after the process has looked for it, before or after it checks the settings."""
    usual = getattr(Parts, moment)

    def late(parts, *arguments):
        (tmp_path / "out").write_bytes(WHOLE)
        usual(parts, *arguments)

    monkeypatch.setattr(Parts, moment, late)
    assert work(SharedOutput(tmp_path / "out", JOB, ProcessSpec("", 15, 14))) == []
    assert "process 14 of 15 has nothing to do" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_of_two_that_finish_together_one_finds_the_parts_gone(tmp_path):
    late = SharedOutput(tmp_path / "out", JOB, ProcessSpec("", 2, 0))
    with late:
        for block in range(0, NUM_BLOCKS, 2):
            late.parts.write(block, Part(b"%d\n" % block, f"input of {block}"))
        work(SharedOutput(tmp_path / "out", JOB, ProcessSpec("", 2, 1)))
        late.parts.join(NUM_BLOCKS)
    assert (tmp_path / "out").read_bytes() == WHOLE


def test_an_error_before_the_first_block_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        work(SharedOutput(tmp_path / "out", JOB), stop=0)
    assert not list(tmp_path.iterdir())


def test_an_error_of_process_0_before_the_first_block_leaves_nothing(monkeypatch, losses, tmp_path):
    def fail(self, block, digest):
        raise UserError("no model")

    monkeypatch.setattr(SharedOutput, "takes", fail)
    assert list(map(str, together(tmp_path / "out", 2))) == ["no model"] * 2
    assert not list(tmp_path.iterdir())


def test_all_processes_report_a_complete_output(tmp_path):
    (tmp_path / "out").write_text("mine\n")
    found = together(tmp_path / "out", 3)
    assert ["out: exists and is complete" in str(error) for error in found] == [True] * 3
    assert (tmp_path / "out").read_text() == "mine\n"
    assert len(list(tmp_path.iterdir())) == 1
    together(tmp_path / "out", 2, overwrite=True)
    assert (tmp_path / "out").read_bytes() == WHOLE


def test_processes_with_different_commands(tmp_path):
    found = together(tmp_path / "out", 2, [JOB, {"input": "y"}])
    assert "process 1" in str(found[0])
    assert "has a different input from process 0" in str(found[0])
    assert str(found[0]) == str(found[1])


def test_a_process_that_leaves_early_is_missed(monkeypatch, tmp_path):
    monkeypatch.setattr(shared_output, "VISIBLE_SECONDS", 0.3)
    address, raised = f"127.0.0.1:{free_port()}", []

    def leave():
        with pytest.raises(KeyboardInterrupt):
            work(SharedOutput(tmp_path / "out", JOB, ProcessSpec(address, 2, 1), lost_seconds=5), stop=3)
        raised.append(True)

    thread = threading.Thread(target=leave)
    thread.start()
    with pytest.raises(UserError, match="3 blocks are not finished; run the same command again"):
        work(SharedOutput(tmp_path / "out", JOB, ProcessSpec(address, 2, 0), lost_seconds=5))
    thread.join(timeout=20)
    assert raised


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_shared_tables_equal_those_of_one_process(processes, monkeypatch, tmp_path):
    monkeypatch.setattr("nmt_jax.distributed.tables.ROWS", 4)
    texts = [[f"{number}" * number for number in range(size)] for size in (3, 11, 4)]
    calls = []

    def fill(tables):
        for rows in texts:
            tables.add(
                lambda first, stop, rows=rows: (
                    calls.append(stop - first) or np.array([[len(row), first] for row in rows[first:stop]])
                ),
                rows,
                3,
                "title",
            )
        return tables.collect()

    expected = [np.array([[len(row), 0] for row in rows]) for rows in texts]
    for process in range(processes):
        with SharedOutput(tmp_path / "out", JOB, ProcessSpec("", processes, process)) as shared:
            found = fill(Tables(shared))
        assert (found is None) == (process < processes - 1)
    assert max(calls) == 3
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours[:, 0], theirs[:, 0])
    for ours, theirs in zip(fill(Tables()), expected, strict=True):
        np.testing.assert_array_equal(ours[:, 0], theirs[:, 0])


def test_a_table_of_other_texts_is_refused(tmp_path):
    for text in ("a", "b"):
        with SharedOutput(tmp_path / "out", JOB, ProcessSpec("", 2, 0)) as shared:
            tables = Tables(shared)
            if text == "a":
                tables.add(lambda first, stop: np.zeros((stop - first, 1)), [text], 1, "title")
                continue
            with pytest.raises(UserError, match="made from another input"):
                tables.add(lambda first, stop: np.zeros((stop - first, 1)), [text], 1, "title")
