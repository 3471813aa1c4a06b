"""Translation of words that the vocabulary lacks, by copying and by a lexicon."""

import io
import json
import random
import string

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax import __main__ as cli
from nmt_jax import config as configs
from nmt_jax.commands import translate
from nmt_jax.data.vocabulary.vocab import UNK, Vocab
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.losses.coverage import coverage_loss
from nmt_jax.losses.step import Step
from nmt_jax.tasks.translate import Translate
from nmt_jax.training.run import train
from tests.conftest import ROOT
from tests.fixtures.parameters import draw_parameters

PAGE = f"{ROOT}/configs/copy_summarize.py"
TINY = {  # a model that learns a toy task, or nothing, in little time
    "data.source": "source",
    "data.target": "target",
    "data.max_length": "8",
    "data.num_buckets": "1",
    "model.max_unknown": "8",
    "model.dropout": "0.0",
    "optimizer.schedule": "linear",
    "optimizer.learning_rate": "5e-3",
    "optimizer.warmup_steps": "50",
    "train.batch_tokens": "1024",
    "train.keep_last": "1",
    "decode.max_length_ratio": "1.5",
}


WIDTHS = {
    "rnn": {"model.d_embedding": "32", "model.d_hidden": "64", "model.d_attention": "32"},
    "transformer": {"model.num_encoder_layers": "1", "model.num_decoder_layers": "1", "model.d_model": "64"}
    | {"model.d_ff": "64", "model.num_heads": "2"},
}


def write(folder, split, pairs):
    for side, lines in zip(("source", "target"), zip(*pairs, strict=True), strict=True):
        (folder / f"{split}.{side}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def strings(seed, count):
    """Distinct lines of digits and random strings."""
    generator = random.Random(seed)

    def word():
        return generator.choice(
            string.digits if generator.random() < 0.5 else ["".join(generator.choices("abcdefgh", k=7))]
        )

    return [" ".join(word() for _ in range(generator.randint(2, 7))) for _ in range(count)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A corpus in which every target is its source."""
    folder = tmp_path_factory.mktemp("strings")
    for split, count in (("train", 5000), ("val", 50)):
        lines = strings(split, count)
        write(folder, split, zip(lines, lines, strict=True))
    return folder


def settings(folder, model="rnn", **changes):
    given = {"data.directory": str(folder), "data.cache": str(folder / "cache"), "vocab.size": "14"}
    return TINY | WIDTHS[model] | given | {name.replace("__", "."): value for name, value in changes.items()}


@pytest.fixture(scope="module")
def task(folder):
    return Translate(configs.load(PAGE, settings(folder)), folder / "untrained", sharding.make_mesh())


@pytest.mark.slow
def test_ids_of_unknown_words_reach_the_model(task):
    vocab = task.vocabularies[0]
    assert set(vocab.pieces(range(4, 14))) == {f"▁{digit}" for digit in string.digits}
    batch = task.batches(1)[0]
    assert task.num_unknown == 8
    assert len(vocab) < batch["source"].max() < len(vocab) + 8
    assert (batch["source"] == batch["target"]).all()
    params = jax.jit(task.init)(jax.random.key(0))
    loss, weight = jax.jit(lambda params, batch: task.loss_fn(params, batch, Step(jnp.int32(0), jax.random.key(0))))(
        params, batch
    )
    assert 0 < loss / weight < np.log(len(vocab) + 8)
    picture = task.attention(params, "abc 1 bcd", "bcd cde")
    assert picture["source_pieces"] == ["▁abc", "▁1", "▁bcd", "</s>"]
    assert picture["target_pieces"] == ["▁bcd", "<unk>", "</s>"]


@pytest.mark.parametrize("model", [pytest.param("rnn", marks=pytest.mark.slow), "transformer"])
def test_coverage_is_added_to_the_loss_of_a_step(folder, tmp_path, model):
    config = configs.load(f"{PAGE}:model={model}", settings(folder, model, loss__coverage="2"))
    task = Translate(config, tmp_path, sharding.make_mesh())
    params, batch = draw_parameters(task.init), task.batches(1)[0]

    @jax.jit
    def losses(params, batch):
        out = task.model.apply({"params": params}, batch["source"], batch["target"])[1]
        coverage = coverage_loss(out["attended"], (batch["target"] > 0).astype(jnp.float32))
        step = Step(jnp.int32(0), jax.random.key(0))
        return task.loss_fn(params, batch, step), task.loss_fn(params, batch, None), coverage

    (training, weight), (evaluation, same), coverage = losses(params, batch)
    assert weight == same == (batch["target"] > 0).sum()
    assert coverage > 0
    np.testing.assert_allclose(training, evaluation + 2 * coverage, rtol=1e-6)


@pytest.mark.parametrize(
    ("page", "changes", "message"),
    [
        ("quickstart", {}, r"config\.loss\.coverage=1\.0: .* set model\.copying=pointer"),
        ("seq2seq_no_attention", {}, r"config\.loss\.coverage=1\.0: needs attention"),
        ("copy_summarize", {"model.copying": "none"}, ""),
    ],
)
def test_the_coverage_loss_needs_the_attention_that_is_meant(page, changes, message):
    changes = {**changes, "loss.coverage": "1"}
    if not message:
        assert configs.load(f"{ROOT}/configs/{page}.py", changes).loss.coverage == 1
        return
    with pytest.raises(UserError, match=message):
        configs.load(f"{ROOT}/configs/{page}.py", changes)


def test_unknown_pieces_are_never_generated(task):
    params = draw_parameters(task.init)
    params["decoder_layers"]["output"] = jax.tree.map(jnp.ones_like, params["decoder_layers"]["output"])
    table = params["source_embedding"]["table"]
    params["source_embedding"]["table"] = table.at[UNK].set(1.0)  # what every readout, all ones, likes best
    results = task.translate(params, ["abc bcd 1", "2 3"], beam_size=4, n_best=4)
    pieces = {piece for line in results for best in line for piece in best.pieces}
    assert pieces
    assert not pieces & {"<unk>", "<pad>", "<s>"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocab__joint": "false", "model__tie_embeddings": "none"}, "set config.vocab.joint=true"),
        ({"loss__label_smoothing": "0.1"}, r"config\.loss\.label_smoothing: .* set config\.loss\.label_smoothing=0"),
    ],
)
def test_unsupported_settings_of_copying(tmp_path, changes, message):
    for split in ("train", "val"):
        write(tmp_path, split, [("1 2 3", "4 5 6")])
    task = Translate(configs.load(PAGE, settings(tmp_path, **changes)), tmp_path / "w", sharding.make_mesh())
    with pytest.raises(UserError, match=message):
        jax.eval_shape(
            lambda: task.loss_fn(
                task.init(jax.random.key(0)), task.batches(1)[0], Step(jnp.int32(0), jax.random.key(0))
            )
        )


def test_a_lexicon_for_a_model_without_one_is_an_error(folder, tmp_path):
    (tmp_path / "table").write_text("1\t2\t0.5\n")
    page = f"{ROOT}/configs/multi30k.py"
    changes = {"data.directory": str(folder), "data.cache": str(tmp_path), "vocab.lexicon": str(tmp_path / "table")}
    names = {"data.source": "source", "data.target": "target", "vocab.algorithm": "word", "vocab.size": "14"}
    with pytest.raises(UserError, match=r"config\.vocab\.lexicon: model_name='transformer' does not use a lexicon"):
        Translate(configs.load(page, changes | names), tmp_path, sharding.make_mesh())


LEARNED = {
    "rnn": {"train__steps": "200"},
    "transformer": {"train__steps": "120", "loss__coverage": "0.1"},
}


@pytest.mark.slow
@pytest.mark.parametrize("model", LEARNED)
def test_unseen_words_are_copied(folder, monkeypatch, capfdbinary, model):
    steps = LEARNED[model]["train__steps"]
    steps = {**LEARNED[model], "train__eval_every": steps, "train__checkpoint_every": steps}
    train(f"{PAGE}:model={model}", folder / model, settings(folder, model, **steps))
    workdir = (folder / model).rename(folder / f"{model}-moved")

    def verb(lines, *flags):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("".join(f"{line}\n" for line in lines).encode())))
        assert cli.main(["translate", f"--workdir={workdir}", *flags]) == 0
        return capfdbinary.readouterr().out.decode().split("\n")[:-1]

    lines = strings("test", 300)
    own = "Žluťoučký 3 kůň 5 Žluťoučký"
    long = " ".join(strings("long", 4))  # translated in parts: the numbers of each are its own
    assert len(long.split()) > 12
    results = verb([*lines, own, "", long])
    assert results[300:] == [own, "", long]
    right = sum(found == line for found, line in zip(results, lines, strict=False))
    assert right / len(lines) > 0.99
    (item,) = map(json.loads, verb([own], "--format=json", "--nbest=3"))
    texts = [best["text"] for best in item["hypotheses"]]
    assert texts[0] == own
    assert len(set(texts)) == 3


WORDS = [f"s{number}" for number in range(30)]
RARE = WORDS[25:]


@pytest.mark.slow
def test_an_unseen_word_is_translated_by_the_lexicon(tmp_path):
    def translated(line):
        return " ".join(f"t{word[1:]}" for word in line.split())

    generator = random.Random(0)
    for split, count in (("train", 3000), ("val", 20)):
        lines = [" ".join(generator.choices(WORDS[:25], k=generator.randint(2, 5))) for _ in range(count)]
        write(tmp_path, split, [(line, translated(line)) for line in lines])
    vocab = Vocab.train([" ".join(WORDS), translated(" ".join(WORDS))], size=70, algorithm="word")
    vocab.save(tmp_path / "joint.model")
    (tmp_path / "table").write_text("".join(f"{word}\t{translated(word)}\t0.9\n" for word in [*WORDS, "Zebra"]))
    steps = {"train__steps": "150", "train__eval_every": "150", "train__checkpoint_every": "150"}
    given = {"vocab__source_model": str(tmp_path / "joint.model"), "vocab__lexicon": str(tmp_path / "table")}
    train(PAGE, tmp_path / "w", settings(tmp_path, model__copying="none", **steps, **given))
    assert len((tmp_path / "w" / "vocab" / "lexicon.tsv").read_text().splitlines()) == 30
    for name in ("table", "joint.model"):  # a workdir is all that a translation needs
        (tmp_path / name).unlink()
    lines = [" ".join([*generator.choices(WORDS[:25], k=2), rare]) for rare in RARE for _ in range(10)]
    results = [best[0].text for best in translate.run(tmp_path / "w", lines)]
    right = sum(found == translated(line) for found, line in zip(results, lines, strict=True))
    assert right / len(lines) > 0.9
