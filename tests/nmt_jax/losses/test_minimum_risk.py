"""Minimum-risk training of a tiny Transformer; also a program, that prints a loss on the devices it is given."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from metrics_jax import TER, ChrF
from nmt_jax import config as configs
from nmt_jax.data.vocabulary.vocab import EOS, PAD
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.losses.minimum_risk import distinct
from nmt_jax.losses.step import Step
from nmt_jax.tasks.translate import Translate
from tests.conftest import ROOT, with_devices


def task(folder, page="quickstart", **risk):
    settings = {f"loss.risk.{name}": str(value) for name, value in {"metric": "chrf", "num_samples": 3, **risk}.items()}
    settings |= {"data.cache": str(folder / "cache"), "decode.max_length_offset": "2", "train.batch_tokens": "128"}
    return Translate(configs.load(f"{ROOT}/configs/{page}.py:smoke=true", settings), folder, sharding.make_mesh())


def run(one):
    """A task -> its parameters, a batch, and (parameters, step) -> loss and gradient, compiled."""
    batch = sharding.shard_batch(one.batches(1)[0], one.mesh)

    def loss(params, number):
        total, weight = one.loss_fn(params, batch, Step(number, jax.random.fold_in(jax.random.key(1), number)))
        return total / weight

    return jax.jit(one.init)(jax.random.key(0)), batch, jax.jit(jax.value_and_grad(loss))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A task of pure risk at a sharpness that lets a few steps matter, with what `run` makes of it."""
    one = task(tmp_path_factory.mktemp("risk"), sharpness=0.2)
    return one, *run(one)


norm = jax.jit(optax.tree.norm)


def judged_by(one, monkeypatch, segments):
    """Let the compiled step ask (hypotheses, references) -> scores of 0 to 1."""

    class Judge:
        name, higher_is_better = "toy", True

        def __call__(self, hypotheses, references):
            return SimpleNamespace(segments=segments(hypotheses, references))

    monkeypatch.setitem(one.minimum_risk.__dict__, "metric", Judge())


@pytest.mark.slow
def test_a_step_hangs_on_its_key_alone(trained):
    _, params, _, step = trained
    loss, gradient = step(params, 0)
    assert 0 < float(loss) < 1
    assert np.isfinite(norm(gradient))
    assert norm(gradient) > 0
    jax.tree.map(np.testing.assert_array_equal, (loss, gradient), step(params, 0))
    assert float(step(params, 1)[0]) != float(loss)


def test_candidates_of_one_risk_have_no_gradient(trained, monkeypatch):
    one, params, _, step = trained
    judged_by(one, monkeypatch, lambda hypotheses, references: np.full(len(hypotheses), 0.25))
    loss, gradient = step(params, 0)
    assert float(loss) == pytest.approx(0.75)
    assert norm(gradient) < 1e-6


@pytest.mark.slow
def test_the_reward_of_what_is_said_rises(trained, monkeypatch):
    one, params, _, step = trained
    rewards = []

    def letters(hypotheses, references):
        """The share of e, whatever the reference says."""
        scores = np.array([text.count("e") / max(len(text), 1) for text in hypotheses])
        rewards.append(scores[[a != b for a, b in zip(hypotheses, references, strict=True)]].mean())
        return scores

    judged_by(one, monkeypatch, letters)
    optimizer = optax.adam(0.05)
    state = jax.jit(optimizer.init)(params)

    @jax.jit
    def update(gradient, state, params):
        change, state = optimizer.update(gradient, state)
        return optax.apply_updates(params, change), state

    for number in range(30):
        params, state = update(step(params, number)[1], state, params)
    jax.block_until_ready(params)
    assert np.mean(rewards[-5:]) > 1.5 * np.mean(rewards[:3])


def test_risks_are_the_metrics_own_from_0_the_best(trained, monkeypatch):
    one = trained[0]
    vocab = one.vocabularies[1]
    texts = [["Ein Hund läuft.", "Ein Hund.", "Ein Hund.", ""], ["Zwei Kinder", "Zwei Kinder", "und", "Ein Hund."]]
    candidates = np.full((2, 4, 40), PAD, np.int32)
    for line, row in zip(texts, candidates, strict=True):
        for text, ids in zip(line, row, strict=True):
            pieces = [*vocab.encode(text), EOS]
            ids[: len(pieces)] = pieces
    for metric in (ChrF(), TER()):
        monkeypatch.setitem(one.minimum_risk.__dict__, "metric", metric)
        for line, risks in zip(texts, one.minimum_risk.score(candidates), strict=True):
            own = metric(line, [line[0]] * 4).segments / 100
            np.testing.assert_allclose(risks, 1 - own if metric.higher_is_better else own, atol=1e-6)
            assert risks[0] == pytest.approx(0, abs=1e-6)


def test_candidates_are_drawn_for_lines_not_for_padding(trained):
    one, params, batch, _ = trained
    empty = {name: np.array(rows) for name, rows in batch.items()}
    for rows in empty.values():
        rows[0] = PAD
    drawn = np.asarray(jax.jit(one.minimum_risk.draw)(params, empty, jax.random.key(0)))
    assert drawn.shape == (len(batch["target"]), 3, batch["target"].shape[1] + 2)
    assert (drawn[0] == PAD).all()
    assert (drawn[1:, :, 0] != PAD).all()


def test_a_candidate_that_comes_twice_is_found():
    rows = np.array([[[4, 2, 0], [4, 5, 2], [4, 2, 0], [4, 5, 2]], [[1, 1, 1], [1, 1, 2], [1, 1, 3], [1, 1, 1]]])
    np.testing.assert_array_equal(jax.jit(distinct)(rows), [[True, True, False, False], [True, True, True, False]])


def test_without_a_metric_the_loss_is_cross_entropy_and_so_it_is_on_the_dev_set(trained, tmp_path):
    one, params, batch, _ = trained
    plain = task(tmp_path, metric="", share=0.3)
    step = Step(jnp.int32(0), jax.random.key(1))
    program = jax.make_jaxpr(plain.loss_fn)
    assert str(program(params, batch, step)) == str(jax.make_jaxpr(one._cross_entropy)(params, batch, step))
    assert str(jax.make_jaxpr(one.loss_fn)(params, batch, None)) == str(program(params, batch, None))


def test_a_share_of_the_loss_can_be_cross_entropy(tmp_path):
    mixed = task(tmp_path, share=0.25)
    mixed.__dict__["minimum_risk"] = lambda params, batch, step: (8.0, 5.0)
    mixed.__dict__["_cross_entropy"] = lambda params, batch, step: (100.0, 5.0)
    assert mixed.loss_fn({}, {}, Step(jnp.int32(0), jax.random.key(1))) == (0.25 * 8.0 + 0.75 * 100.0, 5.0)
    assert mixed.loss_fn({}, {}, None) == (100.0, 5.0)


@pytest.mark.parametrize(
    ("risk", "line"),
    [
        ({"metric": "blue"}, "no metric 'blue'; did you mean bleu"),
        ({"metric": "chrf|order:2"}, "chrf has no option 'order:2'"),
        ({"metric": "bertscore"}, "'bertscore' needs encoder, which is not available in training"),
        ({"metric": "nist"}, "'nist' depends on statistics of a whole corpus"),
        ({"metric": "sari"}, "'sari' reads sources"),
        ({"num_samples": 0}, "num_samples=0: must be at least 1"),
        ({"temperature": 0.0}, "temperature=0.0: must be more than 0"),
        ({"sharpness": 0.0}, "sharpness=0.0: must be more than 0"),
        ({"share": 1.5}, "share=1.5: must be more than 0 and at most 1"),
        ({"page": "copy_summarize"}, "not supported for models with copying"),
    ],
)
def test_what_cannot_be_meant_is_named(risk, line, tmp_path):
    with pytest.raises(UserError, match=line):
        _ = task(tmp_path, **risk).minimum_risk


@pytest.mark.slow
def test_eight_devices_find_the_loss_of_one(trained, tmp_path):
    _, params, _, step = trained
    command = [sys.executable, "-m", "tests.nmt_jax.losses.test_minimum_risk", str(tmp_path)]
    finished = subprocess.run(command, env=with_devices(8), cwd=ROOT, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    loss, gradient = step(params, 0)
    np.testing.assert_allclose([*map(float, finished.stdout.split())], [loss, norm(gradient)], rtol=1e-4)


if __name__ == "__main__":
    assert jax.device_count() == 8
    params, _, step = run(task(Path(sys.argv[1]), sharpness=0.2))
    loss, gradient = step(params, 0)
    print(float(loss), norm(gradient))
