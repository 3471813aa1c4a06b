"""Fine-tuning of GPT: from a published folder and from a workdir, on labels and on scores of pairs."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax import config as configs
from nmt_jax.commands import classify, export
from nmt_jax.data.batching.encoder_rows import RowReader
from nmt_jax.data.vocabulary.vocab import EOS
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.losses.step import Step
from nmt_jax.pretrained.causal_encoders import load_causal
from nmt_jax.pretrained.gpt import load_gpt
from nmt_jax.pretrained.loading import load_workdir
from nmt_jax.tasks.registry import make_task
from nmt_jax.training.run import train
from tests.conftest import ROOT
from tests.fixtures import gpt_folders
from tests.fixtures.parameters import draw_parameters
from tests.nmt_jax.tasks.test_sentences import rows, settings

GOLDEN = json.loads((ROOT / "tests/fixtures/gpt_golden.json").read_text())
PAGE = f"{ROOT}/configs/glue.py:gpt=true,smoke=true"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    gpt_folders.write_folder(folder / "encoder", GOLDEN["gpt2"])
    for name, pair in (("single", False), ("pair", True)):
        (folder / f"{name}.train.tsv").write_text(rows(60, pair))
        (folder / f"{name}.dev.tsv").write_text(rows(23, pair))
    return folder


def task_of(folder, workdir, kind="pair", **changes):
    config = configs.load(PAGE, settings(folder, kind, **changes))
    return make_task(config, workdir, sharding.make_mesh())


def test_a_pair_is_two_rows_and_the_loss_adds_that_of_next_tokens(folder, tmp_path):
    task = task_of(folder, tmp_path, **{"model.both_orders": "true", "data.max_length": 40, "model.dropout": 0})
    batch = task.batches(1)[0]
    assert set(batch) == {"ids", "mask", "target"}
    ids, lengths = batch["ids"], batch["mask"].sum(-1)
    real = int((lengths[:, 0] > 0).sum())
    np.testing.assert_array_equal(lengths[:, 0], lengths[:, 1])
    tokenizer = task.reader._tokenizer
    delimiter, classify_id = tokenizer.token_to_id("<delimiter>"), tokenizer.token_to_id("<classify>")
    for row, length in zip(ids[:real], lengths[:real, 0], strict=True):
        (cut,), (other,) = (np.flatnonzero(one == delimiter) for one in row)
        assert row[0, 1:cut].tolist() == row[1, other + 1 : length - 1].tolist()
        assert (row[:, length - 1] == classify_id).all()

    params = task.warm_start(draw_parameters(task.init))
    np.testing.assert_array_equal(
        params["encoder"]["embedding"]["table"], load_causal(folder / "encoder").params["embedding"]["table"]
    )
    task.model = task.model.clone(encoder=task.model.encoder.clone(dropout=0.0, attention_dropout=0.0))
    step, losses = Step(jnp.int32(0), jax.random.key(0)), []
    for weight in (0.0, 2.0):
        task.config.loss.language_model = weight
        loss, count = jax.jit(lambda params, batch: task.loss_fn(params, batch, step))(params, batch)
        losses.append(float(loss))
        assert count == real
    flat, mask = ids.reshape(-1, ids.shape[-1]), batch["mask"].reshape(-1, ids.shape[-1])
    logits, _ = jax.jit(task.model.encoder.apply)({"params": params["encoder"]}, flat)
    log_probs = np.take_along_axis(np.asarray(jax.nn.log_softmax(logits))[:, :-1], flat[:, 1:, None], -1)[..., 0]
    means = [row[kept].mean() for row, kept in zip(log_probs, mask[:, 1:], strict=True) if kept.any()]
    assert losses[1] - losses[0] == pytest.approx(-2 * sum(means) / 2, rel=1e-3)


def test_settings_that_do_not_fit_are_errors(folder, tmp_path):
    for changes, words in (
        ({"encoder.frozen": "true", "loss.language_model": 0.5}, "encoder.frozen=true forbids"),
        ({"encoder.place": folder}, "config.encoder.place: .*: neither a GPT or GPT-2"),
        ({"model.both_orders": "true"}, r"both_orders=True: config.data.texts=\['sentence'\] is not a pair"),
    ):
        with pytest.raises(UserError, match=words):
            train(PAGE, tmp_path / "w", settings(folder, **{"optimizer.weight_decay": 0, **changes}))


@pytest.mark.slow
def test_a_published_gpt_learns_labels_and_the_workdir_is_complete(folder, tmp_path):
    changes = {"loss.language_model": 0.5, "train.steps": 100, "train.eval_every": 50}
    measures = train(PAGE, tmp_path / "w", settings(folder, **changes))
    assert measures["dev/accuracy"] == 100
    (folder / "encoder").rename(folder / "gone")
    try:
        found = classify.run(tmp_path / "w", ["the great film", "the dull film was"])[1]
        assert [result.label for result in found] == ["good", "bad"]
    finally:
        (folder / "gone").rename(folder / "encoder")
    with pytest.raises(UserError, match=r"a fine-tuned GPT .* is not an encoder"):
        load_workdir(tmp_path / "w")


@pytest.mark.slow
def test_a_trained_language_model_learns_scores_of_pairs_in_both_orders(folder, tmp_path):
    (folder / "text").write_text("".join(line.replace("\t", " ") + "\n" for line in rows(60, False).split("\n")[1:-1]))
    text = {"data.corpus": "text", "data.directory": folder, "data.train": "text", "data.dev_share": 0.2}
    text |= {"vocab.algorithm": "unigram", "vocab.size": 300, "train.steps": 5, "train.eval_every": 5}
    page = f"{ROOT}/configs/gpt.py:smoke=true"
    train(page, tmp_path / "gpt", {key: str(value) for key, value in text.items()})
    reader = RowReader(load_causal(tmp_path / "gpt").tokenizer.model, 16, segments=False)
    assert reader.row(reader.pieces(["the film"])[0].ids)[0]["ids"][0] == EOS
    export.run(tmp_path / "gpt", "huggingface", tmp_path / "gpt2")
    written = load_gpt(tmp_path / "gpt2")
    assert written.tokenizer.encode(["the great film"]) == [reader.pieces(["the great film"])[0].ids.tolist()]
    changes = {"encoder.place": tmp_path / "gpt", "model.both_orders": "true", "encoder.layers": "mixture"}
    changes |= {"optimizer.learning_rate": 0.003, "train.steps": 60, "train.eval_every": 30}
    measures = train(PAGE, tmp_path / "w", settings(folder, "pair", **changes))
    assert measures["dev/spearman"] > 60
    one, two = classify.run(tmp_path / "w", ["the good film\tkarl bad film", "karl bad film\tthe good film"])[1]
    assert float(one.label) == pytest.approx(float(two.label), abs=1e-3)
