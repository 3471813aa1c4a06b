"""`nmt-jax prepare`: training finds what it prepared; wrong flags are one line."""

import importlib.util

import pytest

from nmt_jax import config as configs
from nmt_jax.commands import prepare
from nmt_jax.data.prepared import parallel
from nmt_jax.data.prepared.engine import this_process
from nmt_jax.data.vocabulary.vocab import Vocab
from nmt_jax.distributed import sharding
from nmt_jax.tasks.translate import Translate
from tests.conftest import ROOT

QUICKSTART = f"--config={ROOT}/configs/quickstart.py:smoke=true"


def test_training_finds_the_corpus_and_the_vocabulary(tmp_path, monkeypatch, capsys):
    changes = {"data.cache": str(tmp_path / "cache"), "data.size": "50", "data.filters": '["duplicates"]'}
    config = configs.load(f"{ROOT}/configs/quickstart.py:smoke=true", changes)
    used = []

    def engine(work, items, folder):
        used.append(len(items))
        this_process(work, items, folder)

    folders = prepare.run(config, engine)
    assert used == [1, 1, 1, 1]  # verdicts, duplicates, training pairs, development pairs
    assert "50 of 50 pairs" in capsys.readouterr().err
    monkeypatch.setattr(Vocab, "train", None)
    monkeypatch.setattr(parallel, "_encode", None)
    task = Translate(config, tmp_path / "workdir", sharding.make_mesh())
    assert [task.train_corpus.directory, task.dev_corpus.directory] == folders


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nmt-jax prepare needs --config=FILE"),
        ([QUICKSTART, "--runner=sparc"], "value should be one of <direct|spark|flink|dataflow>"),
        ([f"--config={ROOT}/configs/rnn_lm.py"], "config.task='language_model' is prepared by `nmt-jax train`"),
        ([QUICKSTART], "--runner=direct: Apache Beam is not installed: pip install 'nmt-jax[beam]'"),
        ([QUICKSTART, "file.txt"], "unexpected argument 'file.txt'; use --config=FILE"),
    ],
)
def test_wrong_flags_are_one_line(monkeypatch, mistake, arguments, message):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert message in mistake("prepare", *arguments)
