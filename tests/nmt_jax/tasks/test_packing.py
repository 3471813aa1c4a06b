"""Training on packed rows: the same loss per token as without packing, over the same items."""

import re

import jax
import numpy as np
import pytest

from nmt_jax import config as configs
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.tasks.registry import make_task
from nmt_jax.training.run import train
from nmt_jax.workdir import Workdir
from tests.conftest import ROOT
from tests.fixtures.parameters import draw_parameters

PAGES = {
    "translate": ("quickstart", {}),
    "pretrain": ("bert_tiny", {"model.next_sentence": "false", "model.dtype": "float32"}),
    "left_to_right": ("bert_tiny", {"model.next_sentence": "false", "model.causal": "true"}),
    "language_model": ("gpt", {"data.block_length": "32"}),
}
FAST, SLOW = ("translate", "pretrain", "language_model"), ("left_to_right",)


@pytest.fixture(scope="module", params=[*FAST, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def tasks(request, tmp_path_factory):
    """The same task with packing and without."""
    page, changes = PAGES[request.param]
    folder = tmp_path_factory.mktemp("workdir")
    return [
        make_task(
            configs.load(f"{ROOT}/configs/{page}.py:smoke=true", {**changes, "data.packing": packing}),
            folder,
            sharding.make_mesh(),
        )
        for packing in ("true", "false")
    ]


@pytest.mark.slow
def test_the_loss_per_token_of_an_epoch_is_the_same(tasks):
    params = draw_parameters(tasks[0].init)
    totals = []
    for task in tasks:
        batches = task.batches(1000)
        epoch = (batches[number] for number in range(batches.batches_per_epoch))
        totals.append(task._totals(task._eval_loss, params, epoch))
    (packed, packed_weight), (apart, weight) = totals
    assert packed_weight == weight > 0
    # Without packing, the lines of a language model see each other.
    assert (packed / weight == pytest.approx(apart / weight, abs=1e-5)) == (task.config.task != "language_model")


def test_less_of_a_batch_is_padding(tasks):
    packed, apart = (task.batches(1).padding for task in tasks)
    assert set(packed) == set(apart)
    if tasks[0].config.task == "language_model":
        assert packed["blocks"] < 0.2  # there is none in a text without lines
    else:
        assert sum(packed.values()) < 0.9 * sum(apart.values())


def test_a_packed_language_model_reads_lines_on_their_own(tmp_path):
    packed, apart = (
        make_task(
            configs.load(f"{ROOT}/configs/gpt.py:smoke=true", {"data.packing": packing, "data.block_length": "12"}),
            tmp_path,
            sharding.make_mesh(),
        )
        for packing in ("true", "false")
    )
    params = draw_parameters(packed.init)
    lines = ["der alte Mann schläft .", "", "sie sieht das Haus nicht , und der Mann sieht es auch nicht .", "ja"]
    assert len(packed.encode(lines[2:3])) == 15  # in two parts, of which the second repeats 8 tokens
    nats, tokens = packed.surprise(params, packed.encode(lines))
    alone = [apart.surprise(params, apart.encode([line])) for line in lines]
    assert tokens == sum(count for _, count in alone) == len(packed.encode(lines))
    assert nats / tokens == pytest.approx(sum(one for one, _ in alone) / tokens, abs=1e-5)
    np.testing.assert_allclose(packed.log_probabilities(params, lines), [-one for one, _ in alone], rtol=1e-5)
    assert nats != pytest.approx(apart.surprise(params, apart.encode(lines))[0], rel=1e-4)


def test_the_dummy_batch_has_the_arrays_of_a_batch(tasks):
    for task in tasks:
        batches = task.batches(1)
        dummy, batch = task.dummy_batch(batches.shapes[0]), batches[0]
        assert dummy.keys() == batch.keys()
        for name, array in dummy.items():
            if len(batches.shapes) == 1:
                assert (array.shape, array.dtype) == (batch[name].shape, batch[name].dtype)
    gradient = jax.eval_shape(
        jax.grad(lambda params: task.loss_fn(params, dummy, None)[0]), jax.eval_shape(task.init, jax.random.key(0))
    )
    assert all(np.issubdtype(leaf.dtype, np.floating) for leaf in jax.tree.leaves(gradient))


@pytest.mark.slow
@pytest.mark.parametrize(("page", "changes"), PAGES.values(), ids=PAGES)
def test_a_packed_run_continues_where_it_was_stopped(page, changes, tmp_path, capsys):
    every = {"train.log_every": "1", "train.checkpoint_every": "1", "train.eval_every": "4", **changes}

    def run(name, steps):
        settings = {**every, "data.packing": "true", "train.steps": str(steps)}
        train(f"{ROOT}/configs/{page}.py:smoke=true", tmp_path / name, settings)
        return [row["loss"] for row in Workdir(tmp_path / name).metrics() if "loss" in row]

    whole = run("whole", 4)
    assert re.search(r"^padding: [\d.]+% of ", capsys.readouterr().err, re.MULTILINE)
    run("stopped", 2)
    assert run("stopped", 4) == whole
    assert len(whole) == 4


@pytest.mark.parametrize(
    ("page", "changes", "message"),
    [
        ("rnn_luong", {}, r"config\.data\.packing=True: model_name='rnn' .* use model_name='transformer'"),
        (
            "quickstart",
            {"loss.risk.metric": "chrf"},
            r"config\.loss\.risk\.metric='.*': minimum risk needs one sentence per row",
        ),
        (
            "quickstart",
            {"model.positions": "learned", "model.max_positions": "100", "data.max_length": "128"},
            r"config\.model\.max_positions=100: sequences have up to data\.max_length=128 positions",
        ),
        ("rnn_lm", {}, r"config\.data\.packing=True: model_name='rnn_lm' .* use model_name='gpt'"),
        ("bert_tiny", {}, r"config\.model\.next_sentence=True: the lengths of random next sentences are not known"),
        ("elmo", {}, r"unknown config key 'data\.packing'"),
        ("glue", {}, r"unknown config key 'data\.packing'"),
    ],
)
def test_packing_is_refused_where_it_makes_no_sense(page, changes, message):
    with pytest.raises(UserError, match=message):
        configs.load(f"{ROOT}/configs/{page}.py", {**changes, "data.packing": "true"})
