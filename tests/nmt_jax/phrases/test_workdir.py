"""A phrase-based workdir: train, translate, report, and what other verbs say."""

import json
import shutil

import pytest

import nmt_jax
from nmt_jax import config as configs
from nmt_jax.__main__ import main
from nmt_jax.errors import UserError
from nmt_jax.phrases.model import read_weights
from nmt_jax.training.record import has_ended, read_record
from nmt_jax.training.run import train
from nmt_jax.workdir import Workdir
from tests.fixtures.config_modules import FOLDER

PAGE = str(FOLDER / "phrase.py:smoke=true")
LINES = ["the old man sees the dog .", "", "a XYZZY sleeps ."]


@pytest.fixture(scope="module")
def workdir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "phrase"
    assert train(PAGE, folder, {"train.steps": "2", "model.aligner": "ibm1"})["dev/bleu"] > 1
    return folder


@pytest.mark.slow
def test_links_can_be_sampled(tmp_path):
    assert train(PAGE, tmp_path / "phrase", {"train.steps": "1", "model.aligner": "fertility"})["dev/bleu"] > 1


def interrupt(*_):
    raise KeyboardInterrupt


@pytest.fixture
def source(tmp_path):
    (tmp_path / "source.txt").write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return tmp_path / "source.txt"


def test_a_workdir_has_its_config_a_log_and_a_record(workdir):
    folder = Workdir(workdir)
    assert folder.config() == configs.load(PAGE, {"train.steps": "2", "model.aligner": "ibm1"})
    assert [row["step"] for row in folder.metrics()] == [1, 2]
    record = read_record(folder)
    assert record.step == 2
    assert record.parameters > 500
    assert has_ended(folder.config(), record)


def test_lines_are_translated_and_unknown_words_are_copied(workdir, source, capsys):
    assert main(["translate", f"--workdir={workdir}", f"--input={source}"]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert len(lines) == 4
    assert lines[1] == ""
    assert "XYZZY" in lines[2]
    assert main(["translate", f"--workdir={workdir}", f"--input={source}", "--nbest=3"]) == 0
    rows = [row.split("\t") for row in capsys.readouterr().out.splitlines()]
    assert next(row[2] for row in rows if row[0] == "1") == lines[0]
    scores = [float(row[1]) for row in rows if row[0] == "1"]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)
    assert main(["translate", f"--workdir={workdir}", f"--input={source}", "--format=json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[0])["hypotheses"][0]["text"] == lines[0]


def test_a_model_is_used_in_python(workdir):
    model = nmt_jax.load(workdir)
    found = model.n_best(LINES, n_best=3)
    assert model.translate(LINES) == [one[0].text for one in found]
    assert len(found[0]) == 3
    with pytest.raises(AttributeError, match="has no 'score'; it has translate, n_best"):
        model.score(LINES, LINES)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["translate", "--length_penalty=1"], "only has --beam_size"),
        (["translate", "--num_samples=4"], "only has --beam_size"),
        (["translate", "--decode_dtype=int8"], "only has --beam_size"),
        (["export", "--to=safetensors", "--output=x"], "needs a neural model"),
        (["generate"], "needs a neural model"),
        (["classify"], "needs a neural model"),
        (["serve"], "cannot be served"),
    ],
)
def test_what_needs_a_neural_model_is_said_in_one_line(workdir, source, arguments, words, capsys):
    verb, *rest = arguments
    reads = [f"--input={source}"] if verb in ("translate", "classify") else []
    assert main([verb, f"--workdir={workdir}", *rest, *reads]) == 2
    error = capsys.readouterr().err.strip().split("\n")[-1]
    assert error.startswith("nmt-jax: error: ")
    assert words in error


def test_constraints_need_a_neural_model(workdir, source, capsys):
    assert main(["translate", f"--workdir={workdir}", f"--input={source}", f"--prefixes={source}"]) == 2
    assert f"{source}:1: a phrase-based model has no constraints" in capsys.readouterr().err


def test_a_report_shows_scores_and_translations(workdir, tmp_path):
    output = tmp_path / "report.html"
    assert main(["report", f"--workdir={workdir}", f"--output={output}", "--lines=5", "--samples=1"]) == 0
    page = output.read_text(encoding="utf-8")
    assert "stacks of 10, distortion limit 6" in page
    assert "2 of 2" in page


def test_a_finished_run_stays_as_it_is(workdir, capsys):
    files = [*(workdir / "phrases").iterdir(), workdir / "metrics.jsonl"]
    before = [file.stat().st_mtime_ns for file in files]
    measures = train(None, workdir)
    assert "already tuned" in capsys.readouterr().err
    assert [file.stat().st_mtime_ns for file in files] == before
    assert measures["dev/bleu"] == max(row["dev/bleu"] for row in Workdir(workdir).metrics())


def test_tuning_again_keeps_the_phrase_table_and_the_weights_until_it_ends(workdir, tmp_path, monkeypatch):
    again = tmp_path / "again"
    shutil.copytree(workdir, again)
    table, weights = (again / "phrases" / name for name in ("phrases.npz", "weights.json"))
    before, config = (table.stat().st_mtime_ns, weights.read_bytes()), Workdir(again).config()
    with monkeypatch.context() as patch:
        patch.setattr("nmt_jax.training.phrases.sample_pairs", interrupt)  # after the first round
        with pytest.raises(KeyboardInterrupt):
            train(None, again, {"train.early_stopping_metric": "chrf"})
    assert (table.stat().st_mtime_ns, weights.read_bytes()) == before
    assert Workdir(again).config() == config
    assert train(None, again, {"train.early_stopping_metric": "chrf"})["dev/chrf"] > 1
    assert table.stat().st_mtime_ns == before[0]
    assert weights.read_bytes() != before[1]
    with pytest.raises(UserError, match=r"different model: model.ngram_order was 3, now 2"):
        train(None, again, {"model.ngram_order": "2"})


def test_an_unknown_metric_and_damaged_weights_are_reported(workdir, tmp_path):
    with pytest.raises(UserError, match=r"early_stopping_metric: no metric 'blue'; did you mean bleu"):
        train(PAGE, tmp_path / "w", {"train.early_stopping_metric": "blue"})
    with pytest.raises(UserError, match=r"early_stopping_metric=bertscore: needs encoder"):
        train(PAGE, tmp_path / "w", {"train.early_stopping_metric": "bertscore"})
    several = {"data.corpus": "text", "data.source": "en,fr"}
    with pytest.raises(UserError, match=r"config.data.source='en,fr': a phrase-based model reads one source"):
        train(PAGE, tmp_path / "several", several)
    (tmp_path / "weights.json").write_text("{}")
    with pytest.raises(UserError, match="not a file of weights"):
        read_weights(tmp_path / "weights.json")
