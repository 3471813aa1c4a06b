"""Speech, from recordings to text: shorter sources, masks in training, and the laws of text."""

import functools
import json
import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax import config as configs
from nmt_jax.commands import translate
from nmt_jax.data.readers.audio import SpokenSentences
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.losses.ctc import ctc_loss
from nmt_jax.losses.step import Step
from nmt_jax.models.layers.features import Features, source_mask
from nmt_jax.tasks.translate import Translate
from nmt_jax.training.run import train
from tests.conftest import ROOT, with_devices
from tests.fixtures.parameters import draw_parameters
from tests.fixtures.speech import needs_espeak

PAGE = f"{ROOT}/configs/listen_attend_spell.py:smoke=true"
TRANSFORMER = f"{ROOT}/configs/listen_attend_spell.py:smoke=true,model=transformer"
MASKS = {"data.spec_augment.frequency_masks": "1", "data.spec_augment.time_masks": "1"}


@functools.cache
def make(**changes):
    """The task without what is random, random parameters, a batch, and the loss of a training step."""
    off = {"model.dropout": "0.0", "loss.label_smoothing": "0.0", "data.spec_augment.frequency_masks": "0"}
    task = Translate(configs.load(PAGE, off | changes), pathlib.Path("unused"), sharding.make_mesh())
    task.stand_in()  # nothing is spoken
    rows = np.random.default_rng(0).normal(size=(12, 40)).astype(np.float32)
    batch = task.reader.fill([rows, rows[:7]], (2, 12)) | {"target": np.array([[5, 6, 3], [7, 3, 0]], np.int32)}

    def loss(params, number):
        return task.loss_fn(params, batch, Step(number, jax.random.fold_in(jax.random.key(0), number)))[0]

    return task, draw_parameters(task.init, seed=1), batch, jax.jit(loss)


def test_bands_are_masked_in_training_only():
    task, params, batch, loss = make(**MASKS)
    first, second, plain = float(loss(params, 1)), float(loss(params, 2)), float(make()[3](params, 1))
    assert float(loss(params, 1)) == first  # a pure function of the seed and the step
    assert abs(first - second) > 1e-3
    assert abs(first - plain) > 1e-3
    assert float(make()[3](params, 2)) == plain
    assert "random" in str(jax.make_jaxpr(loss)(params, 1))
    assert "random" not in str(jax.make_jaxpr(lambda params: task.loss_fn(params, batch, None))(params))


def test_the_loss_in_training_is_a_weighted_mean_with_that_of_ctc():
    task, params, batch, loss = make()
    source = Features(batch["source"], batch["source_lengths"])
    logits, out = jax.jit(task.model.apply)({"params": params}, source, batch["target"])
    assert out["ctc"].shape[:2] == (2, 3)  # of 12 rows
    ctc = float(jnp.sum(ctc_loss(out["ctc"], source_mask(source, 4), batch["target"])))
    chosen = np.take_along_axis(np.array(jax.nn.log_softmax(logits)), batch["target"][..., None], axis=2)[..., 0]
    attention = -float(chosen[batch["target"] > 0].sum())
    assert ctc > 0
    assert float(loss(params, 0)) == pytest.approx(0.7 * attention + 0.3 * ctc, rel=1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"data.kind": "features", "data.feature_width": "3"},
            "config.data.kind='features': the corpus 'speech' needs",
        ),
        ({"data.target": "de"}, "config.data.target='de': the embedded speech is in en"),
        ({"data.corpus": "grammar", "data.kind": "text"}, r"config\.data\.source='speech': must be en or de"),
        ({"model.pyramid_layers": "3"}, r"config\.model: pyramid_layers=3 must be 0 to num_encoder_layers"),
    ],
)
def test_settings_that_do_not_fit_are_errors(changes, message):
    with pytest.raises(UserError, match=message):
        make(**changes)


@pytest.mark.parametrize("key", ["loss.ctc", "model.subsampling_layers", "data.spec_augment.time_masks"])
def test_text_has_no_rows_to_halve_or_to_mask(key):
    with pytest.raises(
        UserError, match=rf"config\.{key}=.+: needs one source of features or recordings, but data\.kind='text'"
    ):
        configs.load(f"{ROOT}/configs/quickstart.py:smoke=true", {key: "0.1" if key == "loss.ctc" else "1"})


# With real trainings


def losses(workdir):
    rows = map(json.loads, (workdir / "metrics.jsonl").read_text().splitlines())
    return {row["step"]: row["loss"] for row in rows if "loss" in row}


@needs_espeak
@pytest.mark.slow
def test_eight_devices_change_nothing_and_states_are_numbered(tmp_path):
    changes = MASKS | {"data.cache": str(tmp_path / "cache"), "eval.max_segments": "0", "train.steps": "2"}
    changes |= {"train.log_every": "1", "train.early_stopping_metric": "loss", "train.eval_every": "2"}
    train(TRANSFORMER, tmp_path / "one", changes)
    command = [sys.executable, "-m", "nmt_jax", "train", f"--config={TRANSFORMER}", f"--workdir={tmp_path}/eight"]
    command += [f"--config.{key}={value}" for key, value in changes.items()]
    finished = subprocess.run(command, env=with_devices(8), cwd=ROOT, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    one, eight = losses(tmp_path / "one"), losses(tmp_path / "eight")
    assert sorted(one) == sorted(eight) == [1, 2]
    np.testing.assert_allclose([eight[step] for step in one], list(one.values()), atol=2e-5)
    names = ["speech:dev:0", "", "speech:dev:1"]
    together = [best[0] for best in translate.run(tmp_path / "one", names, beam_size=2, with_attention=True)]
    assert together[1].text == ""
    scored = together[0].scored
    states = -(-len(SpokenSentences(40).read(names[0])) // 4)
    assert scored.source_pieces == [f"▁{state}" for state in range(states)]
    np.testing.assert_allclose(scored.attention.sum(axis=1), 1, rtol=1e-5)
