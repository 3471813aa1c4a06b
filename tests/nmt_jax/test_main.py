"""The command line: help, errors, exit codes, and what a verb imports."""

import importlib.util
import json
import pathlib
import subprocess
import sys

import pytest
from absl import flags

from nmt_jax import __main__ as cli
from nmt_jax.commands import score
from nmt_jax.interrupts import Interrupted
from nmt_jax.training.run import resolve_config, write_config
from nmt_jax.workdir import Workdir, write_manifest
from tests.conftest import ROOT

QUICKSTART = str(ROOT / "configs" / "quickstart.py")


@pytest.mark.parametrize("arguments", [[], ["--help"], ["help"]])
def test_help_lists_every_verb_with_an_example(arguments, capsys):
    assert cli.main(arguments) == 0
    out = capsys.readouterr().out
    for verb in cli.VERBS:
        assert f"$ nmt-jax {verb} " in out


@pytest.mark.parametrize("verb", cli.VERBS)
def test_help_of_a_verb_lists_its_flags_with_defaults(verb, capsys):
    assert cli.main([verb, "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"nmt-jax {verb} " in lines[0]
    assert max(map(len, lines)) <= 120
    flags = [line.split()[0] for line in lines if line.startswith("  --")]
    assert len(flags) >= 3
    if verb == "score":
        assert "[bleu,chrf,ter]" in "\n".join(lines)


def test_every_verb_is_a_module_and_every_example_has_flags_that_exist():
    for name, verb in cli.VERBS.items():
        assert importlib.util.find_spec(f"nmt_jax.commands.{name}")
        module = importlib.import_module(f"nmt_jax.commands.{name}")
        flag_values = flags.FlagValues()
        module.define_flags(flag_values)
        words = verb.example.split(" -- ")[0].split()  # another command follows
        # `--config.KEY` changes a key of `--config`.
        given = [word.split("=")[0].removeprefix("--").split(".")[0] for word in words if word.startswith("--")]
        assert given
        assert set(given) <= set(flag_values)


def test_misspelled_verbs_and_flags(mistake):
    assert "did you mean train?" in mistake("trian")
    assert "did you mean --workdir?" in mistake("train", "--workdri=x")
    assert "did you mean --beam_size?" in mistake("translate", "--beam-size=3", "--workdir=x")
    assert "beam_size" in mistake("translate", "--beam_size=0", "--workdir=x")
    assert "beam_size" in mistake("translate", "--beam_size=wide", "--workdir=x")


def test_overrides_with_an_equals_sign_or_a_blank():
    gathered = cli._gather_overrides(["--config=a.py", "--config.a.b=1", "-config.c", "-2", "x", "--", "--config.d=3"])
    assert gathered == ["--config=a.py", "--override=a.b=1", "--override=c=-2", "x", "--", "--config.d=3"]


def test_an_override_without_a_value(mistake, tmp_path):
    assert "--config.train.steps needs a value" in mistake("train", f"--workdir={tmp_path}", "--config.train.steps")
    assert "needs a value" in mistake("train", "--config.train.steps", f"--workdir={tmp_path}")


def test_an_unknown_key_and_a_value_of_the_wrong_type(mistake, tmp_path):
    base = ("train", f"--config={QUICKSTART}", f"--workdir={tmp_path / 'w'}")
    assert "did you mean train.steps?" in mistake(*base, "--config.train.step=3")
    assert "must be an integer" in mistake(*base, "--config.train.steps", "few")
    assert not (tmp_path / "w").exists()  # an invalid config creates nothing


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("model.num_heads=3", "d_model=128 is not divisible by num_heads=3"),
        ("model.norm=middle", "norm='middle': use one of pre, post"),
        ("model_name=transformr", "config.model_name='transformr': use one of transformer"),
        ("task=translat", "config.task='translat': use one of translate"),
    ],
)
def test_an_invalid_model_creates_no_workdir(mistake, tmp_path, override, words):
    line = mistake("train", f"--config={QUICKSTART}", f"--workdir={tmp_path / 'w'}", f"--config.{override}")
    assert words in line
    assert not (tmp_path / "w").exists()


def test_a_home_directory_that_does_not_exist(mistake):
    assert "there is no home directory" in mistake("train", f"--config={QUICKSTART}", "--workdir=~no-such-user/w")


def test_missing_flags(mistake, tmp_path):
    assert "--workdir" in mistake("train", f"--config={QUICKSTART}")
    assert "--config=FILE" in mistake("train", f"--workdir={tmp_path}")
    assert "no such config file" in mistake("train", f"--workdir={tmp_path}", "--config=nowhere.py")
    assert "unexpected argument 'x'" in mistake("train", "x", f"--workdir={tmp_path}")
    assert "--workdir" in mistake("translate")
    assert "--workdir" in mistake("plot")
    assert "HYPOTHESIS" in mistake("score")


def test_an_empty_or_missing_workdir(mistake, tmp_path):
    for verb in ("translate", "plot"):
        assert "no such workdir" in mistake(verb, f"--workdir={tmp_path / 'nowhere'}")
        assert "not a workdir" in mistake(verb, f"--workdir={tmp_path}")


def _begin(folder: pathlib.Path, checkpoint: bool, **overrides: str) -> Workdir:
    """A workdir as training leaves it, without arrays."""
    workdir = Workdir(folder)
    config = resolve_config(QUICKSTART, workdir, overrides)
    write_config(config, workdir)
    workdir.vocab.mkdir()
    if checkpoint:
        (workdir.checkpoints / "10").mkdir(parents=True)
        write_manifest(workdir.path, config)
    return workdir


def test_a_workdir_without_a_checkpoint(mistake, tmp_path):
    _begin(tmp_path / "w", checkpoint=False)
    assert "no checkpoint yet" in mistake("translate", f"--workdir={tmp_path / 'w'}")


def test_a_config_of_another_model_leaves_the_workdir_unchanged(mistake, tmp_path):
    workdir = _begin(tmp_path / "w", checkpoint=True)
    before = workdir.config_file.read_bytes()
    line = mistake("train", f"--config={QUICKSTART}", f"--workdir={workdir.path}", "--config.model.d_model=64")
    assert str(workdir.path) in line
    assert "model.d_model was 128, now 64" in line
    assert workdir.config_file.read_bytes() == before
    assert workdir.vocab.is_dir()


def test_a_continued_run_needs_no_config_and_keeps_only_the_model(tmp_path):
    workdir = _begin(tmp_path / "w", checkpoint=True, **{"model.d_model": "64", "train.steps": "7"})
    config = resolve_config(None, workdir, {"train.steps": "9"})
    assert (config.model.d_model, config.train.steps) == (64, 9)
    write_config(config, workdir)
    assert workdir.config() == config


def test_before_the_first_checkpoint_the_vocabulary_may_change(tmp_path):
    workdir = _begin(tmp_path / "w", checkpoint=False)
    write_config(resolve_config(QUICKSTART, workdir, {"model.d_model": "64"}), workdir)
    assert workdir.vocab.is_dir()
    write_config(resolve_config(QUICKSTART, workdir, {"vocab.size": "99"}), workdir)
    assert not workdir.vocab.exists()


@pytest.mark.parametrize("checkpoint", [False, True])
def test_every_key_that_a_start_changes_is_announced(checkpoint, tmp_path, capsys):
    workdir = _begin(tmp_path / "w", checkpoint=checkpoint)
    assert capsys.readouterr().err == ""
    changes = {"train.steps": "3000", "data.corpus": "text", "data.source": "de", "data.target": "en"}
    write_config(resolve_config(None, workdir, changes), workdir)
    lines = capsys.readouterr().err.splitlines()
    assert sorted(lines) == [
        "nmt-jax: data.corpus: 'grammar' -> 'text'",
        "nmt-jax: data.source: 'en' -> 'de'",
        "nmt-jax: data.target: 'de' -> 'en'",
        "nmt-jax: train.steps: 1000 -> 3000",
    ]


def test_the_config_of_another_experiment_is_not_overwritten(mistake, tmp_path):
    workdir = _begin(tmp_path, checkpoint=False)
    before = workdir.config_file.read_bytes()
    line = mistake("train", f"--config={ROOT}/configs/rnn_lm.py", f"--workdir={tmp_path}")
    assert "belongs to another experiment (task is 'translate', not 'language_model')" in line
    workdir.config_file.write_text('{"architectures": ["BertModel"]}')
    line = mistake("train", f"--config={QUICKSTART}", f"--workdir={tmp_path}")
    assert "config.json: config.task is missing: not the config of an experiment" in line
    workdir.config_file.write_bytes(before)
    assert workdir.vocab.is_dir()


def test_fewer_steps_than_done_are_an_error_that_changes_nothing(mistake, tmp_path):
    workdir = _begin(tmp_path, checkpoint=True)
    record = {"custom_metadata": {"meta": {"stale": 0, "seconds": 1.0}, "shapes": {}}}
    (workdir.checkpoints / "10" / "_CHECKPOINT_METADATA").write_text(json.dumps(record))
    before = workdir.config_file.read_bytes()
    line = mistake("train", f"--workdir={tmp_path}", "--config.train.steps=9")
    assert f"train.steps=9: {tmp_path} has already reached step 10" in line
    assert workdir.config_file.read_bytes() == before


def test_a_workdir_that_cannot_be_created(mistake, tmp_path):
    (tmp_path / "file").write_text("")
    assert "cannot write the workdir" in mistake(
        "train", f"--config={QUICKSTART}", f"--workdir={tmp_path / 'file' / 'w'}"
    )


def test_an_incomplete_last_line_of_the_log_is_ignored(tmp_path):
    workdir = Workdir(tmp_path)
    workdir.metrics_file.write_text('{"step": 1}\n{"step": 2}\n{"st')
    assert [row["step"] for row in workdir.metrics()] == [1, 2]


@pytest.mark.parametrize(
    "line", ["garbage", "[1]", '{"step": "1"}', '{"loss": 1}', '{"step": 2, "loss": "x"}', "[" * 10**5], ids=range(6)
)
@pytest.mark.parametrize(("verb", "output"), [("plot", "x.png"), ("report", "x.html")])
def test_a_line_of_the_log_that_is_not_a_row_is_one_error(verb, output, line, mistake, tmp_path):
    workdir = _begin(tmp_path, checkpoint=False)
    workdir.metrics_file.write_text(f'{{"step": 1, "loss": 1.5}}\n{line}\n{{"step": 2}}\n')
    message = mistake(verb, f"--workdir={tmp_path}", f"--output={tmp_path / output}")
    assert "metrics.jsonl:2: not a row of the log" in message
    assert len(message) < 400


@pytest.mark.parametrize(
    ("error", "code"),
    [(KeyboardInterrupt(), 130), (Interrupted(15), 143), (Interrupted(2), 130)],
)
def test_exit_codes_of_interruptions(monkeypatch, error, code):
    def interrupted(*_: object) -> int:
        raise error

    monkeypatch.setattr(score, "main", interrupted)
    assert cli.main(["score", "x"]) == code


def _python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_help_imports_nothing_that_takes_a_second():
    code = (
        "import sys; from nmt_jax.__main__ import VERBS, main; main(); [main([verb, '--help']) for verb in VERBS]; "
        "print(sorted({'jax', 'flax', 'matplotlib', 'scipy.stats'} & set(sys.modules)))"
    )
    assert _python(code).endswith("[]\n")


def test_score_imports_no_flax(tmp_path):
    (tmp_path / "x").write_text("a b c d e\n")
    code = (
        f"import sys; from nmt_jax.__main__ import main; main(['score', {str(tmp_path / 'x')!r}, "
        f"'--reference={tmp_path / 'x'}']); print(sorted({{'jax', 'flax', 'tensorflow_datasets'}} & set(sys.modules)))"
    )
    assert _python(code).endswith("[]\n")
