"""Fine-tuning on sentences: pretrained and frozen weights, scores and labels, complete workdirs."""

import json
import shutil

import flax.traverse_util
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ml_collections import ConfigDict

from metrics_jax.prediction.correlation import pearson
from nmt_jax import config as configs
from nmt_jax import pretrained, schema
from nmt_jax.commands import classify
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.losses.step import Step
from nmt_jax.tasks.fine_tuning import check_model
from nmt_jax.tasks.registry import make_task
from nmt_jax.training.run import train
from tests.conftest import ROOT
from tests.fixtures import tiny_encoder_folder as tiny_encoder
from tests.fixtures.family_folders import ENCODERS, write_folder
from tests.fixtures.parameters import draw_parameters

GOOD, BAD = ("good", "great"), ("bad", "dull")


def rows(count: int, pair: bool) -> str:
    """Single sentences: whether a film is good. Pairs: the number of equal words, as a score."""
    lines = ["sentence\tlabel" if not pair else "one\ttwo\tlabel"]
    for number in range(count):
        good = number % 2
        words = f"the {(BAD, GOOD)[good][number // 2 % 2]} film" + ("", " was", " was a man")[number // 4 % 3]
        other = f"{'the' if number % 3 else 'karl'} {(GOOD if number % 5 else BAD)[0]} film"
        score = sum(word in other.split() for word in words.split())
        lines.append(f"{words}\t{other}\t{score + 0.5}" if pair else f"{words}\t{('bad', 'good')[good]}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    tiny_encoder.write(folder / "encoder")
    for name, pair in (("single", False), ("pair", True)):
        (folder / f"{name}.train.tsv").write_text(rows(60, pair))
        (folder / f"{name}.dev.tsv").write_text(rows(23, pair))
    return folder


def settings(folder, kind="single", **changes) -> dict[str, str]:
    """Overrides of the config for one kind of rows."""
    found = {
        "data.corpus": "files",
        "data.directory": folder,
        "data.train": f"{kind}.train.tsv",
        "data.dev": f"{kind}.dev.tsv",
        "data.texts": '["one", "two"]' if kind == "pair" else '["sentence"]',
        "data.scores": "true" if kind == "pair" else "false",
        "train.early_stopping_metric": "spearman" if kind == "pair" else "accuracy",
        "encoder.place": folder / "encoder",
        "encoder.dropout": "0.1",
        "data.num_buckets": "1",
        "optimizer.schedule": "constant",
        "optimizer.learning_rate": "0.01",
        "optimizer.warmup_steps": "1",
        "train.steps": "40",
        "train.eval_every": "20",
        "train.checkpoint_every": "20",
    }
    return {key: str(value) for key, value in (found | changes).items()}


def task_of(folder, workdir, kind="single", **changes):
    given = settings(folder, kind, **changes)
    name = given.pop("model_name", "sentence_head")
    config = ConfigDict(configs.load(f"{ROOT}/configs/glue.py:smoke=true", given).to_dict())
    if name != "sentence_head":
        config.model_name, config.model = name, ConfigDict(schema.defaults(name, "sentences")["model"])
    return make_task(config, workdir, sharding.make_mesh())


@pytest.fixture(scope="module")
def trained(folder, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("run") / "w"
    return workdir, train(f"{ROOT}/configs/glue.py:smoke=true", workdir, settings(folder))


@pytest.mark.slow
def test_it_learns_and_the_workdir_is_complete(trained, folder, tmp_path):
    workdir, metrics = trained
    assert metrics["dev/accuracy"] == metrics["dev/f1"] == metrics["dev/matthews"] == 100
    lines = ["the great film", "", "the dull film was", "the\tgood film"]
    found = [result.label for result in classify.run(workdir, lines)[1]]
    assert found == ["good", "", "bad", "good"]
    moved = tmp_path / "moved"
    shutil.copytree(workdir, moved)
    (folder / "encoder").rename(folder / "gone")
    try:
        assert [result.label for result in classify.run(moved, lines)[1]] == found
    finally:
        (folder / "gone").rename(folder / "encoder")


@pytest.mark.slow
def test_another_encoder_in_a_started_workdir_is_an_error(trained, folder):
    workdir, _ = trained
    for key, value in (("encoder.place", "other"), ("encoder.layers", "mixture"), ("encoder.frozen", "true")):
        with pytest.raises(
            UserError, match=rf"this workdir contains a different model: {key} was .*, now {value!r}|now True"
        ):
            train(f"{ROOT}/configs/glue.py:smoke=true", workdir, settings(folder, **{key: value}))


@pytest.mark.slow
def test_a_resumed_run_equals_an_uninterrupted_one(folder, tmp_path):
    logs = []
    for name, stops in (("whole", (12,)), ("parts", (5, 12))):
        for steps in stops:
            changes = {"train.steps": steps, "train.eval_every": 20, "optimizer.learning_rate": 0.001}
            train(f"{ROOT}/configs/glue.py:smoke=true", tmp_path / name, settings(folder, "pair", **changes))
        lines = map(json.loads, (tmp_path / name / "metrics.jsonl").read_text().splitlines())
        logs.append({line["step"]: line["loss"] for line in lines if "loss" in line})
    assert logs[0] == logs[1]
    assert len(logs[0]) == 12


@pytest.mark.slow
def test_training_starts_with_the_pretrained_weights(folder, tmp_path):
    task = task_of(folder, tmp_path)
    drawn = jax.jit(task.init)(jax.random.key(0))
    params = task.warm_start(drawn)
    given = pretrained.load(folder / "encoder")
    flat = flax.traverse_util.flatten_dict(given.params, sep="/")
    found = flax.traverse_util.flatten_dict(params["encoder"], sep="/")
    assert {name for name in flat if not name.startswith("pooler")} == set(found)
    assert all(np.array_equal(flat[name], found[name]) for name in found)
    assert params["output"] is drawn["output"]
    description = json.loads((tmp_path / "vocab" / "encoder.json").read_text())
    assert (description["kind"], description["max_length"]) == ("bert", 48)
    tiny_encoder.write(tmp_path / "other", d_model=8)
    with pytest.raises(UserError, match=r"the weights do not fit the encoder described in .*; use a new --workdir"):
        task_of(folder, tmp_path, **{"encoder.place": tmp_path / "other"}).warm_start(drawn)


@pytest.mark.parametrize("kind", ["bert", "albert"])
def test_the_first_layers_of_an_encoder_compute_what_they_did(folder, tmp_path, kind):
    tiny_encoder.write(tmp_path / kind, kind, **RELATIVES.get(kind, {}))
    whole = pretrained.load(tmp_path / kind)
    count = whole.model.num_layers
    assert count > 1
    task = task_of(folder, tmp_path / "w", **{"encoder.place": tmp_path / kind, "encoder.keep_layers": 1})
    batch = task._inputs(task.dummy_batch((2, 8, 1)))
    params = task.warm_start(draw_parameters(task.model.init, *batch)["params"])
    assert task.description["fields"]["num_layers"] == 1
    kept = task.model.encoder.apply({"params": params["encoder"]}, *batch)[0]
    assert np.array_equal(kept, whole.model.apply({"params": whole.params}, *batch)[0][:2])
    too_many = task_of(folder, tmp_path / "v", **{"encoder.place": tmp_path / kind, "encoder.keep_layers": count + 1})
    message = rf"keep_layers={count + 1}: the encoder has {count} layers; keep at most {count}"
    with pytest.raises(UserError, match=message):
        too_many.description  # noqa: B018


def test_layers_of_a_random_encoder_are_not_kept(folder, tmp_path):
    config = task_of(folder, tmp_path, **{"encoder.place": "", "encoder.keep_layers": 1}).config
    with pytest.raises(UserError, match=r"is for pretrained encoders; name one in config\.encoder\.place"):
        check_model(config)


RELATIVES = {
    "rembert": {"embedding_width": 6},
    "albert": {"embedding_width": 6, "share_layers": True},
    "electra": {"embedding_width": 6, "pooler": False},
    "mpnet": {"relative_buckets": 32, "num_segments": 0, "first_position": 1},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", RELATIVES)
def test_relatives_of_bert_are_trained(folder, tmp_path, kind):
    tiny_encoder.write(tmp_path / kind, kind, **RELATIVES[kind])
    task = task_of(folder, tmp_path, **{"encoder.place": tmp_path / kind})
    params = task.warm_start(draw_parameters(task.model.init, *task._inputs(task.dummy_batch((1, 1, 1))))["params"])
    assert json.loads((tmp_path / "vocab" / "encoder.json").read_text())["kind"] == kind
    gradient = jax.jit(jax.grad(lambda params, batch: task.loss_fn(params, batch, None)[0]))
    found = flax.traverse_util.flatten_dict(gradient(params, task.batches(1)[0])["encoder"], sep="/")
    flat = flax.traverse_util.flatten_dict(pretrained.load(tmp_path / kind).params, sep="/")
    assert set(found) == {name for name in flat if not name.startswith("pooler")}
    for name, value in found.items():
        assert np.abs(value).max() > 0 or name.endswith("key/bias"), name  # a softmax ignores a bias of the keys


@pytest.mark.slow
def test_a_frozen_encoder_does_not_change(folder, tmp_path):
    changes = {"encoder.frozen": "true", "encoder.layers": "mixture", "optimizer.weight_decay": 0.0}
    page = f"{ROOT}/configs/glue.py:smoke=true"
    train(page, tmp_path / "w", settings(folder, **changes, **{"train.steps": 5}))
    from nmt_jax.checkpoints.reading import load_params

    params = load_params(tmp_path / "w", "last", sharding.replicated(sharding.make_mesh()))
    given = pretrained.load(folder / "encoder").params
    kept = {name: tree for name, tree in given.items() if name != "pooler_dense"}
    assert all(jax.tree.leaves(jax.tree.map(np.array_equal, kept, params["encoder"])))
    assert np.ptp(params["mixture_weights"]) > 0
    with pytest.raises(UserError, match=r"config\.encoder\.frozen: optimizer\.weight_decay=0\.01 would still shrink"):
        train(page, tmp_path / "v", settings(folder, **changes | {"optimizer.weight_decay": 0.01}))


@pytest.mark.slow
def test_segments_of_pairs(folder, tmp_path):
    batch = task_of(folder, tmp_path / "a", "pair").batches(1)[0]
    real = batch["mask"][:, 0]
    first = batch["ids"] == batch["ids"][0, 0]  # [CLS]
    assert (first.sum(axis=1) == real).all()
    ends = [
        np.flatnonzero(ids == ids[mask][-1]) for ids, mask in zip(batch["ids"][real], batch["mask"][real], strict=True)
    ]
    for row, (middle, end) in zip(batch["segments"][real], ends, strict=True):
        assert not row[: middle + 1].any()
        assert row[middle + 1 : end + 1].all()
        assert not row[end + 1 :].any()
    tiny_encoder.write(tmp_path / "distil", "distilbert", num_segments=0, pooler=False)
    task = task_of(folder, tmp_path / "b", "pair", **{"encoder.place": tmp_path / "distil"})
    batch = task.batches(1)[0]
    assert set(batch) == {"ids", "mask", "target"}
    params = task.warm_start(jax.jit(task.init)(jax.random.key(0)))
    assert np.isfinite(jax.jit(task.loss_fn, static_argnums=2)(params, batch, None)[0])


@pytest.mark.parametrize("kind", ["single", "pair"])
def test_padding_rows_do_not_count(folder, tmp_path, kind):
    task = task_of(folder, tmp_path, kind)
    params = draw_parameters(task.init)
    batch = {name: np.concatenate([array, 0 * array]) for name, array in task.batches(1)[0].items()}
    loss = jax.jit(task.loss_fn, static_argnums=2)
    real = int(batch["mask"][:, 0].sum())
    total, weight = loss(params, batch, None)
    less = {name: array[: len(array) // 2] for name, array in batch.items()}
    np.testing.assert_allclose((total, weight), loss(params, less, None), rtol=1e-5)
    assert float(weight) == real
    step = Step(jnp.int32(0), jax.random.key(0))
    assert np.isfinite(jax.jit(lambda params: task.loss_fn(params, less, step)[0])(params))


@pytest.mark.slow
@pytest.mark.parametrize("model_name", ["sentence_head", "siamese_head", "estimator_head"])
def test_scores_are_learned_and_predicted_as_numbers(folder, tmp_path, model_name):
    task = task_of(folder, tmp_path, "pair", model_name=model_name)
    params = task.warm_start(jax.jit(task.init)(jax.random.key(0)))
    if "output" in params:  # drawn so small that all scores are nearly the same
        params["output"]["kernel"] *= 100
    measures = task.evaluate(params)
    assert set(measures) == {f"dev/{name}" for name in task.measures}
    lines = (folder / "pair.dev.tsv").read_text().splitlines()[1:]
    texts, given = [line.split("\t")[:2] for line in lines], [float(line.split("\t")[2]) for line in lines]
    found = [float(result.label) for result in task.predict(params, texts)]
    assert 100 * pearson(found, given) == pytest.approx(measures["dev/pearson"], abs=0.1)  # four digits are written
    origin, unit = task.scales.columns["label"]
    if model_name == "siamese_head":
        assert min(given) - 1e-6 <= origin <= origin + unit <= 5
        assert all(origin - unit - 1e-3 <= score <= origin + unit + 1e-3 for score in found)
        same = task.predict(params, [(texts[0][0], texts[0][0])])[0]
        assert float(same.label) == pytest.approx(origin + unit, abs=1e-3)
    alone = [float(task.predict(params, [text])[0].label) for text in texts[:3]]
    np.testing.assert_allclose(alone, found[:3], atol=2e-4)


def test_long_pairs_are_cut_and_reported(folder, tmp_path):
    task = task_of(folder, tmp_path, "pair", **{"data.max_length": 10})
    assert task.train_corpus().lengths[:, 0].max() == 10
    report = dict(task.summary())["training texts"]
    assert "60 of 60 rows" in report
    assert "cut to 10 tokens" in report
    with pytest.raises(UserError, match=r"config\.data\.max_length=49: the encoder reads up to 48"):
        task_of(folder, tmp_path, **{"data.max_length": 49}).train_corpus()


def test_errors_name_the_row(folder, tmp_path):
    for text, kind, words in (
        ("sentence\tlabel\na\tgood\nb\tbad\nc\tgud\n", "single", r":4: .*no label 'gud'; they have bad, good"),
        ("one\ttwo\tlabel\na\tb\t1\nc\td\thigh\n", "pair", ":3: the score 'high' is not a number"),
        ("one\ttwo\tlabel\na\tb\tnan\n", "pair", ":2: the score 'nan' is not a number"),
        ("one\ttwo\tlabel\na\tb\n", "pair", ":2: 2 tab-separated fields"),
        ("one\tlabel\na\t1\n", "pair", ":1: no column 'two'"),
    ):
        path = folder / "bad.tsv"
        path.write_text(text)
        with pytest.raises(UserError, match=f"^{path}{words}"):
            task_of(folder, tmp_path, kind, **{"data.dev": "bad.tsv"}).summary()


def test_invalid_settings_are_errors(folder, tmp_path):
    t5 = write_folder(tmp_path / "t5", ENCODERS["t5"])
    page = f"{ROOT}/configs/glue.py:smoke=true"
    for changes, words in (
        ({"encoder.layers": "two"}, "layers='two': use last, mixture or"),
        ({"encoder.dtype": "float16"}, "config.encoder.dtype='float16'"),
        ({"encoder.place": "nowhere"}, "config.encoder.place: nowhere: no such folder"),
        (
            {"encoder.place": t5},
            "config.encoder.place=.*/t5: a t5 model is an encoder for metrics and cannot be trained",
        ),
        ({"encoder.layers": "9"}, "layers='9'"),
        ({"data.texts": '["a", "b", "c"]'}, "one column of text, or two"),
        ({"model.pooling": "max"}, "config.model.pooling='max'"),
        ({"model_name": "piece_head"}, "needs sentence_head, siamese_head, estimator_head"),
    ):
        with pytest.raises(UserError, match=words):
            train(page, tmp_path / next(iter(changes)), settings(folder, **changes))


def test_a_pair_needs_two_columns():
    assert list(classify.split_columns(["a\tb", "", " \t"], 2)) == [["a", "b"], ["", ""], ["", ""]]
    assert list(classify.split_columns(["a\tb", ""], 1)) == [["a b"], [""]]
    assert list(classify.split_columns(["a\tb\tc"], None)) == [["a", "b", "c"]]
    with pytest.raises(UserError, match="stdin:2: 1 tab-separated texts, but the model reads 2"):
        list(classify.split_columns(["a\tb", "c"], 2))


def test_scores_and_labels_in_json():
    from nmt_jax.tasks.sentences import Prediction

    rows = [
        *classify.format_rows([], [Prediction("3.2500", np.zeros(0)), Prediction("", np.zeros(0))], as_json=True),
        *classify.format_rows(["no", "yes"], [Prediction("yes", np.array([0.25, 0.75]))], as_json=True),
    ]
    found = [json.loads(row) for row in rows]
    assert found[:2] == [{"line": 1, "score": 3.25}, {"line": 2, "score": None}]
    assert found[2] == {"line": 1, "label": "yes", "probabilities": {"no": 0.25, "yes": 0.75}}
