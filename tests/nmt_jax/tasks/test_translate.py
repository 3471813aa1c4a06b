"""The translation task on a small part of the embedded corpus: batches, loss, translation and evaluation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ml_collections import ConfigDict

from nmt_jax import config as configs
from nmt_jax.data.batching.batches import PairLayout
from nmt_jax.data.vocabulary.vocab import EOS, PAD
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.losses.step import Step
from nmt_jax.tasks.translate import Translate
from tests.conftest import ROOT
from tests.fixtures.parameters import draw_parameters


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workdir")
    changes = {"data.cache": str(folder / "cache"), "eval.beam_size": "1", "eval.max_segments": "4"}
    config = configs.load(f"{ROOT}/configs/quickstart.py:smoke=true", changes)
    return Translate(config, folder, sharding.make_mesh())


@pytest.fixture(scope="module")
def params(task):
    return draw_parameters(task.init, stddev=0.5)


@pytest.fixture(scope="module")
def loss_and_gradient(task):
    """Compiled once per shape: ((loss, weight), gradient of their ratio)."""

    def mean_loss(params, batch):
        total, weight = task.loss_fn(params, batch, None)
        return total / weight, (total, weight)

    return jax.jit(jax.value_and_grad(mean_loss, has_aux=True))


# Lines of similar length, so that few shapes are compiled.
SENTENCES = ["the old man sees .", "she sleeps .", "", "we see the house .", " "]


def test_padding_does_not_change_loss_or_gradient(task, params, loss_and_gradient):
    batch = task.batches(1)[0]
    wider = {name: np.pad(array, ((0, 3), (0, 5))) for name, array in batch.items()}
    ((plain, (_, weight)), gradient), ((padded, _), padded_gradient) = (
        loss_and_gradient(params, one) for one in (batch, wider)
    )
    np.testing.assert_allclose(plain, padded, rtol=1e-6)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), gradient, padded_gradient)
    assert float(weight) == (batch["target"] != PAD).sum() > 0


def test_label_smoothing_is_used_in_training_only(task, params, loss_and_gradient):
    batch = task.batches(1)[0]
    (_, (plain, _)), _ = loss_and_gradient(params, batch)
    step = Step(jnp.int32(0), jax.random.key(0))
    smoothed, _ = jax.jit(lambda params: task.loss_fn(params, batch, step))(params)
    logits = jax.jit(lambda params: task.model.apply({"params": params}, batch["source"], batch["target"])[0])(params)
    log_p = np.asarray(logits) - np.logaddexp.reduce(np.asarray(logits), axis=-1, keepdims=True)
    by_hand = -np.take_along_axis(log_p, batch["target"][..., None], -1)[..., 0]
    np.testing.assert_allclose(plain, by_hand[batch["target"] != PAD].sum(), rtol=1e-5)
    assert float(smoothed) != pytest.approx(float(plain), rel=1e-3)


def test_a_translation_does_not_depend_on_other_lines(task, params):
    together = task.translate(params, SENTENCES, beam_size=1)
    alone = [task.translate(params, [sentence], beam_size=1)[0] for sentence in SENTENCES]
    backwards = task.translate(params, SENTENCES[::-1], beam_size=1)[::-1]
    for a, b, c in zip(together, alone, backwards, strict=True):
        assert a[0].pieces == b[0].pieces == c[0].pieces
        assert a[0].score == pytest.approx(b[0].score, rel=1e-4)


def test_empty_lines_have_empty_translations_and_n_best_is_sorted(task, params):
    results = task.translate(params, SENTENCES, beam_size=4, n_best=3)
    assert [[best.text for best in results[i]] for i in (2, 4)] == [["", "", ""]] * 2
    for hypotheses in results:
        scores = [best.score for best in hypotheses]
        assert len(scores) == 3
        assert scores == sorted(scores, reverse=True)


def test_attention_has_a_row_for_each_target_piece(task, params):
    attention = task.attention(params, SENTENCES[0], "der alte Mann sieht das Haus .")
    source, target = len(attention["source_pieces"]), len(attention["target_pieces"])
    assert attention["cross"].shape == (1, 2, target, source)
    assert attention["encoder"].shape == (1, 2, source, source)
    assert attention["decoder"].shape == (1, 2, target, target)
    np.testing.assert_allclose(attention["cross"].sum(-1), 1, rtol=1e-5)


def test_vocabularies_are_trained_once_and_then_read(task):
    again = Translate(task.config, task.workdir, task.mesh)
    assert [v.fingerprint for v in again.vocabularies] == [v.fingerprint for v in task.vocabularies]
    assert (task.workdir / "vocab" / "joint.model").is_file()


def test_separate_vocabularies(tmp_path, task):
    config = ConfigDict(task.config.to_dict())
    config.vocab.joint = False
    config.model.tie_embeddings = "two-way"
    separate = Translate(config, tmp_path, task.mesh)
    source, target = separate.vocabularies
    assert source.fingerprint != target.fingerprint
    params = jax.eval_shape(separate.init, jax.random.key(0))
    assert params["source_embedding"]["table"].shape[0] == len(source)
    loss, _ = jax.eval_shape(lambda params: separate.loss_fn(params, separate.batches(1)[0], None), params)
    assert loss.shape == ()


def test_a_batch_of_the_evaluation_that_is_too_small_is_named(task):
    config = ConfigDict(task.config.to_dict())
    config.eval.batch_tokens = 3
    with pytest.raises(UserError, match=r"config\.eval\.batch_tokens = 3 is less than"):
        _ = Translate(config, task.workdir, task.mesh).dev_batches


@pytest.mark.slow
def test_evaluation_does_not_depend_on_the_batch_size(task, params):
    measures = task.evaluate(params)
    other = Translate(ConfigDict(task.config.to_dict()), task.workdir, task.mesh)
    other.config.eval.batch_tokens = 256
    again = other.evaluate(params)
    assert measures["dev/loss"] == pytest.approx(again["dev/loss"], rel=1e-5)
    assert 0 <= measures["dev/bleu"] <= 100
    assert measures["dev/bleu"] == pytest.approx(again["dev/bleu"])


def test_the_dummy_batch_has_the_shape_and_no_padding(task):
    shape = task.batches(1).shapes[0]
    dummy = task.dummy_batch(shape)
    assert dummy["source"].shape == (shape[0], shape[1])
    assert dummy["target"].shape == (shape[0], shape[2])
    assert (dummy["target"] == EOS).all()


def test_synthetic_pairs_are_mixed_in_and_do_not_change_the_vocabulary(task, tmp_path):
    for language, text in (("en", "<BT> she sleeps .\n" * 5), ("de", "sie schläft .\n" * 5)):
        (tmp_path / f"bt.{language}").write_text(text)
    changes = {"data.cache": task.config.data.cache, "data.synthetic": str(tmp_path / "bt"), "data.upsample": "2"}
    changes["data.synthetic_ratio"] = "0.01"  # of 199 pairs
    config = configs.load(f"{ROOT}/configs/quickstart.py:smoke=true", changes)
    mixed = Translate(config, tmp_path, sharding.make_mesh())
    assert mixed.vocabularies[0].fingerprint == task.vocabularies[0].fingerprint
    assert len(mixed.train_corpus) == 2 * len(task.train_corpus) + 2
    epoch = mixed._train_batches(mixed.train_corpus, None, PairLayout())
    rows = [row for number in range(len(epoch)) for row in epoch[number]["target"] if row.any()]
    assert len(rows) == len(mixed.train_corpus)
    assert (
        sum(row.tolist()[: row.tolist().index(EOS)] == mixed.vocabularies[1].encode("sie schläft .") for row in rows)
        == 2
    )
    assert any("each 2 times" in value for _, value in mixed.summary())


def test_symbols_are_pieces_of_the_trained_vocabulary(task, tmp_path):
    changes = {"data.cache": task.config.data.cache, "vocab.symbols": '["<BT>"]'}
    config = configs.load(f"{ROOT}/configs/quickstart.py:smoke=true", changes)
    vocab, _ = Translate(config, tmp_path, sharding.make_mesh()).vocabularies
    assert "<BT>" in vocab.pieces(vocab.encode("<BT> she sleeps ."))
