import itertools
import json
import pathlib
import struct
import sys
from collections.abc import Sequence

import jax
import numpy as np
import optax
import pytest

from metrics_jax import BLEU
from nmt_jax import __main__ as cli
from nmt_jax import config as configs
from nmt_jax import schema
from nmt_jax.checkpoints.train_state import new_state
from nmt_jax.checkpoints.writing import Checkpoints
from nmt_jax.distributed.sharding import make_mesh
from nmt_jax.errors import UserError
from nmt_jax.reporting import plot_kinds
from nmt_jax.reporting.plots import curves, style
from nmt_jax.reporting.plots.attention_maps import draw_attention, draw_text_attention
from nmt_jax.reporting.plots.curves import draw_curves
from nmt_jax.reporting.plots.systems import by_length
from nmt_jax.tasks.registry import make_task
from nmt_jax.training.run import write_config
from nmt_jax.workdir import Workdir, write_manifest
from tests.conftest import ROOT
from tests.fixtures import tiny_encoder_folder

pytest.importorskip("matplotlib")


@pytest.fixture
def workdir(tmp_path) -> pathlib.Path:
    """A run's folder with a log."""
    (tmp_path / "config.json").write_text(json.dumps(schema.defaults()))
    rows = [{"step": n, "loss": 8 / n + 1, "learning_rate": 0.1 / n, "tokens_per_second": 90.0} for n in range(1, 80)]
    rows[40]["loss"] = None  # a step whose loss was not finite
    rows += [{"step": n, "dev/loss": 4 / n + 1, "dev/bleu": n * (80 - n) / 16} for n in range(10, 80, 10)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def attention(layers: int, heads: int, source: list[str], target: list[str]) -> dict[str, object]:
    rng = np.random.default_rng(0)
    shapes = {"cross": (target, source), "encoder": (source, source), "decoder": (target, target)}
    weights = {
        kind: rng.dirichlet(np.ones(len(keys)), size=(layers, heads, len(queries)))
        for kind, (queries, keys) in shapes.items()
    }
    return {"source_pieces": source, "target_pieces": target, **weights}


@pytest.mark.parametrize(("suffix", "magic"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")])
def test_curves_are_written_in_the_format_of_the_suffix(workdir, suffix, magic, capsys):
    output = workdir / f"x{suffix}"
    assert cli.main(["plot", f"--workdir={workdir}", f"--output={output}"]) == 0
    assert output.read_bytes().startswith(magic)
    assert capsys.readouterr().out.strip() == str(output)


def test_curves_show_every_finite_point_and_mark_the_best_bleu(workdir):
    rows = [json.loads(line) for line in (workdir / "metrics.jsonl").read_text().splitlines()]
    figure = draw_curves(rows)
    loss, bleu = figure.axes[0], figure.axes[1]
    assert len(loss.lines[0].get_xdata()) == 78
    assert list(bleu.lines[0].get_xdata()) == list(range(10, 80, 10))
    assert [text.get_text() for text in bleu.texts] == ["100.0"]  # 40 * 40 / 16


def test_a_run_of_a_language_model_shows_perplexity():
    rows = [{"step": n, "loss": 1.0, "dev/loss": 1.0, "dev/perplexity": 9.0 - n} for n in range(3)]
    axes = draw_curves(rows, "perplexity").axes[1]
    assert "perplexity" in axes.get_title() + axes.get_title(loc="left")
    assert [text.get_text() for text in axes.texts] == ["7.0"]


@pytest.mark.parametrize(("measure", "best"), [("nsp_accuracy", "72.0"), ("mlm_loss", "7.0"), ("f1", "52.0")])
def test_curves_show_the_metric_that_chooses_the_best_checkpoint(measure, best):
    values = {"nsp_accuracy": 70.0, "mlm_loss": -9.0, "f1": 50.0}
    rows = [
        {"step": n, "loss": 1.0, "words_per_second": 5.0} | {f"dev/{name}": abs(v + n) for name, v in values.items()}
        for n in range(3)
    ]
    figure = draw_curves(rows, measure)
    assert [text.get_text() for text in figure.axes[1].texts] == [best]
    assert figure.axes[0].get_title(loc="left") + figure.axes[0].get_title() == "loss (nats per word)"
    assert len(figure.axes[3].lines[0].get_xdata()) == 3


def test_smoothing_keeps_a_straight_line_straight():
    line = np.linspace(3, 5, 400)
    np.testing.assert_allclose(curves._smooth(line), line)
    noisy = line + np.random.default_rng(0).normal(size=400)
    assert np.std(curves._smooth(noisy) - line) < 0.5


def test_attention_is_one_figure_of_all_layers_and_heads():
    source, target = ["▁the", "▁dog", "s", "▁run", "</s>"], ["▁die", "▁Hunde", "</s>"]
    weights = attention(2, 4, source, target)
    figure = draw_attention(weights)
    cells = [axes for axes in figure.axes if axes.images]
    assert len(cells) == 8
    for number, axes in enumerate(cells):
        layer, head = divmod(number, 4)
        np.testing.assert_allclose(axes.images[0].get_array(), weights["cross"][layer, head], rtol=1e-6)
        columns = [label.get_text() for label in axes.get_xticklabels()]
        rows = [label.get_text() for label in axes.get_yticklabels()]
        assert columns == (["the", "dog", "·s", "run", "</s>"] if layer == 0 else [])
        assert rows == (["die", "Hunde", "</s>"] if head == 0 else [])


def test_inputs_of_the_decoder_are_shifted_by_one():
    figure = draw_attention(attention(1, 1, ["▁a"], ["▁x", "▁y", "</s>"]), "decoder")
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["<s>", "x", "y"]


def test_labels_never_overlap(tmp_path):
    source = [f"▁word{n}" for n in range(40)]
    figure = draw_attention(attention(1, 2, source, source[:30]))
    figure.savefig(tmp_path / "x.png")
    for labels, side in ((figure.axes[0].get_xticklabels(), "x"), (figure.axes[0].get_yticklabels(), "y")):
        boxes = [label.get_window_extent() for label in labels]
        starts = sorted((getattr(box, f"{side}0"), getattr(box, f"{side}1")) for box in boxes)
        assert all(end <= start + 1e-6 for (_, end), (start, _) in itertools.pairwise(starts))
        assert all(box.x0 >= 0 and box.y1 <= figure.bbox.y1 for box in boxes)


STRANGE = ["▁彼は", "▁привет", "▁שלום", "🙂", "$5", "$x_1$", "<0xE2>", "▁", "", "\u2028", "\t", "w" * 500, "</s>"]


@pytest.mark.parametrize("kind", ["cross", "encoder", "decoder"])
def test_any_piece_can_be_drawn_without_a_warning(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(plot_kinds, "pair_attention", lambda *_: attention(1, 1, STRANGE, STRANGE))
    (tmp_path / "config.json").write_text(json.dumps(schema.defaults()))
    assert plot_kinds.plot_attention(tmp_path, "x", kind=kind).read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_a_plot_of_a_very_long_sentence_has_a_limited_size(tmp_path, monkeypatch):
    pieces = ["▁x"] * 700
    monkeypatch.setattr(plot_kinds, "pair_attention", lambda *_: attention(1, 2, pieces, pieces[:5]))
    (tmp_path / "config.json").write_text(json.dumps(schema.defaults()))
    output = plot_kinds.plot_attention(tmp_path, "x")
    width, height = struct.unpack(">II", output.read_bytes()[16:24])
    assert max(width, height) <= style.LARGEST


def test_invalid_requests_are_errors(workdir):
    with pytest.raises(UserError, match=r"must end in \.png"):
        plot_kinds.plot_curves(workdir, workdir / "x.jpeg")
    with pytest.raises(UserError, match="no such folder"):
        plot_kinds.plot_curves(workdir, workdir / "y" / "x.png")
    with pytest.raises(UserError, match="needs a sentence"):
        plot_kinds.plot_attention(workdir)
    (workdir / "metrics.jsonl").unlink()
    with pytest.raises(UserError, match="nothing has been logged yet"):
        plot_kinds.plot_curves(workdir)


def test_without_matplotlib_the_error_says_what_to_install(workdir, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert cli.main(["plot", f"--workdir={workdir}"]) == 2
    assert "pip install 'nmt-jax[plot]'" in capsys.readouterr().err


def test_scores_by_length_are_those_of_each_bucket_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    sources = [" ".join("abcdefghij"[: n % 10 + 1]) for n in range(60)]
    references = [f"the {source} was seen and heard by us" for source in sources]
    good = [line if len(line) < 40 else line.replace("seen and heard", "lost") for line in references]
    systems = {"good": good, "bad": [line.replace("was", "is") for line in references]}
    buckets = by_length(BLEU(), sources, references, systems, 3)
    assert [bucket.sentences for bucket in buckets] == [24, 18, 18]
    assert [(bucket.shortest, bucket.longest) for bucket in buckets] == [(1, 4), (5, 7), (8, 10)]
    inside = [n for n, source in enumerate(sources) if 5 <= len(source.split()) <= 7]
    alone = BLEU()([systems["bad"][n] for n in inside], [references[n] for n in inside])
    assert buckets[1].scores["bad"].score == pytest.approx(alone.score, abs=1e-9)
    assert buckets[0].scores["good"].score == pytest.approx(100)
    assert buckets[2].scores["good"].score < 100

    for name, lines in {"s": sources, "r": references, **systems}.items():
        (tmp_path / name).write_text("".join(line + "\n" for line in lines))
    command = ["plot", "--kind=length", "good", "bad", "--source=s", "--reference=r", "--buckets=3"]
    assert cli.main(command) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[0].split("\t") == ["words", "sentences", "good", "bad"]
    assert rows[2].startswith("5-7\t18\t")
    assert rows[-1] == "length.png"
    assert (tmp_path / "length.png").read_bytes().startswith(b"\x89PNG")


def test_texts_of_different_lengths_are_errors(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s").write_text("a\nb\n")
    (tmp_path / "h").write_text("a\n")
    assert cli.main(["plot", "--kind=length", "h", "--source=s", "--reference=s"]) == 2
    assert "h: 1 lines, but s has 2" in capsys.readouterr().err
    assert cli.main(["plot", "--kind=length", "h", "--source=s"]) == 2
    assert "--reference=FILE" in capsys.readouterr().err


def make_translator(folder: pathlib.Path, attention: str, seeds: Sequence[int] = (0,)) -> pathlib.Path:
    """The workdir of a tiny recurrent translator with this kind of attention: a checkpoint of random parameters per
    seed, of which the first is the best.
    """
    model = {"model.attention": attention, "model.input_feeding": "false", "model.d_hidden": "8"}
    config = configs.load(f"{ROOT}/configs/rnn_luong.py:smoke=true", model)
    write_config(config, Workdir(folder))
    task = make_task(config, folder, make_mesh())
    with Checkpoints(folder / "checkpoints", keep_last=len(seeds)) as checkpoints:
        for step, seed in enumerate(seeds, start=1):
            state = new_state(jax.jit(task.init)(jax.random.key(seed)), optax.sgd(0.1), 0.0)
            checkpoints.save(step, state, None, {}, score=-step)
    write_manifest(folder, config)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("attention", "available", "missing"),
    [("global", "only --attention=cross", ["encoder", "decoder"]), ("none", "no attention", ["cross", "encoder"])],
)
def test_attention_that_a_translator_does_not_have_is_an_error(
    attention, available, missing, tmp_path, nmt_jax, mistake
):
    workdir = make_translator(tmp_path / "w", attention)
    arguments = ["plot", f"--workdir={workdir}", "--sentence=the dog", "--target=der Hund"]
    if attention == "global":
        assert nmt_jax(*arguments).lines == [str(workdir / "attention.png")]
    for kind in missing:
        error = mistake(*arguments, f"--attention={kind}")
        assert error == f"--attention={kind}: the model in {workdir} has {available}"


@pytest.mark.slow
def test_attention_is_that_of_the_chosen_checkpoint(tmp_path, nmt_jax, mistake):
    workdir = make_translator(tmp_path / "w", "global", seeds=(0, 1))
    arguments = ["plot", f"--workdir={workdir}", "--sentence=the dog", "--target=der Hund"]
    pictures = {}
    for flag in ("", "--checkpoint=best", "--checkpoint=last", "--average=2"):
        (path,) = nmt_jax(*arguments, *filter(None, [flag])).lines
        pictures[flag] = pathlib.Path(path).read_bytes()
    default, best, last, average = pictures.values()
    assert default == best
    assert len({best, last, average}) == 3
    assert "exclude each other" in mistake(*arguments, "--checkpoint=last", "--average=2")
    assert mistake("plot", f"--workdir={workdir}", "--checkpoint=last").endswith("without --kind=attention")


def test_attention_that_a_classifier_does_not_have_is_an_error(tmp_path, classifier_workdir, nmt_jax, mistake):
    output = tmp_path / "x.html"
    arguments = ["plot", f"--workdir={classifier_workdir}", "--sentence=a fine film", f"--output={output}"]
    nmt_jax()  # discards what training printed
    assert nmt_jax(*arguments).lines == [str(output)]
    error = mistake(*arguments, "--overwrite", "--attention=encoder")
    assert error.startswith(f"--attention=encoder: {classifier_workdir} is a classifier")


@pytest.mark.slow
def test_the_attention_of_one_text_is_drawn(gpt_workdir, tmp_path, nmt_jax, mistake):
    output = tmp_path / "attention.png"
    plot = ("plot", "--sentence=der alte Mann", f"--output={output}")
    assert nmt_jax(*plot, f"--workdir={gpt_workdir}").lines == [str(output)]
    assert output.read_bytes().startswith(b"\x89PNG")
    folder = tiny_encoder_folder.write(tmp_path / "encoder")
    of_encoder = ("plot", f"--encoder={folder}", f"--output={tmp_path / 'other.png'}", "--overwrite")
    assert nmt_jax(*of_encoder, "--sentence=the good film").code == 0
    assert "needs a sentence" in mistake(*of_encoder, "--kind=attention")
    assert "--workdir has no effect with --encoder" in mistake(*of_encoder, "--sentence=x", f"--workdir={gpt_workdir}")
    plot = ("plot", "--sentence=x", f"--workdir={gpt_workdir}")
    assert mistake(*plot, "--target=y").startswith("--target: has no effect")
    assert mistake(*plot, "--attention=decoder").startswith("--attention=decoder: has no effect")


def test_a_recurrent_language_model_has_no_attention_to_draw(language_model_workdir, mistake):
    assert "has no attention" in mistake("plot", "--sentence=x", f"--workdir={language_model_workdir}")


def test_every_layer_and_head_of_one_text_has_a_map():
    figure = draw_text_attention(["[CLS]", "play", "##ing"], attention(2, 3, [""] * 3, [""] * 3)["encoder"])
    assert len(figure.axes) == 2 * 3 + 1
    for labels in (figure.axes[0].get_xticklabels(), figure.axes[0].get_yticklabels()):
        assert [label.get_text() for label in labels] == ["[CLS]", "play", "·ing"]
