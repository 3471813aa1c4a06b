"""Training on packed rows: the same loss per token as without packing, over the same items."""

import jax
import numpy as np
import pytest

from nmt_jax import config as configs
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.tasks.registry import make_task
from tests.conftest import ROOT
from tests.fixtures.parameters import draw_parameters

PAGES = {"translate": ("quickstart", {})}


@pytest.fixture(scope="module", params=PAGES)
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


def test_the_loss_per_token_of_an_epoch_is_the_same(tasks):
    params = draw_parameters(tasks[0].init)
    totals = []
    for task in tasks:
        batches = task.batches(1000)
        epoch = (batches[number] for number in range(batches.batches_per_epoch))
        totals.append(task._totals(task._eval_loss, params, epoch))
    (packed, packed_weight), (apart, weight) = totals
    assert packed_weight == weight > 0
    assert packed / weight == pytest.approx(apart / weight, abs=1e-5)


def test_less_of_a_batch_is_padding(tasks):
    packed, apart = (task.batches(1).padding for task in tasks)
    assert set(packed) == set(apart)
    assert sum(packed.values()) < 0.6 * sum(apart.values())


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
            r"config\.model\.max_positions=100: packed rows have data\.max_length=128 positions",
        ),
        ("glue", {}, r"unknown config key 'data\.packing'"),
    ],
)
def test_packing_is_refused_where_it_makes_no_sense(page, changes, message):
    with pytest.raises(UserError, match=message):
        configs.load(f"{ROOT}/configs/{page}.py", {**changes, "data.packing": "true"})
