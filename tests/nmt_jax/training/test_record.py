import json
import math

import pytest

from nmt_jax.training.record import Record, best_step, dev_metrics, has_ended, higher_is_better, read_record
from nmt_jax.workdir import Workdir
from tests.fixtures import toy
from tests.fixtures.toy import VOCABULARY, WIDTH


def test_the_record_of_a_trained_workdir(tmp_path):
    toy.train(tmp_path, **{"train.steps": 6, "train.eval_every": 2, "train.checkpoint_every": 2})
    record = read_record(Workdir(tmp_path))
    assert record is not None
    assert record.step == 6
    assert record.parameters == 2 * VOCABULARY * WIDTH + VOCABULARY
    assert record.seconds > 0
    assert has_ended(toy.config(**{"train.steps": 6}), record)
    assert not has_ended(toy.config(**{"train.steps": 7}), record)


@pytest.mark.slow
def test_a_run_stopped_early_has_ended(tmp_path):
    changes = {"train.steps": 40, "train.eval_every": 1, "train.patience": 2, "optimizer.learning_rate": 9.0}
    end = toy.train(tmp_path, **changes)
    record = read_record(Workdir(tmp_path))
    assert end["step"] < 40
    assert record is not None
    assert record.step == end["step"]
    assert has_ended(toy.config(**changes), record)
    assert not has_ended(toy.config(**changes | {"train.patience": 3}), record)


@pytest.mark.parametrize(("seconds", "ended"), [(59.0, False), (61.0, True)])
def test_a_run_out_of_time_has_ended(seconds, ended):
    config = toy.config(**{"train.steps": 30, "train.minutes": 1.0})
    assert has_ended(config, Record(step=3, stale=0, seconds=seconds, parameters=1)) == ended
    assert not has_ended(config, None)


def test_a_damaged_checkpoint_is_skipped(tmp_path):
    for step, text in (
        (5, json.dumps({"custom_metadata": {"shapes": {}, "meta": {"stale": 1, "seconds": 2.0}}})),
        (9, "{"),
    ):
        (tmp_path / "checkpoints" / str(step)).mkdir(parents=True)
        (tmp_path / "checkpoints" / str(step) / "_CHECKPOINT_METADATA").write_text(text)
    record = read_record(Workdir(tmp_path))
    assert record == Record(step=5, stale=1, seconds=2.0, parameters=0)
    assert read_record(Workdir(tmp_path / "nowhere")) is None


def test_dev_metrics_are_those_of_the_checkpoint(tmp_path):
    for step, measure, score, metrics in (
        (1, "dev/f1", 50.0, {"dev/f1": 50.0, "dev/no_answer_threshold": 3.0}),
        (2, "dev/f1", 40.0, {"dev/f1": 40.0, "dev/no_answer_threshold": 2.0}),
        (3, "dev/f1", None, {"dev/f1": 40.0, "dev/no_answer_threshold": 2.0}),  # saved before its evaluation
        (4, "dev/f1", 50.0, {"dev/f1": 50.0, "dev/no_answer_threshold": 1.0}),
        (5, "dev/f1", 10.0, {"dev/f1": 10.0}),
    ):
        (tmp_path / "checkpoints" / str(step)).mkdir(parents=True)
        record = {"meta": {"measure": measure, "metrics": metrics}, "score": score}
        text = json.dumps({"custom_metadata": record})
        (tmp_path / "checkpoints" / str(step) / "_CHECKPOINT_METADATA").write_text(text)
    assert dev_metrics(Workdir(tmp_path)) == {"dev/f1": 50.0, "dev/no_answer_threshold": 3.0}  # the first of the best
    assert dev_metrics(Workdir(tmp_path), "last") == dev_metrics(Workdir(tmp_path), 3) == {"dev/f1": 10.0}
    assert dev_metrics(Workdir(tmp_path / "nowhere")) == {}


@pytest.mark.parametrize(("last", "best"), [(math.nan, 2), (-2.9, 3)])
def test_dev_metrics_are_those_of_the_best_checkpoint(last, best, tmp_path):
    for step, meta, score in (
        (1, {"measure": "dev/bleu"}, 30.0),
        (2, {}, -2.0 if best == 2 else -3.2),  # of an older version
        (3, {"measure": "dev/loss"}, last),
        (4, {}, None),
    ):
        (tmp_path / "checkpoints" / str(step)).mkdir(parents=True)
        record = {"meta": meta | {"metrics": {"dev/step": step}}, "score": score}
        text = json.dumps({"custom_metadata": record})
        (tmp_path / "checkpoints" / str(step) / "_CHECKPOINT_METADATA").write_text(text)
    assert dev_metrics(Workdir(tmp_path)) == {"dev/step": best}
    assert dev_metrics(Workdir(tmp_path), "last") == {"dev/step": 4}


@pytest.mark.parametrize(
    ("measure", "higher"),
    [
        ("loss", False),
        ("dev/mlm_loss", False),
        ("dev/perplexity", False),
        ("dev/median_rank", False),
        ("dev/recall_1", True),
        ("dev/accuracy", True),
        ("dev/bleu", True),
        ("dev/ter", False),
        ("dev/eed", False),
        ("dev/character", False),
    ],
)
def test_whether_higher_values_are_better(measure, higher):
    assert higher_is_better(measure) == higher
    rows = [{"step": 1, measure: 0.42}, {"step": 2, measure: 0.39}]
    assert best_step(rows, measure) == (1 if higher else 2)


def test_the_best_step():
    rows = [{"step": n, "dev/mlm_loss": abs(n - 4.0), "dev/f1": abs(n - 4.0)} for n in range(7)] + [{"step": 9}]
    assert best_step(rows, "dev/mlm_loss") == 4
    assert best_step(rows, "dev/f1") == 0
    assert best_step([*rows, {"step": 8, "dev/f1": None}], "dev/bleu") == math.inf
