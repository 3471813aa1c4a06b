"""Parameters that are kept are those of the checkpoints, and none are used after a checkpoint changed."""

import functools
import shutil

import jax
import numpy as np
import pytest

from nmt_jax.checkpoints import kept_parameters, reading
from nmt_jax.distributed import sharding
from tests.nmt_jax.checkpoints.test_checkpoint import save_all

SHARDINGS = functools.partial(sharding.shard_state, mesh=sharding.make_mesh(devices=jax.devices()[:1]))


@pytest.fixture
def workdir(tmp_path):
    """A workdir with three checkpoints."""
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "cache"))
    save_all(tmp_path / "run/checkpoints", [1, 2, 3], scores={1: 0.1, 2: 0.3, 3: 0.2})
    yield tmp_path / "run"
    jax.config.update("jax_compilation_cache_dir", before)


def load(workdir, which):
    """The parameters, and whether checkpoints were read for them."""
    read = []
    with pytest.MonkeyPatch.context() as patch:
        original = reading.load_params
        patch.setattr(reading, "load_params", lambda *given, **more: read.append(1) or original(*given, **more))
        return kept_parameters.load(workdir, which, SHARDINGS), bool(read)


def same(first, second):
    equal = jax.tree.map(lambda a, b: np.array_equal(a, b) and a.sharding == b.sharding, first, second)
    return jax.tree.all(equal)


@pytest.mark.parametrize("which", ["best", "last", 2, 5])
def test_kept_parameters_are_those_of_the_checkpoints(which, workdir, capsys):
    first, read = load(workdir, which)
    said = capsys.readouterr().err
    second, again = load(workdir, which)
    assert (read, again) == (True, False)
    assert same(first, second)
    assert capsys.readouterr().err == said
    assert ("averaging 3 checkpoints instead of 5" in said) == (which == 5)


def test_large_parameters_are_not_kept(workdir, monkeypatch):
    monkeypatch.setattr(kept_parameters, "LARGEST", 1)
    assert load(workdir, "best")[1]
    assert load(workdir, "best")[1]


def test_after_a_checkpoint_changed_checkpoints_are_read(workdir):
    best, _ = load(workdir, "best")
    shutil.rmtree(workdir / "checkpoints/2")
    other, read = load(workdir, "best")
    assert read
    assert not same(best, other)


def test_damage_is_reported_each_time(workdir, capsys):
    load(workdir, "best")
    shutil.rmtree(workdir / "checkpoints/2/params/d")
    for _ in range(2):
        assert load(workdir, "best")[1]
        assert "checkpoints/2: damaged" in capsys.readouterr().err


def test_a_damaged_file_of_kept_parameters_is_one_warning(workdir):
    first, _ = load(workdir, "last")
    (file,) = (workdir.parent / "cache/parameters").iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.warns(UserWarning, match="damaged, and made again"):
        second, read = load(workdir, "last")
    assert read
    assert same(first, second)
    assert not load(workdir, "last")[1]
