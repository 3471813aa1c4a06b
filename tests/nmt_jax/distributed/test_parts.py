import json
import pathlib

import pytest

from nmt_jax.distributed.parts import Part, Parts, digest
from nmt_jax.errors import UserError

JOB = {"workdir": ["a"], "beam_size": 4}


@pytest.fixture
def parts(tmp_path):
    found = Parts(tmp_path / "out", JOB)
    found.check()
    found.start()
    return found


def test_parts_are_joined_in_the_order_of_their_blocks(parts):
    for block in (10, 2, 0, 1, *range(3, 10)):
        parts.write(block, Part(f"{block}\n".encode(), "", block))
    assert parts.finished() == set(range(11))
    assert parts.read(10) == Part(b"10\n", "", 10)
    parts.join(11, b"first\n", b"last\n")
    assert parts.output.read_text().split() == ["first", *map(str, range(11)), "last"]
    assert [path.name for path in parts.output.parent.iterdir()] == ["out"]


def test_a_complete_output_is_replaced_only_on_request(parts):
    parts.join(0)
    with pytest.raises(UserError, match="out: exists and is complete"):
        parts.check()
    parts.check(overwrite=True)


def test_parts_of_another_job_are_refused(parts, tmp_path):
    parts.check()  # the same job
    with pytest.raises(UserError, match=r"out was started with a different beam_size, chunk: .* delete .*out\.parts"):
        Parts(tmp_path / "out", {"workdir": ["a"], "chunk": 2}).check()
    (parts.folder / "job.json").write_text("[")
    with pytest.raises(UserError, match=r"job\.json: damaged"):
        parts.check()


def test_a_block_of_another_input_is_refused(parts):
    items = [("a", 1.0), ("ä", float("nan"))]
    parts.write(0, Part(b"", digest(items)))
    parts.check_input(0, digest(list(items)))
    with pytest.raises(UserError, match=r"00000000\.part was made from another input"):
        parts.check_input(0, digest(items[:1]))


@pytest.mark.parametrize("data", [b"", b"{}", b"[]\nx", b'{"digest": "", "summary": null, "checksum": 0}\nx'])
def test_a_damaged_part_is_refused(data, parts):
    parts.write(3, Part(b"text"))
    (parts.folder / "00000003.part").write_bytes(data)
    with pytest.raises(UserError, match=r"00000003\.part: damaged; delete it"):
        parts.read(3)


def test_an_output_that_cannot_be_written(tmp_path):
    with pytest.raises(UserError, match="nowhere is not a folder"):
        Parts(tmp_path / "nowhere" / "out", JOB).check()
    for name in ("/", ".", ""):
        with pytest.raises(UserError, match="it is a folder, not a file"):
            Parts(pathlib.Path(name), JOB)
    for path in (tmp_path, pathlib.Path("/dev/null")):
        with pytest.raises(UserError, match="it is a folder or a device"):
            Parts(path, JOB).check(overwrite=True)


def test_a_job_holds_what_json_holds(tmp_path):
    parts = Parts(tmp_path / "out", {"metrics": ("bleu", "chrf")})
    parts.start()
    assert json.loads((parts.folder / "job.json").read_text()) == {"metrics": ["bleu", "chrf"]}
    parts.check()
