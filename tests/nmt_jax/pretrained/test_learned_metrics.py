"""BLEURT and RUSE end to end: trained by `nmt-jax train`, used by `nmt-jax score`."""

import json
import pathlib

import numpy as np
import pytest

from metrics_jax import BLEURT
from nmt_jax import __main__ as cli
from nmt_jax import pretrained
from nmt_jax.errors import UserError
from nmt_jax.pretrained.learned_metrics import load_bleurt
from nmt_jax.pretrained.metrics import open_metric
from nmt_jax.reporting.system_scores import score_files
from nmt_jax.tasks.registry import make_task
from nmt_jax.training.run import resolve_config, train
from nmt_jax.training.trained import open_trained
from nmt_jax.workdir import Workdir
from tests.conftest import ROOT

pytestmark = pytest.mark.slow  # trains models

BLEURT_PAGE, RUSE_PAGE = (f"{ROOT}/configs/{name}.py:smoke=true" for name in ("bleurt", "ruse"))
STEPS = {"train.steps": "4", "train.eval_every": "4", "train.checkpoint_every": "4", "optimizer.warmup_steps": "1"}
TEXTS = ["the old man sleeps in the garden .", "she sees a house", ""]
REFERENCES = ["the old man sleeps in the garden .", "she reads the old book", "karl sleeps"]


@pytest.fixture(scope="module")
def bleurt(tmp_path_factory):
    workdir = tmp_path_factory.mktemp("bleurt") / "w"
    train(BLEURT_PAGE, workdir, STEPS | {"optimizer.learning_rate": "0.003"})
    return workdir


@pytest.fixture(scope="module")
def ruse(tmp_path_factory):
    workdir = tmp_path_factory.mktemp("ruse") / "w"
    train(RUSE_PAGE, workdir)
    return workdir


def test_the_metric_equals_the_predictions_of_the_task(bleurt):
    task, params = open_trained(Workdir(bleurt), "sentences")
    ((origin, unit),) = task.scales.columns.values()
    predicted = [float(found.label) for found in task.predict(params, list(zip(REFERENCES, TEXTS, strict=True)))]
    metric = BLEURT(load_bleurt(bleurt))
    np.testing.assert_allclose(origin + unit * metric(TEXTS, REFERENCES).segments, predicted, atol=1e-4)
    assert metric.scorer.max_length == task.config.data.max_length


@pytest.mark.slow
def test_the_same_data_and_seed_give_the_same_fingerprint(bleurt, tmp_path):
    for name, changes in (("same", {}), ("other", {"seed": "1"})):
        train(BLEURT_PAGE, tmp_path / name, STEPS | {"optimizer.learning_rate": "0.003"} | changes)
    first, same, other = (BLEURT(load_bleurt(folder)) for folder in (bleurt, tmp_path / "same", tmp_path / "other"))
    assert first.signature == same.signature
    assert first(TEXTS, REFERENCES).score == same(TEXTS, REFERENCES).score
    assert first.signature != other.signature


def test_score_on_the_command_line(bleurt, ruse, tmp_path, capsys):
    paths = [tmp_path / name for name in ("h.txt", "r.txt")]
    for path, lines in zip(paths, (TEXTS, REFERENCES), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines))
    flags = ["--metrics=bleurt,ruse,bleurt|multi_reference:mean", f"--bleurt={bleurt}", f"--ruse={ruse}"]
    assert cli.main(["score", str(paths[0]), f"--reference={paths[1]}", *flags, "--format=json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["metric"] for row in rows] == ["bleurt", "ruse", "bleurt|multi_reference:mean"]
    assert (
        rows[0]["score"]
        == rows[2]["score"]
        == pytest.approx(open_metric("bleurt", bleurt=str(bleurt))(TEXTS, REFERENCES).score)
    )
    assert open_metric(rows[1]["signature"], ruse=str(ruse)).signature.startswith("ruse|regressor:")
    with pytest.raises(UserError, match="computed with scorer"):
        open_metric(rows[0]["signature"].replace("scorer:", "scorer:0"), bleurt=str(bleurt))


def test_missing_or_unsuitable_models_raise_errors(bleurt, ruse, tmp_path):
    for spec, options, words in (
        ("bleurt", {}, r"--metrics=bleurt needs a trained model: --bleurt=PLACE"),
        ("ruse", {}, r"--metrics=ruse needs a trained model: --ruse=WORKDIR"),
        ("bleurt", {"bleurt": str(ruse)}, "--bleurt needs a workdir of task 'sentences' with scores of pairs"),
        ("ruse", {"ruse": str(bleurt)}, "its task is 'sentences', but --ruse needs 'ruse'"),
        ("ruse", {"ruse": str(tmp_path / "nowhere")}, "nowhere: no such workdir"),
        ("bleurt", {"bleurt": "nowhere"}, "nowhere: no such folder"),
    ):
        with pytest.raises(UserError, match=words):
            open_metric(spec, **options)


def test_errors_for_long_lines_name_the_line(bleurt, tmp_path):
    (tmp_path / "h").write_text("a\n" + "the old man sleeps " * 20 + "\n")
    (tmp_path / "r").write_text("a\nb\n")
    with pytest.raises(UserError, match=r"/h:2: this line or its reference is too long: .* choose long:truncate"):
        score_files([str(tmp_path / "h")], [str(tmp_path / "r")], metrics=["bleurt|long:error"], bleurt=str(bleurt))


@pytest.mark.slow
def test_pretraining_on_several_scores_and_fine_tuning(tmp_path):
    page = f"{ROOT}/configs/bleurt.py:stage=pretrain,smoke=true"
    train(page, tmp_path / "several", STEPS)
    task, params = open_trained(Workdir(tmp_path / "several"), "sentences")
    assert params["output"]["bias"].shape == (5,)
    assert set(task.batches(1)[0]) >= {"target", "target_1", "target_4"}
    assert task.predict(params, [("a b", "a")])[0].label.count("\t") == 4
    with pytest.raises(UserError, match="BLEURT needs one score"):
        load_bleurt(tmp_path / "several")
    from_there = {"encoder.place": str(tmp_path / "several")}
    config = resolve_config(BLEURT_PAGE, Workdir(tmp_path / "ratings"), from_there)
    begun = make_task(config, pathlib.Path(tmp_path / "ratings"), task.mesh)
    import jax

    warm = begun.warm_start(jax.jit(begun.init)(jax.random.key(0)))
    assert warm["output"]["bias"].shape == (1,)
    for name in ("encoder", "hidden"):  # "hidden" is the pooler
        assert all(jax.tree.leaves(jax.tree.map(lambda a, b: np.array_equal(a, b), warm[name], params[name])))
    assert pretrained.load_encoder(tmp_path / "several").max_length == 32
