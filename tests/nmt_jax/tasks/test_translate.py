"""The translation task on the embedded corpus, in small: what holds between text, batches, model and search."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ml_collections import ConfigDict

from nmt_jax import config as configs
from nmt_jax.data.vocabulary.vocab import EOS, PAD
from nmt_jax.distributed import sharding
from nmt_jax.losses.step import Step
from nmt_jax.tasks.translate import Translate
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workdir")
    config = configs.load(f"{ROOT}/configs/quickstart.py:smoke=true", {"data.cache": str(folder / "cache")})
    return Translate(config, folder, sharding.make_mesh())


@pytest.fixture(scope="module")
def params(task):
    return jax.jit(task.init)(jax.random.key(0))


SENTENCES = [
    "the old man sees the house .",
    "she sleeps .",
    "",
    "we do not know where the children are playing today .",
    " ",
]


def test_padding_has_no_influence_on_loss_or_gradient(task, params):
    batch = task.batches(1)[0]
    wider = {name: np.pad(array, ((0, 3), (0, 5))) for name, array in batch.items()}

    def loss(params, batch):
        total, weight = task.loss_fn(params, batch, None)
        return total / weight

    (plain, gradient), (padded, padded_gradient) = (jax.value_and_grad(loss)(params, b) for b in (batch, wider))
    np.testing.assert_allclose(plain, padded, rtol=1e-6)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), gradient, padded_gradient)


def test_the_weight_is_the_number_of_target_pieces(task, params):
    batch = task.batches(1)[0]
    _, weight = task.loss_fn(params, batch, None)
    assert float(weight) == (batch["target"] != PAD).sum() > 0


def test_label_smoothing_only_when_training(task, params):
    batch = task.batches(1)[0]
    plain, _ = task.loss_fn(params, batch, None)
    smoothed, _ = task.loss_fn(params, batch, Step(jnp.int32(0), jax.random.key(0)))
    logits, _ = task.model.apply({"params": params}, batch["source"], batch["target"])
    log_p = jax.nn.log_softmax(logits)
    by_hand = -np.take_along_axis(np.asarray(log_p), batch["target"][..., None], -1)[..., 0]
    np.testing.assert_allclose(plain, by_hand[batch["target"] != PAD].sum(), rtol=1e-5)
    assert float(smoothed) != pytest.approx(float(plain), rel=1e-3)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_translation_never_depends_on_its_neighbours(task, params, beam_size):
    together = task.translate(params, SENTENCES, beam_size=beam_size)
    alone = [task.translate(params, [sentence], beam_size=beam_size)[0] for sentence in SENTENCES]
    backwards = task.translate(params, SENTENCES[::-1], beam_size=beam_size)[::-1]
    for a, b, c in zip(together, alone, backwards, strict=True):
        assert a[0].pieces == b[0].pieces == c[0].pieces
        assert a[0].score == pytest.approx(b[0].score, rel=1e-4)


def test_empty_lines_give_empty_lines_and_n_best_is_sorted(task, params):
    results = task.translate(params, SENTENCES, beam_size=4, n_best=3)
    assert [[best.text for best in results[i]] for i in (2, 4)] == [["", "", ""]] * 2
    for hypotheses in results:
        scores = [best.score for best in hypotheses]
        assert len(scores) == 3
        assert scores == sorted(scores, reverse=True)


def test_a_second_call_compiles_nothing(task, params):
    task.translate(params, SENTENCES, beam_size=2)
    compiled = task.translator.programs.decode._cache_size()
    task.translate(params, [" ".join(sentence.split()[::-1]) for sentence in SENTENCES], beam_size=2)
    assert task.translator.programs.decode._cache_size() == compiled


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
    params = jax.jit(separate.init)(jax.random.key(0))
    assert params["source_embedding"]["table"].shape[0] == len(source)
    assert separate.translate(params, ["she sleeps ."], beam_size=1)[0][0].pieces is not None


def test_evaluation_is_finite_and_batch_size_does_not_matter(task, params):
    measures = task.evaluate(params)
    other = Translate(ConfigDict(task.config.to_dict()), task.workdir, task.mesh)
    other.config.eval.batch_tokens = 256
    again = other.evaluate(params)
    assert measures["dev/loss"] == pytest.approx(again["dev/loss"], rel=1e-5)
    assert 0 <= measures["dev/bleu"] <= 100
    assert measures["dev/bleu"] == pytest.approx(again["dev/bleu"])


def test_the_dummy_batch_is_of_the_shape_and_all_of_it_counts(task):
    shape = task.batches(1).shapes[0]
    dummy = task.dummy_batch(shape)
    assert dummy["source"].shape == (shape[0], shape[1])
    assert dummy["target"].shape == (shape[0], shape[2])
    assert (dummy["target"] == EOS).all()
