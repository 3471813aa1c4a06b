"""A folder of GPT-2 in place of a workdir: perplexity and continuations are those of the reference (gpt_golden.py)."""

import json
import math

import pytest

import nmt_jax
from nmt_jax.commands import generate, perplexity
from nmt_jax.decoding.sampling import Sampling
from nmt_jax.errors import UserError
from nmt_jax.training.trained import open_trained
from nmt_jax.workdir import Workdir
from tests.conftest import ROOT
from tests.fixtures import gpt_folders

GOLDEN = json.loads((ROOT / "tests/fixtures/gpt_golden.json").read_text())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return gpt_folders.write_folder(tmp_path_factory.mktemp("gpt2"), GOLDEN["gpt2"])


def test_perplexity_is_that_of_the_reference(folder):
    golden = GOLDEN["gpt2"]
    measures = perplexity.run(folder, GOLDEN["lines"])
    assert measures["tokens"] == golden["tokens"] < golden["config"]["n_positions"]
    assert measures["perplexity"] == pytest.approx(math.exp(golden["nats"] / golden["tokens"]), rel=1e-5)
    assert measures["unknown"] == 0
    assert nmt_jax.load(folder).perplexity(GOLDEN["lines"]) == pytest.approx(measures["perplexity"], rel=1e-6)
    assert "bits_per_character" in measures


def test_the_likeliest_continuation_is_that_of_the_reference(folder):
    found = generate.run(folder, [GOLDEN["prompt"]], sampling=Sampling(temperature=0.0), length=5)
    assert list(found) == [GOLDEN["gpt2"]["continued"]]


def test_other_tasks_do_not_take_it(folder):
    with pytest.raises(UserError):
        open_trained(Workdir(folder), "translate")
    with pytest.raises(UserError, match="a published model has no checkpoints; leave out --checkpoint"):
        open_trained(Workdir(folder), "language_model", checkpoint="last")
