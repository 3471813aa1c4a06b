"""Translations and neural metrics on a GPU are those of the CPU."""

import json
import random

import numpy as np
import pytest

from tests.fixtures import minilm, tiny_encoder_folder

pytestmark = pytest.mark.gpu

LINES = 64
METRICS = ("bertscore", "moverscore", "moverscore|transport:sinkhorn")


@pytest.fixture(scope="module")
def workdir(commands, tmp_path_factory):
    """The model of the quickstart, trained on the device for less than a third of the time."""
    folder = tmp_path_factory.mktemp("quickstart") / "w"
    changes = {"train.steps": 300, "train.eval_every": 300, "train.checkpoint_every": 150, "eval.max_segments": 0}
    changes |= {"train.early_stopping_metric": "loss"}
    commands.finish(commands.train("quickstart.py", folder, changes, 1))
    split = ["--split=test", f"--lines={LINES}", f"--output={folder / 'test'}"]
    commands.finish(commands.start("corpus", f"--workdir={folder}", *split))
    return folder


def test_a_model_trained_on_the_device_translates(workdir, commands):
    files = [f"--workdir={workdir}", f"--input={workdir / 'test.en'}", f"--output={workdir / 'test.hypothesis'}"]
    commands.finish(commands.start("translate", *files, count=1))
    scored = ["score", workdir / "test.hypothesis", f"--reference={workdir / 'test.de'}", "--format=json"]
    (written,) = commands.finish(commands.start(*scored, "--metrics=bleu"))
    assert json.loads(written)[0]["score"] > 30


@pytest.mark.parametrize(("precision", "least"), [("highest", LINES), ("default", 0.95 * LINES)])
def test_beam_search_finds_the_translations_of_the_cpu(precision, least, workdir, commands):
    """In full float32 all of them. By default, products on a GPU have the ten-bit mantissa of TF32: nearly all."""
    command = ["translate", f"--workdir={workdir}", f"--input={workdir / 'test.en'}", "--beam_size=5"]
    cpu, gpu = commands.both(*command, JAX_DEFAULT_MATMUL_PRECISION=precision)
    pairs = [*zip(cpu.splitlines(), gpu.splitlines(), strict=True)]
    assert len(pairs) == LINES
    differing = [pair for pair in pairs if pair[0] != pair[1]]
    assert len(pairs) - len(differing) >= least, differing


@pytest.fixture(scope="module", params=["tiny", "minilm"])
def encoder(request, tmp_path_factory):
    if request.param == "tiny":
        return tiny_encoder_folder.write(tmp_path_factory.mktemp("encoder"), num_layers=5)
    minilm.load()  # skips where it is not installed
    return minilm.PACKAGE


def texts() -> tuple[list[str], list[str]]:
    """Hypotheses and references of one to thirty words."""
    draw, words = random.Random(0), tiny_encoder_folder.TEXT.split()
    references = [draw.choices(words, k=1 + number % 30) for number in range(100)]
    hypotheses = [[word if draw.random() < 0.7 else draw.choice(words) for word in one] for one in references]
    return [" ".join(one) for one in hypotheses], [" ".join(one) for one in references]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_scores_are_those_of_the_cpu(dtype, encoder, commands, tmp_path):
    for name, lines in zip(("hypothesis", "reference"), texts(), strict=True):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    files = [tmp_path / "hypothesis", f"--reference={tmp_path / 'reference'}", f"--encoder={encoder}"]
    command = ["score", *files, f"--metrics={','.join(METRICS)}", f"--dtype={dtype}", "--segments", "--format=json"]
    both = [np.array([one["segments"] for one in json.loads(out)]) for out in commands.both(*command)]
    assert both[0].shape == (len(METRICS), 100)
    tolerance = 1e-3 if dtype == "float32" else 1e-2  # a bfloat16 has eight bits
    np.testing.assert_allclose(both[1], both[0], rtol=0, atol=tolerance)
    np.testing.assert_allclose(both[1].mean(axis=1), both[0].mean(axis=1), rtol=0, atol=1e-3)
