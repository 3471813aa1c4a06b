"""`nmt-jax generate` and `nmt-jax perplexity` on a language model that has learnt next to nothing."""

import io
import math

import numpy as np
import pytest

from nmt_jax import __main__ as cli
from nmt_jax import config as configs
from nmt_jax.commands import generate, perplexity
from nmt_jax.decoding.sampling import Sampling
from nmt_jax.errors import UserError
from tests.conftest import ROOT

PROMPTS = ["der alte Mann", "", "sie sieht", "x\u2028y 🙂"]


@pytest.fixture
def workdir(language_model_workdir):
    return language_model_workdir


@pytest.fixture
def stdin(monkeypatch):
    """Puts bytes on stdin."""

    def put(data: bytes) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))

    return put


@pytest.fixture
def command(capfdbinary):
    """Runs nmt-jax -> exit code, lines of stdout, stderr."""

    def run(*arguments: str) -> tuple[int, list[str], str]:
        code = cli.main(list(arguments))
        out, err = capfdbinary.readouterr()
        return code, out.decode().split("\n")[:-1], err.decode()

    return run


def test_samples_come_a_line_each_and_the_same_every_time(workdir, command):
    code, lines, err = command("generate", f"--workdir={workdir}", "--num_samples=5", "--length=9")
    assert code == 0
    assert len(lines) == 5
    assert "\r" not in err
    assert lines == list(generate.run(workdir, num_samples=7, length=9))[:5]
    assert lines != list(generate.run(workdir, num_samples=5, length=9, sampling=Sampling(seed=1)))
    assert len(list(generate.run(workdir, length=1))) == generate.NUM_SAMPLES


def test_a_line_out_for_every_prompt(workdir, command, stdin):
    stdin("".join(f"{prompt}\n" for prompt in PROMPTS).encode())
    code, lines, _ = command("generate", f"--workdir={workdir}", "--prompts=-", "--length=5")
    assert code == 0
    assert len(lines) == len(PROMPTS)
    assert all(line.startswith(prompt) for line, prompt in zip(lines, PROMPTS, strict=True))
    assert lines == list(generate.run(workdir, PROMPTS, length=5, chunk=1))
    three = list(generate.run(workdir, PROMPTS, length=5, num_samples=3))
    assert three[::3] == lines


def test_what_came_before_a_bad_prompt_is_drawn(workdir, command, stdin):
    stdin("".join(f"{prompt}\n" for prompt in PROMPTS).encode() + b"\xff\n")
    code, lines, err = command("generate", f"--workdir={workdir}", "--prompts=-", "--length=5")
    assert code == 2
    assert lines == list(generate.run(workdir, PROMPTS, length=5))
    assert f"stdin:{len(PROMPTS) + 1}: not UTF-8" in err


def test_prompts_come_from_a_file(workdir, command, tmp_path):
    (tmp_path / "prompts").write_text("sie sieht\n")
    _, lines, _ = command("generate", f"--workdir={workdir}", f"--prompts={tmp_path / 'prompts'}", "--length=5")
    assert lines == list(generate.run(workdir, ["sie sieht"], length=5))


def test_perplexity_of_the_text_on_stdin(workdir, command, stdin):
    text = ["sie sieht das Haus .", "", "der alte Mann schläft ."]
    stdin("\n".join(text).encode())
    code, lines, err = command("perplexity", f"--workdir={workdir}")
    assert (code, err) == (0, "")
    printed = dict(line.split() for line in lines)
    found = perplexity.run(workdir, text)
    assert list(printed) == list(found) == ["perplexity", "lines", "tokens", "unknown", "bits_per_character"]
    assert float(printed["perplexity"]) == pytest.approx(found["perplexity"], rel=1e-5)
    assert (found["lines"], found["unknown"]) == (3, 0)
    bits = found["tokens"] * math.log2(found["perplexity"])
    assert found["bits_per_character"] == pytest.approx(bits / sum(len(line) + 1 for line in text))


def test_perplexity_of_the_dev_text_is_what_training_measured(workdir):
    config = configs.read(workdir / "config.json")
    from nmt_jax.data.readers.monolingual import open_lines
    from nmt_jax.workdir import Workdir

    measured = [row["dev/perplexity"] for row in Workdir(workdir).metrics() if "dev/perplexity" in row]
    found = perplexity.run(workdir, open_lines(config.data, "dev"), checkpoint="last")
    assert found["perplexity"] == pytest.approx(measured[-1], rel=1e-5)


def test_unknown_words_are_counted_and_leave_no_bits_per_character(workdir, monkeypatch):
    from nmt_jax.data.vocabulary.vocab import UNK
    from nmt_jax.tasks.language_model import LanguageModel

    monkeypatch.setattr(LanguageModel, "encode", lambda self, lines: np.array([5, UNK, 3], np.int32))
    found = perplexity.run(workdir, ["a b"])
    assert found["unknown"] == 1
    assert "bits_per_character" not in found


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("generate",), "nmt-jax generate needs --workdir=FOLDER"),
        (("generate", "x"), "prompts are --prompts=x"),
        (("generate", "--workdir={}", "--prompts=nowhere"), "nowhere: no such file"),
        (("generate", "--workdir={}", "--temperature=-1"), "temperature"),
        (("generate", "--workdir={}", "--length=0"), "length"),
        (("generate", "--workdir=nowhere"), "no such workdir"),
        (("perplexity",), "nmt-jax perplexity needs --workdir=FOLDER"),
        (("perplexity", "x"), "--input=x"),
        (("perplexity", "--workdir={}", "--input=nowhere"), "nowhere: no such file"),
        (("translate", "--workdir={}"), "its task is 'language_model'"),
    ],
)
def test_mistakes_are_one_line(workdir, command, arguments, words):
    code, lines, err = command(*(argument.format(workdir) for argument in arguments))
    assert (code, lines) == (2, [])
    assert words in err
    assert err.count("\n") == 1


def test_nothing_to_measure(workdir, command, stdin):
    for text in (b"", b"\n\n"):
        stdin(text)
        assert "no text to measure" in command("perplexity", f"--workdir={workdir}")[2]
    stdin(b"good\n\xff\n")
    assert "stdin:2: not UTF-8" in command("perplexity", f"--workdir={workdir}")[2]


def test_a_workdir_of_another_task_is_refused(workdir, tmp_path):
    config = configs.load(f"{ROOT}/configs/quickstart.py")
    configs.save(config, tmp_path / "config.json")
    for run in (lambda: generate.run(tmp_path), lambda: perplexity.run(tmp_path, ["a"])):
        with pytest.raises(UserError, match="its task is 'translate', but this needs 'language_model'"):
            run()
