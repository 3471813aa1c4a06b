"""Training and translation with two sources, by the command line."""

import io

import numpy as np
import pytest

from nmt_jax import __main__ as cli
from nmt_jax.commands import translate
from nmt_jax.data import grammar
from nmt_jax.errors import UserError
from nmt_jax.training.run import train
from nmt_jax.training.trained import open_trained
from nmt_jax.workdir import Workdir
from tests.conftest import ROOT

pytestmark = pytest.mark.slow  # trains models


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    """Config changes for a corpus of sentences, reversed sentences and translations."""
    folder = tmp_path_factory.mktemp("corpus")
    for split in ("train", "val"):
        pairs = list(grammar.pairs("train", 60))
        texts = {"en": [pair[0] for pair in pairs], "ne": [pair[0][::-1] for pair in pairs]}
        for language, lines in (texts | {"de": [pair[1] for pair in pairs]}).items():
            (folder / f"{split}.{language}").write_text("".join(f"{line}\n" for line in lines))
    data = {"data.corpus": "text", "data.directory": str(folder), "data.source": "en,ne"}
    data |= {"model.dtype": "float32", "train.early_stopping_metric": "loss"}
    return data | {"data.cache": str(folder / "cache"), "data.num_buckets": "1", "eval.max_segments": "0"}


@pytest.fixture(scope="module")
def workdir(settings, tmp_path_factory):
    folder = tmp_path_factory.mktemp("work") / "w"
    train(f"{ROOT}/configs/rnn_luong.py:smoke=true", folder, settings | {"model.combination": "hierarchical"})
    return folder


LINES = ["the old man sleeps\tspeels nam dlo eht", "", "she sleeps\t", "a b c d e f\tf e d c b a"]


def test_translations_do_not_depend_on_other_lines(workdir):
    together = [best[0] for best in translate.run(workdir, LINES, beam_size=2)]
    alone = [best[0] for line in LINES for best in translate.run(workdir, [line], beam_size=2)]
    assert [best.pieces for best in together] == [best.pieces for best in alone]
    assert [bool(best.pieces) for best in together] == [True, False, True, True]


def test_a_line_without_a_tab_is_an_error(workdir, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"one\teno\nno tab here\n")))
    assert cli.main(["translate", f"--workdir={workdir}", "--beam_size=2"]) == 2
    captured = capsys.readouterr()
    assert "nmt-jax: error: stdin:2: 1 of 2 sources" in captured.err
    assert captured.out.count("\n") == 1  # what came before is translated


def test_the_plot_shows_both_sources(workdir):
    task, params = open_trained(Workdir(workdir), "translate")
    weights = task.attention(params, LINES[0], "der alte Mann")
    assert weights["source_pieces"].count("</s>") == 2
    assert weights["cross"].shape == (1, 1, len(weights["target_pieces"]), len(weights["source_pieces"]))
    np.testing.assert_allclose(weights["cross"].sum(-1), 1, rtol=1e-5)
    vocab = task.vocabularies[0]
    length = len(vocab.encode("the old man sleeps"))
    assert weights["source_pieces"][:length] == vocab.pieces(vocab.encode("the old man sleeps"))


@pytest.mark.parametrize(
    ("page", "changes", "line"),
    [
        (
            "quickstart",
            {"data.packing": "true"},
            "config.data.packing=True: packed rows have one source, but data.source",
        ),
        ("rnn_luong", {"model.combination": "sum"}, "config.model.combination='sum': use one of concat, flat,"),
        ("rnn_luong", {"model.num_sources": "3"}, "model.num_sources"),
    ],
)
def test_invalid_settings_are_errors(page, changes, line, settings, tmp_path):
    with pytest.raises(UserError, match=line):
        train(f"{ROOT}/configs/{page}.py:smoke=true", tmp_path / "w", settings | changes)
    assert not list(tmp_path.glob("w/vocab/*"))  # told before the time it takes to make one
