"""Tagging: the first token of a word carries its tag, and every word has one."""

import io
import json

import jax
import numpy as np
import pytest
from ml_collections import ConfigDict

from nmt_jax import __main__ as cli
from nmt_jax import config as configs
from nmt_jax.commands import tag
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.losses.step import Step
from nmt_jax.tasks.registry import make_task
from nmt_jax.tasks.tag import NO_TAG
from nmt_jax.training.run import train
from nmt_jax.training.text_attention import open_encoder_attention, open_text_attention
from nmt_jax.workdir import Workdir
from tests.conftest import ROOT
from tests.fixtures import tiny_encoder_folder as tiny_encoder

PAGE = f"{ROOT}/configs/ner.py:smoke=true"
TRICKY = [
    ["Jérôme's", "\u200b", "U.N.", "ﬁlm", "\U0001f642", "[SEP]", "in\u2028bonn", "a\u00a0b", "x" * 120],
    [],
    ["\u200b"],
    ["karl"] * 70,
    ["good"],
]


def conll(count: int) -> str:
    """Sentences in which paris and bonn after `in` are locations, and karl is a person."""
    lines = []
    for number in range(count):
        words = [("anna", "karl", "karl")[number % 3], "was", "in", ("paris", "bonn")[number % 2], "."]
        tags = ["B-PER", "O", "O", "B-LOC", "O"]
        if number % 4 == 0:
            words, tags = [*words[:1], "anna", *words[1:]], [*tags[:1], "I-PER", *tags[1:]]
        lines += [f"{word}\t{tag}" for word, tag in zip(words, tags, strict=True)] + [""]
    return "\n".join(lines)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    tiny_encoder.write(folder / "encoder")
    (folder / "train.conll").write_text(conll(60))
    (folder / "dev.conll").write_text(conll(12))
    return folder


def settings(folder, **changes) -> dict[str, str]:
    found = {
        "data.corpus": "files",
        "data.directory": folder,
        "data.train": "train.conll",
        "data.dev": "dev.conll",
        "data.scheme": "bio",
        "encoder.place": folder / "encoder",
        "data.num_buckets": "1",
        "optimizer.schedule": "constant",
        "optimizer.learning_rate": "0.01",
        "optimizer.warmup_steps": "1",
        "train.steps": "30",
        "train.eval_every": "30",
        "train.checkpoint_every": "30",
    }
    return {key: str(value) for key, value in (found | changes).items()}


@pytest.fixture(scope="module")
def task(folder, tmp_path_factory):
    config = ConfigDict(configs.load(PAGE, settings(folder)).to_dict())
    return make_task(config, tmp_path_factory.mktemp("w"), sharding.make_mesh())


@pytest.fixture(scope="module")
def params(task):
    return task.warm_start(jax.jit(task.init)(jax.random.key(0)))


@pytest.fixture(scope="module")
def workdir(folder, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("run") / "w"
    metrics = train(PAGE, workdir, settings(folder))
    assert metrics["dev/f1"] == metrics["dev/accuracy"] == 100
    return workdir


def test_the_first_token_of_a_word_has_its_tag(task):
    for sentence, words in zip(task._sentences(TRICKY), TRICKY, strict=True):
        pieces = {}
        for row, places, numbers in zip(*sentence, strict=True):
            assert len(places) == len(numbers)
            assert len(row["ids"]) <= task.reader.max_length
            for place, number in zip(places, numbers, strict=True):
                assert number not in pieces
                pieces[int(number)] = int(row["ids"][place])
        for number, word in enumerate(words):
            alone = task.reader.pieces([word])[0].ids
            assert pieces.get(number) == (alone[0] if len(alone) else None)
        # Rows hold the pieces of the whole sentence, in order, but for those that a word alone has too many of.
        inner = [id for row in sentence.rows for id in row["ids"][1:-1]]
        assert inner == task.reader.pieces([" ".join(words)])[0].ids.tolist()


def test_training_rows_have_the_tags_of_their_words(task):
    name, words, tags, _ = task._read("train")
    assert name.endswith("train.conll")
    for item, own, given in zip(task.train_corpus().items, words, tags, strict=True):
        places = np.flatnonzero(item["tags"] != NO_TAG)
        assert [task.tags[item["tags"][place]] for place in places] == given
        assert len(places) == len(own)


@pytest.mark.slow
def test_predictions_do_not_depend_on_other_sentences(task, params):
    whole = task.predict(params, TRICKY)
    for words, found in zip(TRICKY, whole, strict=True):
        (alone,) = task.predict(params, [words])
        assert alone.tags == found.tags
        assert len(found.tags) == len(words)
        np.testing.assert_allclose(alone.probabilities, found.probabilities, atol=1e-5)
        np.testing.assert_allclose(found.probabilities.sum(axis=1), 1, atol=1e-5)
    assert whole[2].tags == ["O"]


def test_the_loss_is_a_mean_over_words_without_padding_rows(task, params):
    batch = task.batches(1)[0]
    empty = {name: np.where(name == "tags", NO_TAG, 0 * array) for name, array in batch.items()}
    empty = {name: array.astype(batch[name].dtype) for name, array in empty.items()}
    double = {name: np.concatenate([array, empty[name]]) for name, array in batch.items()}
    loss = jax.jit(task.loss_fn)
    np.testing.assert_allclose(loss(params, double, None), loss(params, batch, None), rtol=1e-5)
    assert np.isfinite(loss(params, batch, Step(0, jax.random.key(0)))[0])


@pytest.mark.slow
def test_the_attention_is_that_of_the_fine_tuned_encoder(folder, workdir):
    (pieces, weights), (same, pretrained) = (
        attention("karl was in bonn .")
        for attention in (open_text_attention(Workdir(workdir)), open_encoder_attention(str(folder / "encoder")))
    )
    assert pieces == same
    assert weights.shape == pretrained.shape
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)
    assert np.abs(weights - pretrained).max() > 1e-3


def test_an_unknown_entity_type_is_an_error(folder, task, tmp_path):
    (folder / "bad.conll").write_text("karl\tB-PER\n\nthe\tO\nrhine\tB-RIVER\n")
    given = settings(folder, **{"data.dev": "bad.conll"})
    with pytest.raises(
        UserError, match=r"bad\.conll:3: word 2 of the sentence, 'rhine', has the tag B-RIVER.*their types are LOC, PER"
    ):
        train(PAGE, tmp_path / "w", given)


@pytest.mark.slow
def test_the_command_writes_conll_and_json(workdir, monkeypatch, capfdbinary):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"karl was  in bonn .\n\nanna was in paris .\n")))
    assert cli.main(["tag", f"--workdir={workdir}"]) == 0
    blocks = capfdbinary.readouterr().out.decode().split("\n\n")
    assert blocks[0].split("\n") == ["karl\tB-PER", "was\tO", "in\tO", "bonn\tB-LOC", ".\tO"]
    assert (blocks[1], len(blocks)) == ("\nanna\tB-PER\nwas\tO\nin\tO\nparis\tB-LOC\n.\tO", 3)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"karl .\n\n")))
    assert cli.main(["tag", f"--workdir={workdir}", "--format=json", "--chunk=1"]) == 0
    first, second = map(json.loads, capfdbinary.readouterr().out.splitlines())
    assert (first["line"], first["words"], first["tags"]) == (1, ["karl", "."], ["B-PER", "O"])
    assert min(first["probabilities"]) > 0.5
    assert second == {"line": 2, "words": [], "tags": [], "probabilities": []}


@pytest.mark.slow
def test_invalid_requests_are_errors(workdir, capfd):
    for arguments, words in (
        (["x.txt", f"--workdir={workdir}"], "< x.txt"),
        ([], "--workdir=FOLDER"),
        ([f"--workdir={workdir}", "--average=2", "--checkpoint=last"], "exclude each other"),
    ):
        assert cli.main(["tag", *arguments]) == 2
        assert words in capfd.readouterr().err
    assert cli.main(["classify", f"--workdir={workdir}"]) == 2
    assert "its task is 'tag'" in capfd.readouterr().err


def test_an_inside_tag_without_a_beginning_becomes_one(task):
    tags = tag.run  # the verb hands on what the task predicts
    assert tags
    logits = [np.full((3, len(task.tags)), -9.0, np.float32)]
    for place, name in enumerate(["I-PER", "I-PER", "I-LOC"]):
        logits[0][place, task.tags.index(name)] = 0.0
    task._log_probabilities = lambda *_: logits
    try:
        assert task.predict(None, [["a", "b", "c"]])[0].tags == ["B-PER", "I-PER", "B-LOC"]
    finally:
        del task._log_probabilities
