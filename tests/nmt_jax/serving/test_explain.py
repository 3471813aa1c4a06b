"""`/api/explain`: the explanations of the server's metrics, and requests that it refuses."""

import pytest

from metrics_jax import parse
from nmt_jax.serving.models import Models
from tests.fixtures import tiny_encoder
from tests.fixtures.serving import running

METRICS = ["bleu", "chrf", "ter", "rougeL", "bertscore"]


@pytest.fixture(scope="module")
def metrics():
    encoder = tiny_encoder.make()
    return {name: parse(name, **({"encoder": encoder} if name == "bertscore" else {})) for name in METRICS}


@pytest.fixture(scope="module")
def client(metrics):
    with running(Models([], metrics)) as client:
        yield client


def test_scores_are_those_of_the_metrics(client, metrics):
    pair = {"hypothesis": "the cat sat down", "reference": "a cat sat"}
    answer = client.post("/api/explain", pair)
    assert answer.status == 200, answer.body
    assert [one["metric"] for one in answer.json] == METRICS
    for one in answer.json:
        result = metrics[one["metric"]]([pair["hypothesis"]], [pair["reference"]])
        assert one["score"] == pytest.approx(result.score, abs=1e-12)
        assert one["signature"] == result.signature
    assert [one["kind"] for one in answer.json] == ["ngrams", "ngrams", "edits", "alignment", "similarity"]
    (one,) = client.post("/api/explain", pair | {"metrics": ["chrf"]}).json
    assert one["metric"] == "chrf"


@pytest.mark.parametrize("pair", [("", ""), ("", "a cat"), ("a cat", ""), ("<b>&", "\u200b"), ("a" * 2000, "b")])
def test_extreme_texts(pair, client):
    answer = client.post("/api/explain", {"hypothesis": pair[0], "reference": pair[1], "metrics": METRICS[:4]})
    assert answer.status == 200, answer.body


@pytest.mark.parametrize(
    "body",
    [
        {"hypothesis": "a"},
        {"hypothesis": "a", "reference": None},
        {"hypothesis": ["a"], "reference": "b"},
        {"hypothesis": "a\nb", "reference": "b"},
        {"hypothesis": "a" * 2001, "reference": "b"},
        {"hypothesis": "a", "reference": "b", "metrics": ["bertscore|encoder:/etc"]},
        {"hypothesis": "a", "reference": "b", "metric": "bleu"},
    ],
)
def test_a_hostile_request_gets_one_line(body, client):
    answer = client.post("/api/explain", body)
    assert answer.status == 400
    assert "\n" not in answer.json["error"]
