"""COMET with estimators trained here: the scores are those of the task, and other workdirs are refused."""

import json

import numpy as np
import pytest

from metrics_jax import COMET, load
from nmt_jax.errors import UserError
from nmt_jax.pretrained.comet_models import load_comet, load_cometqe
from nmt_jax.training.run import train
from nmt_jax.training.trained import open_trained
from nmt_jax.workdir import Workdir
from tests.fixtures import tiny_encoder_folder
from tests.fixtures.config_modules import FOLDER

WORDS = ("the", "good", "bad", "film", "man")
TEXTS = [[" ".join(np.random.default_rng(n).choice(WORDS, 2 + n % 5)) for n in range(k, k + 24)] for k in (0, 7, 13)]


@pytest.fixture(scope="module")
def workdir(tmp_path_factory):
    """An estimator after four steps."""
    folder = tmp_path_factory.mktemp("comet")
    tiny_encoder_folder.write(folder / "encoder")
    rows = [f"{h}\t{r}\t{s}\t{len(set(h.split()) & set(r.split()))}\n" for h, r, s in zip(*TEXTS, strict=True)]
    (folder / "ratings.tsv").write_text("".join(["hypothesis\treference\tsource\thuman_z\n", *rows]))
    changes = {"data.corpus": "files", "data.directory": folder, "data.train": "ratings.tsv", "data.dev": "ratings.tsv"}
    changes |= {"data.texts": '["hypothesis", "reference", "source"]', "data.label": "human_z", "train.steps": 4}
    changes |= {"encoder.place": folder / "encoder", "optimizer.learning_rate": 0.01}
    train(str(FOLDER / "comet.py:smoke=true"), folder / "run", {key: str(value) for key, value in changes.items()})
    return folder / "run"


@pytest.mark.slow
def test_scores_are_those_of_the_task(workdir):
    hypotheses, references, sources = TEXTS
    metric = COMET(load_comet(workdir))
    found = metric(hypotheses, references, sources)
    task, params = open_trained(Workdir(workdir), "sentences")
    items, _ = task._items(list(zip(*TEXTS, strict=True)))
    np.testing.assert_allclose(found.segments, np.stack(task.outputs(params, items))[:, 0], atol=1e-5)
    assert np.std(found.segments) > 1e-3
    some = metric(hypotheses[3:5], references[3:5], sources[3:5])
    assert some.segments.tolist() == found.segments[3:5].tolist()
    assert load(metric.signature, estimator=load_comet(workdir)).signature == metric.signature


@pytest.mark.slow
def test_other_workdirs_are_refused(workdir, tmp_path):
    with pytest.raises(UserError, match="--cometqe needs an estimator that reads translation and source"):
        load_cometqe(workdir)
    (tmp_path / "checkpoints").mkdir()
    config = json.loads((workdir / "config.json").read_text())
    for change, message in (
        ({"model_name": "siamese_head"}, "--comet needs a workdir of configs/comet.py"),
        ({"encoder": {**config["encoder"], "layers": "2"}}, "encoder.layers=2: --comet reads the last layer or a"),
    ):
        (tmp_path / "config.json").write_text(json.dumps({**config, **change}))
        with pytest.raises(UserError, match=message):
            load_comet(tmp_path)
