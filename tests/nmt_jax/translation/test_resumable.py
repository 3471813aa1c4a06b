import json
import pathlib

import pytest

from nmt_jax.errors import UserError
from nmt_jax.translation.resumable import ResumableFile

JOB = {"workdir": ["a"], "beam_size": 4}


def lines(path):
    return path.read_bytes()


def write(path, first, last, stop=None, job=JOB):
    """Write lines first to last, saving after every second one; fails after `stop` lines."""
    with ResumableFile(path, job) as file:
        assert file.num_inputs == first
        for number in range(first, last):
            if number == stop:
                raise KeyboardInterrupt
            file.write(f"line {number}\n".encode())
            if number % 2:
                file.save()
    return file


def test_a_file_is_resumed_without_repeated_lines(tmp_path):
    path = tmp_path / "out"
    whole = "".join(f"line {n}\n" for n in range(10)).encode()
    with pytest.raises(KeyboardInterrupt):
        write(path, 0, 10, stop=5)
    write(path, 5, 10)
    assert lines(path) == whole
    assert not path.with_name("out.progress").exists()


def test_an_incomplete_line_is_removed(tmp_path):
    path = tmp_path / "out"
    file = ResumableFile(path, JOB)
    file.write(b"line 0\n")
    file.save()
    file.write(b"line 1\nli")  # then the machine fell dead
    file._file.close()
    write(path, 1, 4)
    assert lines(path) == b"line 0\nline 1\nline 2\nline 3\n"


def test_another_job_and_a_complete_file_are_errors(tmp_path):
    path = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        write(path, 0, 4, stop=2)
    with pytest.raises(UserError, match=r"different beam_size: .*out\.progress"):
        ResumableFile(path, JOB | {"beam_size": 5})
    path.write_bytes(b"x")
    with pytest.raises(UserError, match="shorter than"):
        ResumableFile(path, JOB)
    path.with_name("out.progress").write_text("{")
    with pytest.raises(UserError, match="not a progress file"):
        ResumableFile(path, JOB)
    path.with_name("out.progress").unlink()
    with pytest.raises(UserError, match="exists and is complete"):
        ResumableFile(path, JOB)
    with pytest.raises(UserError, match="cannot be written"):
        ResumableFile(tmp_path / "nowhere" / "out", JOB)


def test_a_failure_before_the_first_line_leaves_no_file(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "out", 0, 4, stop=0)
    assert not list(tmp_path.iterdir())


def test_the_marker_records_the_safe_lines(tmp_path):
    path = tmp_path / "out"
    file = ResumableFile(path, JOB)
    file.write("ä\n".encode())
    file.save()
    file._file.close()
    state = json.loads(path.with_name("out.progress").read_text())
    assert len(state.pop("fingerprint")) == 64
    assert state == {"inputs": 1, "bytes": 3, "job": JOB}


@pytest.mark.parametrize("changed", [0, 1, 3])
def test_lines_that_are_done_must_not_change(changed, tmp_path):
    path, inputs = tmp_path / "out", [str(tmp_path / name) for name in ("source", "prefixes")]
    texts = [[f"{name} {number}\n" for number in range(6)] for name in ("source", "prefix")]
    for name, lines in zip(inputs, texts, strict=True):
        pathlib.Path(name).write_text("".join(lines))
    file = ResumableFile(path, JOB, inputs=inputs)
    for _ in range(3):
        file.write(b"line\n")
    file.save()
    file._file.close()
    texts[1][changed] = "changed\n"
    pathlib.Path(inputs[1]).write_text("".join(texts[1]))
    if changed < 3:
        with pytest.raises(UserError, match=rf"out: the first 3 lines of {inputs[0]}, {inputs[1]} have changed"):
            ResumableFile(path, JOB, inputs=inputs)
        texts[1][changed] = f"prefix {changed}\n"
        pathlib.Path(inputs[1]).write_text("".join(texts[1]))
    with ResumableFile(path, JOB, inputs=inputs) as file:
        assert file.num_inputs == 3
