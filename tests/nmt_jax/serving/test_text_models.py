"""Language models, BERT and encoders over HTTP answer as the command line and Python do."""

import re

import numpy as np
import pytest

import nmt_jax as package
from nmt_jax.errors import UserError
from nmt_jax.serving.models import Models
from tests.fixtures import tiny_encoder_folder
from tests.fixtures.serving import running

PROMPT = "der alte Mann"
MASKED = "the old [MASK] sees [MASK] ."


@pytest.fixture(scope="module")
def workdirs(gpt_workdir, language_model_workdir, pretraining_workdir, tmp_path_factory):
    """Links with names of their own."""
    folder, found = tmp_path_factory.mktemp("named"), {}
    for name, workdir in (("gpt", gpt_workdir), ("rnn", language_model_workdir), ("bert", pretraining_workdir)):
        found[name] = folder / name
        found[name].symlink_to(workdir)
    return found


@pytest.fixture(scope="module")
def client(workdirs, tmp_path_factory):
    encoder = tiny_encoder_folder.write(tmp_path_factory.mktemp("encoders") / "tiny", pooler=False)
    with running(Models.open([[folder] for folder in workdirs.values()], ["bleu"], encoder=str(encoder))) as client:
        yield client


def test_the_server_says_what_every_model_can_do(client):
    described = client.get("/api/models").json
    assert described["models"] == []
    assert {model["name"]: model["can"] for model in described["text_models"]} == {
        "gpt": ["generate", "attention"],
        "rnn": ["generate"],
        "bert": ["fill", "attention"],
        "tiny": ["attention"],
    }


@pytest.mark.slow
@pytest.mark.parametrize("model", ["gpt", "rnn"])
def test_a_continuation_is_that_of_the_command_line(model, client, workdirs, nmt_jax):
    flags = ["--length=9", "--temperature=0.7", "--top_k=20", "--top_p=0.9", "--seed=4"]
    (line,) = nmt_jax("generate", f"--workdir={workdirs[model]}", "--prompts=-", *flags, stdin=f"{PROMPT}\n").lines
    fields = {"length": 9, "temperature": 0.7, "top_k": 20, "top_p": 0.9, "seed": 4}
    answer = client.post("/api/generate", {"model": model, "text": PROMPT, "alternatives": 5, **fields}).json
    assert (answer["model"], answer["text"]) == (model, line)
    pieces, given = answer["pieces"], answer["given"]
    assert "".join(one["piece"] for one in pieces[:given]).replace("▁", " ").strip() == PROMPT
    assert given < len(pieces) <= given + 9
    possible = package.load(workdirs[model]).next_pieces(PROMPT, 10_000)
    assert [one["piece"] for one in pieces[given]["alternatives"]] == [one.piece for one in possible[:5]]
    probabilities = {one.piece: one.probability for one in possible}
    assert pieces[given]["probability"] == pytest.approx(probabilities[pieces[given]["piece"]], abs=1e-6)


def test_candidates_for_masks_are_those_of_python(client, workdirs):
    answer = client.post("/api/fill", {"text": MASKED, "candidates": 4}).json
    expected = package.load(workdirs["bert"]).fill(MASKED, 4)
    assert [[one["text"] for one in mask] for mask in answer["masks"]] == [
        [one.text for one in mask] for mask in expected
    ]
    found = [[one["probability"] for one in mask] for mask in answer["masks"]]
    np.testing.assert_allclose(found, [[one.probability for one in mask] for mask in expected], atol=1e-6)


@pytest.mark.parametrize("model", ["gpt", "bert"])
def test_attention_within_a_text_is_that_of_python(model, client, workdirs):
    answer = client.post("/api/text_attention", {"model": model, "text": PROMPT}).json
    pieces, weights = package.load(workdirs[model]).attention(PROMPT)
    assert answer["pieces"] == pieces
    np.testing.assert_allclose(answer["weights"], weights, atol=1e-4)


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        ("generate", {"model": "bert", "text": "x"}, "'bert' is not one of gpt, rnn"),
        ("fill", {"text": "the old man"}, r"the text has no \[MASK\]"),
        ("fill", {"text": "[MASK] " * 11, "candidates": 100}, "11 masks with 100 candidates each are too many"),
        ("fill", {"model": "gpt", "text": "x"}, "'gpt' is not one of bert"),
        ("text_attention", {"model": "rnn", "text": "x"}, "'rnn' is not one of gpt, bert, tiny"),
        ("text_attention", {"model": "tiny", "text": "good " * 100}, "reads at most 48"),
        ("generate", {"text": "x " * 400}, "max_positions"),
        ("generate", {"text": "x", "temperature": -1}, "temperature"),
        ("translate", {"lines": ["x"]}, "no translator"),
    ],
)
def test_a_request_that_no_model_can_answer_is_refused(path, body, told, client):
    answer = client.post(f"/api/{path}", body)
    assert answer.status == 400
    assert re.search(told, answer.json["error"])


def test_models_that_cannot_be_served_are_named(word_vectors_workdir, workdirs):
    with pytest.raises(UserError, match=r"config\.task=word_vectors cannot be served"):
        Models.open([[word_vectors_workdir]], [])
    with pytest.raises(UserError, match="two models are called 'rnn'"):
        Models.open([[workdirs["rnn"]], [workdirs["rnn"]]], [])


def test_an_encoder_that_is_a_served_workdir_is_listed_once(workdirs):
    models = Models.open([[workdirs["bert"]]], ["bleu"], encoder=str(workdirs["bert"]))
    assert list(models.text_models) == ["bert"]
