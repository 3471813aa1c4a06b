"""The metric perplexity: equal to what `nmt-jax perplexity` and the tasks compute."""

import numpy as np
import pytest

from metrics_jax import TextPerplexity, load
from nmt_jax.commands import perplexity
from nmt_jax.errors import UserError
from nmt_jax.ngram.counts import count
from nmt_jax.ngram.files import writer_of
from nmt_jax.ngram.kneser_ney import estimate, parse_fallback
from nmt_jax.pretrained.language_models import load_language_model
from nmt_jax.pretrained.metrics import open_metric
from nmt_jax.reporting.system_scores import Inference, score_files
from nmt_jax.training.trained import open_trained
from nmt_jax.workdir import Workdir

TEXTS = ["the old man sees the house .", "she sleeps", "", "the house " * 40, "she sleeps", "Ω the man"]


@pytest.fixture(scope="module")
def ngram(tmp_path_factory):
    path = tmp_path_factory.mktemp("ngram") / "small.arpa"
    lines = ["the old man sees the house .", "she sees a man .", "the man sleeps", "a house is old ."]
    writer_of(path)(estimate(count(lines, 3), parse_fallback(["0.5", "1", "1.5"]))[0], path)
    return path


def check(place, expected, pieces, dtype):
    metric = open_metric("perplexity", perplexity=str(place), dtype=dtype)
    statistics = metric.statistics(TEXTS)
    np.testing.assert_allclose(statistics[:, 0], expected, rtol=1e-5)
    np.testing.assert_array_equal(statistics[:, 1], pieces)
    result = metric(TEXTS)
    assert result.score == pytest.approx(np.exp(-np.sum(expected) / np.sum(pieces)), rel=1e-5)
    np.testing.assert_array_equal(metric(TEXTS[::-1]).segments[::-1], result.segments)
    assert metric(TEXTS[3:4]).score == result.segments[3]
    assert load(result.signature, estimator=metric.estimator)(TEXTS).score == result.score
    return metric


def test_a_workdir(language_model_workdir):
    task, params = open_trained(Workdir(language_model_workdir), "language_model")
    pieces = [len(task.vocab.encode(text)) + 1 for text in TEXTS]
    assert max(pieces) > task.config.data.block_length  # a text is read in windows
    metric = check(language_model_workdir, task.log_probabilities(params, TEXTS), pieces, task.config.model.dtype)
    assert metric.signature.startswith(f"perplexity|estimator:{metric.estimator.fingerprint[:16]}.bfloat16|unit:piece|")
    assert open_metric("perplexity", perplexity=str(language_model_workdir)).signature != metric.signature


@pytest.mark.slow
def test_a_gpt(gpt_workdir):
    task, params = open_trained(Workdir(gpt_workdir), "language_model")
    pieces = [len(task.vocab.encode(text)) + 1 for text in TEXTS]
    check(gpt_workdir, task.log_probabilities(params, TEXTS), pieces, task.config.model.dtype)


def test_an_ngram_model(ngram):
    measures = perplexity.run_ngram(ngram, TEXTS)
    metric = open_metric("perplexity", perplexity=str(ngram))
    result = metric(TEXTS)
    assert result.score == pytest.approx(measures["perplexity"], rel=1e-12)
    assert result.parts["pieces"] == measures["tokens"]
    assert result.parts["unknown"] == measures["unknown"] > 0
    words = open_metric("perplexity|unit:word", perplexity=str(ngram))
    assert words(TEXTS).score == pytest.approx(result.score)  # its pieces are words
    characters = open_metric("perplexity|unit:character", perplexity=str(ngram))(TEXTS)
    assert characters.parts["characters"] == sum(len(text) + 1 for text in TEXTS)
    assert metric.pairwise(TEXTS[:2], ["a", "b", "c"]).tolist() == [[one] * 3 for one in result.segments[:2]]
    again = TextPerplexity(load_language_model(ngram))
    assert again.signature == metric.signature


def test_scores_of_files(ngram, tmp_path):
    """Without references; the comparison knows that lower is better."""
    lines = {"bad": ["the house . sees man the"] * 20, "good": ["the man sees the house ."] * 20}
    files = [tmp_path / name for name in lines]
    for file in files:
        file.write_text("\n".join(lines[file.name]) + "\n")
    options = {"metrics": ["perplexity"], "inference": Inference(confidence=True, paired="bootstrap")}
    bad, good = score_files([*map(str, files)], [], **options, perplexity=str(ngram))
    assert 1 < good.result.score < bad.result.score
    assert good.interval.lower <= good.result.score <= good.interval.upper
    assert good.comparison.p_value < 0.1
    with pytest.raises(UserError, match="--source has no effect"):
        score_files([str(files[0])], [], source=str(files[1]), metrics=["perplexity"], perplexity=str(ngram))
    metric, good = TextPerplexity(load_language_model(ngram)), lines["good"]
    assert metric(good).score == metric(good, references=good).score
    with pytest.raises(ValueError, match="does not read sources"):
        metric(good, sources=good)
    with pytest.raises(ValueError, match="unit='line' is none of piece, word, character"):
        TextPerplexity(metric.estimator, unit="line")


def test_mistakes(tmp_path):
    (tmp_path / "text").write_text("no model\n")
    for place, words in (
        (None, "perplexity needs a trained model: --perplexity=PLACE, a workdir of task 'language_model'"),
        (tmp_path / "none", "no such file"),
        (tmp_path / "text", "text"),
    ):
        with pytest.raises(UserError, match=words):
            open_metric("perplexity", perplexity=place and str(place))
