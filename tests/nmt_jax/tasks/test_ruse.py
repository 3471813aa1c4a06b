"""Training of RUSE: the encoders do not change, the regressor learns, and the workdir is a metric."""

import json
import shutil

import numpy as np
import pytest

from metrics_jax import RUSE
from metrics_jax.prediction.correlation import pearson
from nmt_jax import config as configs
from nmt_jax import pretrained, schema
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.pretrained.learned_metrics import load_ruse
from nmt_jax.tasks.registry import make_task
from nmt_jax.training.run import train
from tests.conftest import ROOT
from tests.fixtures import tiny_encoder_folder as tiny_encoder

PAGE = f"{ROOT}/configs/ruse.py:smoke=true"
WORDS = tiny_encoder.TEXT.replace(" , ", " ").split()


def rows(count: int, label: str, seed: int) -> str:
    """Pairs of a line and a shortened copy, scored by the share of the line that is left."""
    random = np.random.default_rng(seed)
    lines = [f"reference\thypothesis\t{label}"]
    for _ in range(count):
        words = [WORDS[one] for one in random.integers(len(WORDS), size=6)]
        left = words[: random.integers(7)]
        lines.append(f"{' '.join(words)}\t{' '.join(left)}\t{len(left) * (10 if label == 'score' else 1)}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for name in ("one", "two"):
        tiny_encoder.write(folder / name, d_model=16 if name == "one" else 8)
    for number, (name, label) in enumerate((("a", "score"), ("b", "human_z"), ("dev", "human_z"))):
        (folder / f"{name}.tsv").write_text(rows(60, label, number))
    return folder


def settings(folder, **changes) -> dict[str, str]:
    found = {
        "encoders.places": json.dumps([str(folder / "one"), str(folder / "two")]),
        "data.corpus": "files",
        "data.directory": folder,
        "data.train": "a.tsv,b.tsv",
        "data.dev": "dev.tsv",
        "data.texts": '["reference", "hypothesis"]',
        "optimizer.schedule": "constant",
        "optimizer.learning_rate": "0.01",
        "optimizer.warmup_steps": "1",
        "train.batch_tokens": "16",
        "train.steps": "60",
        "train.eval_every": "60",
        "train.checkpoint_every": "60",
    }
    return {key: str(value) for key, value in (found | changes).items()}


@pytest.fixture(scope="module")
def trained(folder, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("run") / "w"
    return workdir, train(PAGE, workdir, settings(folder))


@pytest.mark.slow
def test_it_learns_and_the_workdir_is_a_metric(trained, folder, tmp_path):
    workdir, metrics = trained
    assert metrics["dev/pearson"] > 70
    moved = tmp_path / "moved"
    shutil.copytree(workdir, moved)
    metric = RUSE(load_ruse(moved))
    lines = [line.split("\t") for line in (folder / "dev.tsv").read_text().splitlines()[1:]]
    references, hypotheses, human = zip(*lines, strict=True)
    found = metric(hypotheses, references).segments
    human = np.array(human, float)
    assert 100 * pearson(found, human) == pytest.approx(metrics["dev/pearson"], abs=1e-3)
    origin, unit = json.loads((workdir / "vocab" / "scales.json").read_text())["human_z"]
    assert np.mean((found - (human - origin) / unit) ** 2) == pytest.approx(metrics["dev/loss"], abs=1e-4)
    assert len(metric.regressor.encoders) == 2


@pytest.mark.slow
def test_the_workdir_holds_the_given_encoders(trained, folder):
    given = [pretrained.load_encoder(folder / name).fingerprint for name in ("one", "two")]
    assert [encoder.fingerprint for encoder in load_ruse(trained[0]).encoders] == given
    with pytest.raises(UserError, match=r"this workdir contains a different model: encoders\.places was"):
        train(PAGE, trained[0], settings(folder, **{"encoders.places": f'["{folder / "two"}"]'}))


@pytest.mark.slow
def test_training_is_reproducible(trained, folder, tmp_path):
    same = train(PAGE, tmp_path / "same", settings(folder)) and load_ruse(tmp_path / "same")
    assert same.fingerprint == load_ruse(trained[0]).fingerprint
    other = train(PAGE, tmp_path / "other", settings(folder, seed=1)) and load_ruse(tmp_path / "other")
    assert other.fingerprint != same.fingerprint
    assert RUSE(other).signature != RUSE(same).signature


def test_each_file_has_its_own_columns_and_scale(folder, tmp_path):
    task = make_task(configs.load(PAGE, settings(folder)), tmp_path, sharding.make_mesh())
    assert set(task.scales.columns) == {"score", "human_z"}
    targets = task.corpus("train").targets
    assert len(targets) == 120
    for part in (targets[:60], targets[60:]):
        np.testing.assert_allclose([part.mean(), part.std()], [0, 1], atol=1e-5)
    batch = task.batches(1)[0]
    assert batch["features"].shape == (16, 4 * (16 + 8))


@pytest.mark.slow
def test_a_random_encoder(folder, tmp_path):
    changes = {"encoders.places": "[]", "vocab.size": "100", "encoders.num_layers": "1"}
    train(PAGE, tmp_path / "w", settings(folder, **changes, **{"train.steps": 2}))
    assert np.isfinite(RUSE(load_ruse(tmp_path / "w"))(["the film"], ["the man"]).score)


@pytest.mark.slow
def test_a_linear_regression(folder, tmp_path):
    found = train(PAGE, tmp_path / "w", settings(folder, **{"model.num_layers": 0, "model.dropout": 0.0}))
    assert len(load_ruse(tmp_path / "w").layers) == 1
    assert np.isfinite(found["dev/loss"])


def test_invalid_settings_are_errors(folder, tmp_path):
    (folder / "bad.tsv").write_text("reference\thypothesis\thuman_z\na\tb\t1\nc\td\thigh\n")
    for changes, words in (
        ({"data.train": "bad.tsv"}, r"bad\.tsv:3: the score 'high' is not a number"),
        ({"data.train": "a.tsv"}, r"dev\.tsv:2: column 'human_z' does not occur in the training texts"),
        ({"data.train": "a.tsv,gone.tsv"}, r"gone\.tsv: no such file"),
        ({"data.texts": '["source|text", "hypothesis"]'}, r"dev\.tsv:1: no column 'source\|text'"),
        ({"data.texts": '["hypothesis"]'}, "name two columns, the reference first"),
        ({"data.label": "score,human_z"}, "RUSE learns one column of scores"),
        ({"encoders.places": '["nowhere"]'}, "config.encoders.places: nowhere: no such folder"),
        ({"model.num_layers": -1}, r"config\.model\.num_layers=-1: must be at least 0"),
    ):
        with pytest.raises(UserError, match=words):
            train(PAGE, tmp_path / "w", settings(folder, **changes))
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / "config.json").write_text(json.dumps(schema.defaults("sentence_head", "sentences")))
    with pytest.raises(UserError, match="its task is 'sentences', but --ruse needs 'ruse'"):
        load_ruse(tmp_path / "v")
