"""The log file of a run."""

import json
import math

import pytest
from tensorboardX.proto.event_pb2 import Event, SessionLog

from nmt_jax.training.logbook import Logbook, truncate


def test_the_log_contains_the_rows_and_null_for_nan(tmp_path):
    with Logbook(tmp_path) as logbook:
        logbook.write(1, {"loss": 0.1 + 0.2})
        logbook.write(2, {"loss": math.nan, "dev/bleu": 3.0})
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert rows == [{"step": 1, "loss": 0.1 + 0.2}, {"step": 2, "loss": None, "dev/bleu": 3.0}]
    assert any(path.name.startswith("events") for path in (tmp_path / "tensorboard").iterdir())


@pytest.mark.parametrize("step", [0, 7])
def test_tensorboard_forgets_rows_after_the_step(step, tmp_path):
    with Logbook(tmp_path, step):
        pass
    (file,) = (tmp_path / "tensorboard").iterdir()
    data, starts = file.read_bytes(), []
    while data:  # length, checksum, event, checksum
        length = int.from_bytes(data[:8], "little")
        event, data = Event.FromString(data[12 : 12 + length]), data[16 + length :]
        if event.session_log.status == SessionLog.START:
            starts.append(event.step)
    assert starts == [step + 1]


@pytest.mark.parametrize(("step", "kept"), [(0, 0), (1, 2), (2, 3), (9, 3)])
def test_rows_after_the_step_and_incomplete_lines_are_removed(step, kept, tmp_path):
    path = tmp_path / "metrics.jsonl"
    lines = ['{"step": 1, "loss": 2}\n', '{"step": 1, "dev/loss": 2}\n', '{"step": 2, "loss": 1}\n', '{"step": 3, "lo']
    path.write_text("".join(lines))
    truncate(path, step)
    assert path.read_text() == "".join(lines[:kept])


def test_damaged_lines_do_not_take_rows_with_them(tmp_path):
    path = tmp_path / "metrics.jsonl"
    rows = ['{"step": 1, "loss": 2}', '{"step": 2, "loss": 1}', '{"step": 3, "loss": 1}']
    content = f'{rows[0]}\ngarbage\n[1]\n{rows[1]}\xff{{"st\n{{"step": "x"}}\n{rows[2]}\n'.encode("latin-1")
    path.write_bytes(content)
    with pytest.warns(UserWarning, match=r"metrics.jsonl:2 and 3 more lines: not rows .*metrics.jsonl.damaged"):
        truncate(path, 3)
    assert path.read_text().split() == " ".join(rows).split()
    assert (tmp_path / "metrics.jsonl.damaged").read_bytes() == content
