"""Beam prepares the same bytes as one process, and errors of workers are those of one process."""

import functools
import os
import pathlib
import signal

import pytest

pytest.importorskip(
    "apache_beam", reason="the environment of these tests: pip install 'nmt-jax[beam]' (CONTRIBUTING.md)"
)

from nmt_jax.data.prepared import parallel, verdicts
from nmt_jax.data.prepared.beam_engine import BeamEngine
from nmt_jax.data.prepared.engine import this_process
from nmt_jax.data.prepared.parallel import prepare
from nmt_jax.data.vocabulary.vocab import Vocab
from nmt_jax.errors import UserError
from tests.nmt_jax.data.prepared.test_parallel import contents, text_config

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # warnings of Beam

PAIRS = [(f"the dog number {n % 70} barks", f"der Hund mit der Nummer {n % 70} bellt") for n in range(90)]
ENGINES = {
    "one process": functools.partial(BeamEngine, "direct", ["direct_num_workers=1"]),
    "two processes": functools.partial(BeamEngine, "direct", ["direct_num_workers=2"]),
    # The protocol of Flink and Spark, with Beam's own server of jobs.
    "flink": functools.partial(BeamEngine, "flink", ["job_endpoint=embed", "environment_type=LOOPBACK"]),
}


def fail(number: int) -> None:
    if number in (3, 5):
        raise UserError(f"item {number}")


def kill(number: int) -> None:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_prepares_the_same_bytes(tmp_path, monkeypatch, name):
    monkeypatch.setattr(parallel, "PAIRS_A_PART", 16)
    monkeypatch.setattr(verdicts, "SLICES_A_RANGE", 3)
    data = text_config(tmp_path, PAIRS)
    data.filters = ["duplicates", "length_ratio"]
    vocab = Vocab.train([text for pair in PAIRS for text in pair], size=300)
    here = prepare(data, "train", (vocab, vocab), 0, this_process).directory
    assert len(contents(here)) > 15
    data.cache += "-beam"
    assert contents(prepare(data, "train", (vocab, vocab), 0, ENGINES[name]()).directory) == contents(here)


def test_the_first_error_in_order_is_raised(tmp_path):
    with pytest.raises(UserError, match=r"^item 3$"):
        ENGINES["two processes"]()(fail, range(8), tmp_path)


def test_the_death_of_a_worker_is_an_error(tmp_path):
    with pytest.raises(UserError, match=r"return code -9, perhaps for lack of memory: use fewer"):
        ENGINES["two processes"]()(kill, range(8), tmp_path)


@pytest.mark.parametrize(
    ("runner", "option", "message"),
    [
        ("direct", "direct_num_worker=2", "not an option of Apache Beam; did you mean direct_num_workers"),
        ("direct", "direct_num_workers=two", "argument --direct_num_workers: invalid int value: 'two'"),
        ("direct", "streaming", "--runner_option=streaming: expected NAME=VALUE"),
        ("dataflow", "region=europe-west4", "--runner=dataflow: .*Missing required option: project"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_read(runner, option, message):
    with pytest.raises(UserError, match=message):
        BeamEngine(runner, [option])


def test_an_unreachable_cluster_is_one_line(tmp_path: pathlib.Path):
    engine = BeamEngine("spark", ["job_endpoint=localhost:9", "job_server_timeout=2"])
    with pytest.raises(UserError, match="--runner=spark: FutureTimeoutError"):
        engine(fail, range(8), tmp_path)
