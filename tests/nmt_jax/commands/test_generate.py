"""`nmt-jax generate` and `nmt-jax perplexity` with a language model that has learned next to nothing."""

import math

import numpy as np
import pytest

from nmt_jax import config as configs
from nmt_jax.commands import generate, perplexity
from nmt_jax.data.readers.monolingual import open_lines
from nmt_jax.data.vocabulary.vocab import UNK
from nmt_jax.decoding.sampling import Sampling
from nmt_jax.errors import UserError
from nmt_jax.tasks.language_model import LanguageModel
from nmt_jax.workdir import Workdir
from tests.conftest import ROOT
from tests.fixtures.command_line import error_line

PROMPTS = ["der alte Mann", "", "sie sieht", "x\u2028y 🙂"]
PROMPT_LINES = "".join(f"{prompt}\n" for prompt in PROMPTS)


@pytest.fixture
def workdir(language_model_workdir):
    return language_model_workdir


def test_samples_are_lines_and_reproducible(workdir, nmt_jax):
    code, lines, stderr = nmt_jax("generate", f"--workdir={workdir}", "--num_samples=5", "--length=5")
    assert code == 0
    assert len(lines) == 5
    assert "\r" not in stderr
    assert lines == list(generate.run(workdir, num_samples=7, length=5))[:5]
    assert lines != list(generate.run(workdir, num_samples=5, length=5, sampling=Sampling(seed=1)))
    assert len(list(generate.run(workdir, length=5))) == generate.NUM_SAMPLES


def test_the_largest_seed(workdir, nmt_jax):
    assert len(nmt_jax("generate", f"--workdir={workdir}", "--length=5", f"--seed={2**63 - 1}").lines) == 10


def test_one_line_per_prompt(workdir, nmt_jax):
    code, lines, _ = nmt_jax("generate", f"--workdir={workdir}", "--prompts=-", "--length=5", stdin=PROMPT_LINES)
    assert code == 0
    assert len(lines) == len(PROMPTS)
    assert all(line.startswith(prompt) for line, prompt in zip(lines, PROMPTS, strict=True))
    assert lines == list(generate.run(workdir, PROMPTS, length=5, chunk=1))
    three = list(generate.run(workdir, PROMPTS, length=5, num_samples=3))
    assert three[::3] == lines


def test_prompts_before_a_bad_one_are_continued(workdir, nmt_jax):
    stdin = PROMPT_LINES.encode() + b"\xff\n"
    finished = nmt_jax("generate", f"--workdir={workdir}", "--prompts=-", "--length=5", stdin=stdin)
    assert finished.code == 2
    assert finished.lines == list(generate.run(workdir, PROMPTS, length=5))
    assert f"stdin:{len(PROMPTS) + 1}: not UTF-8" in error_line(finished)


def test_prompts_from_a_file(workdir, nmt_jax, tmp_path):
    (tmp_path / "prompts").write_text("sie sieht\n")
    lines = nmt_jax("generate", f"--workdir={workdir}", f"--prompts={tmp_path / 'prompts'}", "--length=5").lines
    assert lines == list(generate.run(workdir, ["sie sieht"], length=5))


def test_perplexity_of_the_text_on_stdin(workdir, nmt_jax):
    text = ["sie sieht das Haus .", "", "der alte Mann schläft ."]
    code, lines, stderr = nmt_jax("perplexity", f"--workdir={workdir}", stdin="\n".join(text))
    assert (code, stderr) == (0, "")
    printed = dict(line.split() for line in lines)
    found = perplexity.run(workdir, text)
    assert list(printed) == list(found) == ["perplexity", "lines", "tokens", "unknown", "bits_per_character"]
    assert float(printed["perplexity"]) == pytest.approx(found["perplexity"], rel=1e-5)
    assert (found["lines"], found["unknown"]) == (3, 0)
    bits = found["tokens"] * math.log2(found["perplexity"])
    assert found["bits_per_character"] == pytest.approx(bits / sum(len(line) + 1 for line in text))


def test_perplexity_of_the_development_text_equals_that_logged_in_training(workdir):
    config = configs.read(workdir / "config.json")
    logged = [row["dev/perplexity"] for row in Workdir(workdir).metrics() if "dev/perplexity" in row]
    found = perplexity.run(workdir, open_lines(config.data, "dev"), checkpoint="last")
    assert found["perplexity"] == pytest.approx(logged[-1], rel=1e-5)


def test_no_bits_per_character_with_unknown_words(workdir, monkeypatch):
    monkeypatch.setattr(LanguageModel, "encode", lambda self, lines: np.array([5, UNK, 3], np.int32))
    found = perplexity.run(workdir, ["a b"])
    assert found["unknown"] == 1
    assert "bits_per_character" not in found


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("generate",), "nmt-jax generate needs --workdir=FOLDER"),
        (("generate", "x"), "unexpected argument 'x'; use --prompts=x"),
        (("generate", "--workdir={}", "--prompts=nowhere"), "nowhere: no such file"),
        (("generate", "--workdir={}", "--temperature=-1"), "temperature"),
        (("generate", "--workdir={}", "--temperature=1e-40"), "temperature"),  # log-probabilities would overflow
        (("generate", "--workdir={}", "--length=0"), "length"),
        (("generate", "--workdir=nowhere"), "no such workdir"),
        (("perplexity",), "nmt-jax perplexity needs --workdir=FOLDER"),
        (("perplexity", "x"), "--input=x"),
        (("perplexity", "--workdir={}", "--input=nowhere"), "nowhere: no such file"),
        (("translate", "--workdir={}"), "its task is 'language_model'"),
    ],
)
def test_mistakes(workdir, mistake, arguments, words):
    assert words in mistake(*(argument.format(workdir) for argument in arguments))


def test_a_text_without_words_has_no_perplexity(workdir, mistake):
    for text in (b"", b"\n\n"):
        assert "no text to measure" in mistake("perplexity", f"--workdir={workdir}", stdin=text)
    assert "stdin:2: not UTF-8" in mistake("perplexity", f"--workdir={workdir}", stdin=b"good\n\xff\n")


def test_a_workdir_of_another_task(tmp_path):
    configs.save(configs.load(f"{ROOT}/configs/quickstart.py"), tmp_path / "config.json")
    for run in (lambda: generate.run(tmp_path), lambda: perplexity.run(tmp_path, ["a"])):
        with pytest.raises(UserError, match="its task is 'translate', but this needs 'language_model'"):
            run()
