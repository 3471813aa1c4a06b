import numpy as np
import pytest
from hypothesis import given, settings

from metrics_jax import MeteorNLTK, parse
from metrics_jax.surface.wordnet import WordNet
from tests.fixtures import golden, texts


def align(database, hypothesis, reference):
    return MeteorNLTK(wordnet=database).align(hypothesis.split(), reference.split())


def test_golden_values_of_nltk(shared, princeton):
    checked = 0
    for case, hypotheses, references in golden.cases(shared, "meteor_nltk"):
        options = {key: value for key, value in case["options"].items() if key not in ("stemmer", "preprocess")}
        metric = MeteorNLTK(**options, wordnet=WordNet(princeton))
        scores = [row["score"] for row in case["expected"]]
        result = metric(hypotheses, references)
        assert np.allclose(result.segments, scores, rtol=0, atol=1e-9), case["id"]
        assert result.score == pytest.approx(np.mean(scores), abs=1e-9)
        pairs = [(text, one) for text, group in zip(hypotheses, references, strict=True) for one in group]
        rows = [row for expected in case["expected"] for row in expected["per_reference"]]
        statistics = metric.statistics([text for text, _ in pairs], [one for _, one in pairs])
        assert statistics[:, 2:4].tolist() == [[row["matches"], row["chunks"]] for row in rows], case["id"]
        assert np.allclose(statistics[:, 0], [row["score"] for row in rows], rtol=0, atol=1e-9), case["id"]
        checked += 1
    assert checked == 42


def test_worked_example(database):
    result = MeteorNLTK(wordnet=database)(["the boy running in the street"], ["the boy was running in the street"])
    assert result.score == pytest.approx(0.8534621578099838, abs=1e-12)  # nltk 3.10.4


def test_words_are_matched_from_the_end(database):
    assert align(database, "a", "a b a") == {0: 2}
    assert align(database, "a b a", "a") == {2: 0}
    assert align(database, "a b a c", "a a b") == {0: 0, 1: 2, 2: 1}


def test_unmatched_words_remain_stems(database):
    assert align(database, "bicycle", "bike") == {}  # looked up as "bicycl"
    assert align(database, "bikes", "cycl") == {}
    assert align(database, "lads", "boy") == {0: 0}  # "lad" is a word
    assert align(database, "car", "auto") == {0: 0}


def test_reference_words_are_not_looked_up(database):
    assert align(database, "jogs", "run") == {0: 0}
    assert align(database, "run", "ran") == {}  # in the other direction, "ran" is looked up
    assert align(database, "ran", "run") == {0: 0}


def test_synonyms_keep_their_capitals(database):
    assert "America" in database.synonyms("usa")
    assert MeteorNLTK(wordnet=database)(["USA"], ["America"]).parts["matches"] == 0


def test_stems_have_the_extensions_of_nltk(database):
    assert align(database, "skies", "sky") == {0: 0}


def test_the_corpus_score_is_the_mean_over_segments(database):
    metric = MeteorNLTK(wordnet=database)
    hypotheses, references = ["a b c", "d e", "f"], [["a x y z", "a b c d"], ["d e"], ["g"]]
    result = metric(hypotheses, references)
    assert result.score == pytest.approx(result.segments.mean(), abs=1e-12)
    statistics = metric.statistics(hypotheses, references)
    assert statistics[:, 1:].tolist() == [[1, 3, 1, 3, 4], [1, 2, 1, 2, 2], [1, 0, 0, 1, 1]]
    assert result.parts["precision"] == 5 / 6
    resampled = statistics[np.array([[0, 0, 1], [2, 2, 2]])].sum(axis=1)
    assert metric.score(resampled).shape == (2,)
    assert metric.score(resampled)[1] == 0
    assert metric.score(resampled)[0] == pytest.approx((2 * result.segments[0] + result.segments[1]) / 3)


def test_empty_texts_score_0(database):
    result = MeteorNLTK(wordnet=database)(["", "a", "", " "], ["a", "", "", [" ", "b"]])
    assert result.segments.tolist() == [0, 0, 0, 0]
    assert result.score == 0
    assert MeteorNLTK(wordnet=database).score(np.zeros(6)) == 0


def test_tokenizers(database):
    assert MeteorNLTK(tokenize="whitespace", wordnet=database) == MeteorNLTK(wordnet=database)
    assert MeteorNLTK(wordnet=database)(["the cat."], ["the cat ."]).parts["matches"] == 1
    assert MeteorNLTK(tokenize="13a", wordnet=database)(["The cat."], ["the cat ."]).parts["matches"] == 3


@settings(deadline=None, max_examples=100)
@given(texts.segments(texts.spaced("a", "b", "runs", "run"), max_size=4))
def test_properties(database, pairs):
    metric = MeteorNLTK(wordnet=database)
    hypotheses, references = [text for text, _ in pairs], [group for _, group in pairs]
    result = metric(hypotheses, references)
    assert ((result.segments >= 0) & (result.segments <= 1)).all()
    for hypothesis, group, segment in zip(hypotheses, references, result.segments, strict=True):
        assert metric([hypothesis], [group]).score == segment
        assert segment == max(metric([hypothesis], [one]).score for one in group[::-1])
        assert segment <= metric([hypothesis], [hypothesis]).score + 1e-12


def test_signature(database):
    metric = MeteorNLTK(alpha=0.85, wordnet=database)
    assert metric.signature.startswith("meteor_nltk|alpha:0.85|beta:3.0|gamma:0.5|tokenize:none|wordnet:")
    assert parse(metric.signature, wordnet=database) == metric


def test_no_database(tmp_path, monkeypatch):
    monkeypatch.setenv("WNSEARCHDIR", str(tmp_path))
    with pytest.raises(ValueError, match="wordnet-base"):
        MeteorNLTK()


@pytest.mark.parametrize("options", [{"alpha": -0.1}, {"beta": -1.0}, {"gamma": 1.1}, {"tokenize": "words"}])
def test_invalid_options(database, options):
    with pytest.raises(ValueError, match=next(iter(options))):
        MeteorNLTK(**options, wordnet=database)
