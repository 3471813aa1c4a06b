"""The classification task on a small part of the embedded corpus: batches, loss, evaluation and prediction."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ml_collections import ConfigDict
from scipy.special import log_softmax

from nmt_jax import config as configs
from nmt_jax.data.batching.documents import NO_LABEL
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.losses import cross_entropy as losses
from nmt_jax.losses.step import Step
from nmt_jax.tasks.classify import Classify
from nmt_jax.tasks.registry import make_task
from tests.conftest import ROOT

PAGE = f"{ROOT}/configs/han_movie_reviews.py:smoke=true"
TEXTS = [
    ["The old man sees the house.", "She sleeps."],
    ["Der alte Mann sieht das Haus."],
    [],
    ["", " "],
    ["x y z", "", "She sleeps."],
]


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    config = configs.load(PAGE, {"model_name": "sentence_classifier"})  # of two models the faster to compile
    return Classify(config, tmp_path_factory.mktemp("workdir"), sharding.make_mesh())


@pytest.fixture(scope="module")
def params(task):
    return jax.jit(task.init)(jax.random.key(0))


def changed(task, folder, **changes) -> Classify:
    config = ConfigDict(task.config.to_dict())
    config.update_from_flattened_dict(changes)
    return make_task(config, folder, task.mesh)


def test_the_loss_is_the_cross_entropy_without_padding_rows(task, params):
    batch = next(batch for batch in (task.batches(30)[n] for n in range(30)) if (batch["label"] == NO_LABEL).any())
    logits, _ = jax.jit(lambda words: task.model.apply({"params": params}, words))(batch["words"])
    real = batch["label"] != NO_LABEL
    by_hand = -log_softmax(logits, axis=-1)[real, batch["label"][real]]
    total, weight = jax.jit(task.loss_fn, static_argnums=2)(params, batch, None)
    np.testing.assert_allclose(total, by_hand.sum(), rtol=1e-5)
    assert float(weight) == real.sum() > 0


def test_label_smoothing_is_used_in_training_only(task, params):
    smoothed = changed(
        task, task.workdir, **{"loss.label_smoothing": 0.3, "model.dropout": 0.0, "model.word_dropout": 0.0}
    )
    batch = task.batches(1)[0]
    step = Step(jnp.int32(0), jax.random.key(0))
    loss = jax.jit(lambda params: smoothed.loss_fn(params, batch, step))(params)[0]

    @jax.jit
    def wanted(words, labels):
        return losses.smoothed_cross_entropy(task.model.apply({"params": params}, words)[0], labels, 0.3)

    real = batch["label"] != NO_LABEL
    expected = np.asarray(wanted(batch["words"], np.where(real, batch["label"], 0)))[real].sum()
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


@pytest.mark.slow
def test_evaluation_counts_every_text_for_any_batch_size(task, params):
    measures = task.evaluate(params)
    other = changed(task, task.workdir, **{"eval.batch_tokens": 512, "data.num_buckets": 1})
    assert other.evaluate(params) == pytest.approx(measures, rel=1e-5)
    texts = task.dev_texts()
    predictions = task.predict(params, [item.sentences for item in texts])
    right = sum(result.label == item.label for result, item in zip(predictions, texts, strict=True))
    assert measures["dev/accuracy"] == pytest.approx(100 * right / len(texts))
    nats = [-np.log(p.probabilities[task.labels.index(t.label)]) for p, t in zip(predictions, texts, strict=True)]
    assert measures["dev/loss"] == pytest.approx(np.mean(nats), rel=1e-4)


def test_a_prediction_has_a_weight_per_word(task, params):
    first, _, *empty, last = task.predict(params, TEXTS)
    assert first.words == [sentence.split() for sentence in TEXTS[0]]
    assert last.words == [["x", "y", "z"], ["She", "sleeps."]]
    for result in (first, last):
        assert result.label == task.labels[int(result.probabilities.argmax())]
        assert result.probabilities.sum() == pytest.approx(1)
        assert [len(weights) for weights in result.word_weights] == [len(words) for words in result.words]
        for weights in (*result.word_weights, result.sentence_weights):
            assert weights.sum() == pytest.approx(1, abs=1e-5)
    for result in empty:
        assert (result.label, result.words, result.probabilities.sum()) == ("", [], 0)


def test_a_prediction_does_not_depend_on_other_texts(task, params):
    together = task.predict(params, TEXTS)
    alone = [task.predict(params, [text])[0] for text in TEXTS]
    backwards = task.predict(params, TEXTS[::-1])[::-1]
    for a, b, c in zip(together, alone, backwards, strict=True):
        for other in (b, c):
            np.testing.assert_allclose(a.probabilities, other.probabilities, atol=1e-6)
            np.testing.assert_allclose(a.sentence_weights, other.sentence_weights, atol=1e-6)
    assert task.predict(params, []) == []


def test_a_second_call_compiles_nothing(task, params):
    task.predict(params, TEXTS)
    compiled = task._predict._cache_size()
    task.predict(params, [[" ".join(text.split()[::-1]) for text in sentences] for sentences in TEXTS])
    assert task._predict._cache_size() == compiled


def test_vocabulary_and_labels_are_saved_in_the_workdir(task):
    assert task.labels == ["de", "en"]
    assert json.loads((task.workdir / "vocab" / "labels.json").read_text()) == ["de", "en"]
    other = changed(task, task.workdir, **{"data.size": 10})
    assert (other.vocabulary.fingerprint, other.labels) == (task.vocabulary.fingerprint, task.labels)


def test_weights_of_the_pieces_of_a_word_are_summed(task, tmp_path):
    subwords = changed(task, tmp_path, **{"vocab.algorithm": "bpe", "vocab.size": 330, "data.max_words": 40})
    params = jax.jit(subwords.init)(jax.random.key(0))
    ((result,), ((sentence,), _)) = subwords.predict(params, [TEXTS[1]]), subwords.reader(TEXTS[1])
    assert result.words == [TEXTS[1][0].split()]
    assert len(sentence.ids) > len(sentence.words) == len(result.word_weights[0])
    assert result.word_weights[0].sum() == pytest.approx(1, abs=1e-5)


def write(folder, rows):
    lines = [f"{label}\t{text}\n" for label, text in [("label", "text"), *rows]]
    (folder / "a.tsv").write_text("".join(lines))
    return {"data.corpus": "files", "data.directory": str(folder), "data.texts": ["text"]} | {
        "data.train": "a.tsv",
        "data.folds": 2,
    }


def test_numeric_labels_are_sorted_as_numbers(task, tmp_path):
    settings = write(tmp_path, [(str(n), f"{word} {n}") for n in (10, 9, 2) for word in "abcd"])
    assert changed(task, tmp_path, **settings).labels == ["2", "9", "10"]


def test_a_single_label_is_an_error(task, tmp_path):
    settings = write(tmp_path, [("x", text) for text in "abcdef"])
    with pytest.raises(UserError, match=r"config\.data\.label='label': all training texts have the same label"):
        _ = changed(task, tmp_path, **settings).labels


def test_word_vectors_initialise_the_embedding(task, params, tmp_path):
    path = tmp_path / "vectors.txt"
    numbers = " ".join(map(str, range(16)))
    path.write_text(f"The {numbers}\nunheard-of {numbers}\n")
    given = changed(task, task.workdir, **{"data.vectors": str(path)})
    (number,) = given.vocabulary.encode("The")
    plain, looked_up = (
        np.asarray(tree["embedding"]["table"]) * 4  # the root of the width
        for tree in (params, given.warm_start(params))
    )
    np.testing.assert_allclose(looked_up[number], np.arange(16), rtol=1e-6)
    others = np.arange(len(plain)) != number
    np.testing.assert_allclose(looked_up[others], plain[others], rtol=1e-6)
    assert ("word vectors", f"for 1 of the vocabulary, {path}") in given.summary()
    narrow = changed(task, task.workdir, **{"data.vectors": str(path), "model.d_embedding": 8})
    with pytest.raises(UserError, match=r"vectors of width 16, but config\.model\.d_embedding=8: set it to 16"):
        narrow.warm_start(jax.eval_shape(narrow.init, jax.random.key(0)))
    for content, words in (
        ("The 1 x\n", rf"{path}:1: 'x' is not a number"),
        ("Them 1 2\n", "has no word of the vocab"),
    ):
        path.write_text(content)
        with pytest.raises(UserError, match=rf"config\.data\.vectors: .*{words}"):
            changed(task, task.workdir, **{"data.vectors": str(path)}).summary()


def test_the_dummy_batch_has_the_shape_and_no_padding(task, params):
    shape = task.batches(1).shapes[0]
    dummy = task.dummy_batch(shape)
    assert dummy["words"].shape == shape
    assert float(jax.jit(task.loss_fn, static_argnums=2)(params, dummy, None)[1]) == shape[0]
