"""Tagging over word vectors and ELMo features."""

import jax
import numpy as np
import pytest
from ml_collections import ConfigDict

from nmt_jax import __main__ as cli
from nmt_jax import config as configs
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.models.feature_tagger import Model
from nmt_jax.pretrained.elmo_features import elmo_features
from nmt_jax.reporting.plot_kinds import plot_layers
from nmt_jax.tasks.registry import make_task
from nmt_jax.tasks.tag import NO_TAG
from nmt_jax.training.run import train
from tests.conftest import ROOT
from tests.nmt_jax.tasks.test_tag import conll

PAGE = f"{ROOT}/configs/elmo_tagger.py:smoke=true"
SENTENCES = [["anna", "was", "in", "Paris", "."], [], ["Neverseen", "Paris"], ["karl"] * 40]
ELMO = np.random.default_rng(0).normal(size=(1, 4, 3, 6)).astype(np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, elmo_workdir):
    folder = tmp_path_factory.mktemp("data")
    (folder / "train.conll").write_text(conll(60))
    (folder / "dev.conll").write_text(conll(12))
    words = ["anna", "karl", "was", "in", "paris", "."]  # bonn has none
    rows = np.random.default_rng(0).normal(size=(len(words), 5))
    lines = [" ".join([word, *map(str, row)]) for word, row in zip(words, rows, strict=True)]
    (folder / "vectors.txt").write_text("\n".join(lines) + "\n")
    (folder / "elmo").symlink_to(elmo_workdir)
    return folder


def settings(folder, **changes) -> dict[str, str]:
    found = {
        "data.corpus": "files",
        "data.directory": folder,
        "data.train": "train.conll",
        "data.dev": "dev.conll",
        "data.scheme": "bio",
        "data.vectors": folder / "vectors.txt",
        "data.elmo": folder / "elmo",
        "data.cache": folder / "cache",
        "vocab.size": "0",
        "optimizer.schedule": "constant",
        "optimizer.learning_rate": "0.02",
        "optimizer.warmup_steps": "1",
        "model.dropout": "0.0",
        "train.steps": "40",
        "train.eval_every": "40",
        "train.checkpoint_every": "40",
    }
    return {key: str(value) for key, value in (found | changes).items()}


def make(folder, workdir, **changes):
    config = ConfigDict(configs.load(PAGE, settings(folder, **changes)).to_dict())
    return make_task(config, workdir, sharding.make_mesh())


@pytest.fixture(scope="module")
def task(folder, tmp_path_factory):
    return make(folder, tmp_path_factory.mktemp("w"))


@pytest.fixture(scope="module")
def params(task):
    return jax.jit(task.init)(jax.random.key(0))


@pytest.fixture(scope="module")
def workdir(folder, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("run") / "tagger"
    metrics = train(PAGE, workdir, settings(folder))
    assert metrics["dev/f1"] == metrics["dev/accuracy"] == 100
    return workdir


@pytest.mark.slow
def test_every_word_has_its_features(task, folder):
    elmo = elmo_features(folder / "elmo", SENTENCES)
    for sentence, words, expected in zip(task._sentences(SENTENCES), SENTENCES, elmo, strict=True):
        assert [len(row["ids"]) for row in sentence.rows] == {40: [32, 8], 0: []}.get(len(words), [len(words)])
        if words:
            found = np.concatenate([row["elmo"] for row in sentence.rows])
            np.testing.assert_allclose(found, expected.swapaxes(0, 1), atol=1e-6)
    (row,) = task._sentences([["in", "In", "bonn"]])[0].rows
    np.testing.assert_array_equal(row["vectors"][0], row["vectors"][1])  # as written, else in lower case
    assert np.abs(row["vectors"]).max(axis=1).astype(bool).tolist() == [True, True, False]


def test_batches_hold_features_and_tags(task):
    batch = task.batches(1)[0]
    assert batch["vectors"].shape == (*batch["mask"].shape, 5)
    assert batch["elmo"].shape == (*batch["mask"].shape, 3, 24)
    np.testing.assert_array_equal(batch["mask"], batch["tags"] != NO_TAG)
    np.testing.assert_array_equal(batch["mask"], np.abs(batch["elmo"]).max(axis=(2, 3)) > 0)
    dummy = task.dummy_batch(task.batches(1).shapes[0])
    assert {n: (a.shape, a.dtype) for n, a in dummy.items()} == {n: (a.shape, a.dtype) for n, a in batch.items()}


def model_and_variables(**fields):
    """The variables of a model without word embeddings, and (variables, features of ELMo) -> outputs."""
    model = Model(vocab_size=0, num_outputs=2, **fields)
    words, mask = np.zeros(ELMO.shape[:2], np.int32), np.ones(ELMO.shape[:2], bool)
    variables = jax.jit(model.init)(jax.random.key(0), words, mask, None, ELMO)
    return variables, lambda variables, elmo: model.apply(variables, words, mask, None, elmo)


def test_a_mixture_is_initialised_to_the_mean_of_all_layers(params):
    assert set(params) == {"mixture_weights", "mixture_scale", "output", "states"}
    assert params["mixture_weights"].tolist() == [0, 0, 0]
    variables, apply = model_and_variables(d_hidden=0)
    output = jax.tree.map(np.asarray, variables["params"]["output"])
    mean = ELMO.mean(axis=2) @ output["kernel"] + output["bias"]
    np.testing.assert_allclose(jax.jit(apply)(variables, ELMO), mean, atol=1e-5)
    gradient = jax.jit(jax.grad(lambda v: apply(v, ELMO)[0, 0, 0]))(variables)["params"]
    assert np.abs(gradient["mixture_weights"]).min() > 0


def test_a_single_layer_can_be_used():
    variables, apply = model_and_variables(layers="1")
    assert "mixture_weights" not in variables["params"]
    apply = jax.jit(apply)
    other = ELMO.copy()
    other[..., [0, 2], :] += 1.0
    np.testing.assert_array_equal(apply(variables, ELMO), apply(variables, other))


def test_predictions_do_not_depend_on_other_sentences(task, params):
    whole = task.predict(params, SENTENCES)
    for words, found in zip(SENTENCES, whole, strict=True):
        (alone,) = task.predict(params, [words])
        assert len(found.tags) == len(words)
        np.testing.assert_allclose(alone.probabilities, found.probabilities, atol=1e-5)


def test_only_features_of_a_corpus_are_cached(folder, task, params, monkeypatch):
    task.train_corpus()
    task.evaluate(params)
    before = sorted((folder / "cache").rglob("elmo-*.npz"))
    assert len(before) == 2
    task.predict(params, SENTENCES)
    assert sorted((folder / "cache").rglob("elmo-*.npz")) == before
    again = make(folder, task.workdir)
    monkeypatch.setattr(type(task._elmo), "features", lambda *_: pytest.fail("computed again"))
    assert again.evaluate(params) == task.evaluate(params)


@pytest.mark.slow
def test_changed_features_are_an_error(folder, workdir):
    with pytest.raises(UserError, match=r"config.data.vectors='': this workdir was started with something else"):
        train(PAGE, workdir, settings(folder, **{"data.vectors": ""}))


@pytest.mark.slow
def test_the_layer_weights_can_be_plotted(folder, workdir, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    table = plot_layers([str(workdir)], tmp_path / "layers.png")[0].split("\n")
    assert table[0].split("\t") == ["run", "gamma", "layer 0", "layer 1", "layer 2"]
    name, gamma, *shares = table[1].split("\t")
    assert name == "tagger"
    assert float(gamma) != 1
    assert sum(map(float, shares)) == pytest.approx(1, abs=2e-3)
    assert len(set(shares)) == 3  # learned
    assert (tmp_path / "layers.png").read_bytes().startswith(b"\x89PNG")
    assert cli.main(["plot", "--kind=layers", f"--workdir={workdir}"]) == 0
    assert capsys.readouterr().out.split("\n") == [*table, str(workdir / "layers.png"), ""]
    assert cli.main(["plot", "--kind=layers"]) == 2
    assert "needs workdirs of runs" in capsys.readouterr().err
    with pytest.raises(UserError, match="the run has no mixture of layers"):
        plot_layers([str(folder / "elmo")], tmp_path / "no.png")


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"data.vectors": "", "data.elmo": ""}, "config.data.vectors, config.data.elmo, config.vocab.size: set at"),
        ({"data.vectors": "nowhere"}, "config.data.vectors: nowhere: cannot be read"),
        ({"data.elmo": "nowhere"}, "config.data.elmo: "),
        ({"model.layers": "3"}, "config.model.layers=3: use mixture, or a layer of ELMo, 0 to 2"),
        ({"model.layers": "top"}, "config.model: layers='top': use mixture or"),
        ({"model.d_hidden": "3"}, "config.model: d_hidden=3 must be an even number"),
        ({"data.max_length": "0"}, "config.data.max_length=0: must be at least 1"),
    ],
)
def test_invalid_settings_are_reported_at_the_start(folder, tmp_path, changes, line):
    with pytest.raises(UserError, match=line):
        train(PAGE, tmp_path / "w", settings(folder, **changes))
