"""Eight simulated devices compute the same as one. This file is also the program with eight devices."""

import functools
import json
import subprocess
import sys
import types
from pathlib import Path

import jax
import numpy as np
import pytest
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

from nmt_jax.checkpoints.finite import check_parameters
from nmt_jax.checkpoints.reading import load_params
from nmt_jax.checkpoints.train_state import new_state
from nmt_jax.distributed.sharding import make_mesh, replicated, shard_batch, shard_state, share
from nmt_jax.errors import UserError
from nmt_jax.training.optimizers import make_optimizer, make_schedule
from nmt_jax.training.train_step import make_train_step
from tests.conftest import ROOT, with_devices
from tests.fixtures import toy

STEPS = 20


def train(accumulate: int = 1, model: int = 1) -> list[list[float]]:
    """Loss and gradient norm of 20 steps on all devices."""
    config, mesh = toy.config(), make_mesh(model)
    task, optimizer = toy.Toy(config), make_optimizer(config.optimizer)
    state = new_state(task.init(jax.random.key(0)), optimizer, 0.9)
    shardings = shard_state(state, mesh)
    state = jax.device_put(state, shardings)
    schedule = make_schedule(config.optimizer, STEPS)
    options = {"accumulate": accumulate, "ema_decay": 0.9, "seed": 0, "shardings": shardings}
    step = make_train_step(task.loss_fn, optimizer, schedule, **options)
    history = []
    for n in range(STEPS):
        batch = shard_batch(toy.ToyBatches(STEPS)[n], mesh)
        if accumulate > 1 and n == 0:
            text = step.lower(state, batch).compile().as_text()
            assert "all-to-all" not in text, "rows must not move between devices"
        state, metrics = step(state, batch)
        history.append([float(metrics["loss"]), float(metrics["grad_norm"])])
    assert jax.tree.map(lambda leaf: leaf.sharding, state) == shardings
    if model > 1:
        assert state.opt_state[0].mu["embedding"]["table"].sharding.spec == PartitionSpec("model")
    assert step._cache_size() == len(toy.SHAPES)
    return history


def load_split(workdir: Path) -> None:
    """Parameters are read from a workdir in their shardings, also the mean of several checkpoints."""
    for which in ("last", 2):
        whole = load_params(workdir, which)
        split = load_params(workdir, which, functools.partial(shard_state, mesh=make_mesh(2)))
        assert split["embedding"]["table"].sharding.spec == PartitionSpec("model")
        jax.tree.map(np.testing.assert_array_equal, whole, split)
    broken = jax.device_put(np.array([1.0, np.nan]), NamedSharding(make_mesh(2), PartitionSpec("model")))
    with pytest.raises(UserError, match="not finite"):
        check_parameters({"table": broken}, "a workdir")


if __name__ == "__main__":
    assert jax.device_count() == 8
    results = {"data": train(), "accumulated": train(accumulate=2), "model": train(model=2)}
    toy.train(Path(sys.argv[1]), **{"train.steps": 12})  # continues from the checkpoint of one device
    load_split(Path(sys.argv[1]))
    print(json.dumps(results))


@pytest.fixture(scope="module")
def eight(tmp_path_factory):
    """The results of eight devices, and a workdir started with one device and continued with eight."""
    workdir = tmp_path_factory.mktemp("workdir")
    toy.train(workdir, **{"train.steps": 6})
    command = [sys.executable, "-m", "tests.nmt_jax.distributed.test_sharding", str(workdir)]
    process = subprocess.run(command, cwd=ROOT, env=with_devices(8), capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    assert "continued at step 6" in process.stderr
    return json.loads(process.stdout), workdir


@pytest.mark.slow
@pytest.mark.parametrize("name", ["data", "accumulated", "model"])
def test_eight_devices_equal_one(eight, name):
    one = train(accumulate=2 if name == "accumulated" else 1)
    np.testing.assert_allclose(eight[0][name], one, rtol=0, atol=1e-5)
    assert one[-1][0] < one[0][0] - 0.1


@pytest.mark.slow
def test_a_checkpoint_of_one_device_continues_on_eight_and_back_on_one(eight, tmp_path):
    _, workdir = eight
    toy.train(workdir, **{"train.steps": 18})
    toy.train(tmp_path, **{"train.steps": 18})
    ours, theirs = ({row["step"]: row["loss"] for row in toy.rows(d) if "loss" in row} for d in (workdir, tmp_path))
    assert ours == pytest.approx(theirs, abs=1e-5)
    assert sorted(ours) == list(range(1, 19))


def test_a_mesh_that_does_not_divide_the_devices_is_an_error():
    with pytest.raises(UserError, match=r"mesh\.model=3 does not divide the number of devices, 1"):
        make_mesh(3)


def test_batches_are_split_by_rows_and_the_state_is_replicated():
    mesh = make_mesh()
    batch = shard_batch({"source": np.ones((4, 3), np.int32)}, mesh)
    assert batch["source"].sharding.spec == PartitionSpec("data")
    assert shard_state({"kernel": np.ones((4, 2))}, mesh) == {"kernel": replicated(mesh)}


SHAPES = {  # of a Transformer's parameters
    "source_embedding": {"table": (64, 16)},
    "encoder_0": {
        "self_attention": {"query": {"kernel": (16, 16), "bias": (16,)}, "output": {"kernel": (16, 16)}},
        "ffn": {"hidden": {"kernel": (16, 32)}, "output": {"kernel": (32, 16), "bias": (16,)}},
        "ffn_residual": {"layer_norm": {"scale": (16,)}},
    },
}


def laid_out(data, model, fsdp):
    """Returns specs by name, and the fraction of all numbers on one device."""
    abstract = jax.tree.map(
        lambda shape: jax.ShapeDtypeStruct(shape, np.float32), SHAPES, is_leaf=lambda leaf: isinstance(leaf, tuple)
    )
    shardings = shard_state(abstract, AbstractMesh((data, model), ("data", "model")), fsdp)
    leaves = jax.tree.leaves_with_path(shardings)
    specs = {jax.tree_util.keystr(path, simple=True, separator="/"): tuple(leaf.spec) for path, leaf in leaves}
    sizes = jax.tree.map(lambda leaf, sharding: np.prod(sharding.shard_shape(leaf.shape)), abstract, shardings)
    return specs, sum(jax.tree.leaves(sizes)) / sum(leaf.size for leaf in jax.tree.leaves(abstract))


def test_heads_units_and_vocabulary_are_split_over_model():
    specs, share = laid_out(4, 2, False)
    assert specs == {
        "source_embedding/table": ("model",),
        "encoder_0/self_attention/query/kernel": (None, "model"),
        "encoder_0/self_attention/query/bias": ("model",),
        "encoder_0/self_attention/output/kernel": ("model",),
        "encoder_0/ffn/hidden/kernel": (None, "model"),
        "encoder_0/ffn/output/kernel": ("model",),
        "encoder_0/ffn/output/bias": (),
        "encoder_0/ffn_residual/layer_norm/scale": (),
    }
    assert share == pytest.approx(0.5, abs=0.01)


def test_fsdp_splits_remaining_axes_over_data():
    specs, share = laid_out(8, 1, True)
    assert specs["encoder_0/ffn/hidden/kernel"] == (None, "data")
    assert specs["source_embedding/table"] == (None, "data")
    assert share == pytest.approx(1 / 8, abs=0.02)
    specs, share = laid_out(4, 2, True)
    assert specs["encoder_0/ffn/hidden/kernel"] == ("data", "model")
    assert specs["source_embedding/table"] == ("model", "data")
    assert share == pytest.approx(1 / 8, abs=0.02)


def of_processes(*rows: tuple[int, ...]) -> types.SimpleNamespace:
    """What `share` reads of a mesh whose devices belong to these processes."""
    devices = np.array([[types.SimpleNamespace(process_index=process) for process in row] for row in rows])
    return types.SimpleNamespace(devices=devices, shape={"data": len(rows), "model": len(rows[0])})


@pytest.mark.parametrize(
    ("mesh", "indices"),
    [
        (of_processes((0,), (0,), (1,), (1,)), [0, 1]),
        (of_processes((0,), (0,), (1,), (1,), (1,), (1,), (0,), (0,)), [0, 1]),  # a ring, as on a slice of a TPU
        (of_processes((0,), (1,), (2,), (3,), (0,), (1,), (2,), (3,)), [0, 1, 2, 3]),
        (of_processes((0, 1), (0, 1), (2, 3), (2, 3)), [0, 0, 1, 1]),  # two processes share a copy of the model
    ],
)
def test_every_row_of_a_batch_is_built_wherever_the_devices_of_a_process_are(mesh, indices, monkeypatch):
    found = []
    for process in range(len(indices)):
        monkeypatch.setattr(jax, "process_index", lambda process=process: process)
        found.append(share(mesh))
    assert [one.index for one in found] == indices
    assert {row for one in found for row in one.of(found[0].multiple_of)} == set(range(found[0].multiple_of))


def test_processes_that_share_some_places_are_an_error(monkeypatch):
    monkeypatch.setattr(jax, "process_index", lambda: 0)
    with pytest.raises(UserError, match=r"mesh\.model=2: processes cannot share a batch equally"):
        share(of_processes((0, 0), (0, 1), (1, 1), (2, 2)))
