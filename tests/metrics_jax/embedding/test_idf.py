import json
import math

import numpy as np
import pytest

from metrics_jax.embedding.idf import Idf
from tests.fixtures import golden

SENTENCES = [["the", "cat", "sat", "the"], ["the", "dog"], ["a", "cat", "the"]]


def test_a_sentence_counts_once():
    idf = Idf.fit(SENTENCES)
    assert idf.frequencies == {"the": 3, "cat": 2, "sat": 1, "dog": 1, "a": 1}
    assert idf.num_documents == 3
    assert (idf["the"], idf["cat"], idf["fish"]) == (0.0, math.log(4 / 3), math.log(4))
    yisi = Idf.fit(SENTENCES, form="yisi")
    assert (yisi["the"], yisi["cat"], yisi["fish"]) == (math.log(2), math.log(1 + 4 / 3), math.log(5))


@pytest.mark.parametrize("name", ["bertscore", "moverscore"])
def test_equals_the_published_programs(shared, name):
    (case,) = [case for case in golden.read(shared, name)["cases"] if case["level"] == "idf"]
    table = case["expected"]["table"]
    n = table["[CLS]"] == 0 and round(math.exp(max(table.values())) * 2 - 1)  # the rarest token is in one sentence
    assert n == case["options"].get("num_docs", n)
    sentences = [
        [token for token, weight in table.items() if k < round((n + 1) / math.exp(weight) - 1)] for k in range(n)
    ]
    idf = Idf.fit(sentences)
    np.testing.assert_allclose([idf[token] for token in table], list(table.values()), atol=1e-12)
    assert idf["a token of no sentence"] == pytest.approx(case["expected"].get("unseen", math.log(n + 1)))


def test_weights_of_padded_segments():
    for name in (str, int):
        tokens = {"the": 5, "cat": 7, "sat": 9, "fish": 11, "": 0}
        segments = [["the", "cat", "fish"], ["cat", "", ""]]
        if name is int:
            idf = Idf.fit([[tokens[word] for word in words] for words in [["the", "cat"], ["the", "sat"]]])
            table = np.array([[tokens[word] for word in words] for words in segments])
        else:
            idf, table = Idf.fit([["the", "cat"], ["the", "sat"]]), segments
        mask = np.array([[True, True, True], [True, False, False]])
        expected = [[0, math.log(3 / 2), math.log(3)], [math.log(3 / 2), 0, 0]]
        np.testing.assert_allclose(idf.weights(table, mask), expected)
    assert idf.weights(table).all(axis=1).tolist() == [False, True]  # without a mask, padding counts as a token


def test_segments_with_zero_idf_get_equal_weights():
    idf = Idf.fit([[1, 2], [1, 2]])
    table, mask = (
        np.array([[1, 2, 1], [1, 3, 3], [1, 0, 0], [0, 0, 0]]),
        np.array([[1, 1, 1], [1, 1, 1], [1, 0, 0], [0, 0, 0]]),
    )
    with pytest.warns(UserWarning, match="2 of 4 segments have only tokens of idf weight 0"):
        weights = idf.weights(table, mask)
    unseen = math.log(3)
    np.testing.assert_allclose(weights, [[1, 1, 1], [0, unseen, unseen], [1, 0, 0], [0, 0, 0]])
    assert not idf.weights(np.zeros((2, 3), int), np.zeros((2, 3), bool)).any()  # no tokens, no warning
    assert idf.weights(np.zeros((2, 0), int)).shape == (2, 0)


@pytest.mark.parametrize("sentences", [SENTENCES, [[3, 5], [5]], [["ü\x00", "\ud800", "日本"]], [np.array([2, 2, 4])]])
def test_save_and_load(tmp_path, sentences):
    idf = Idf.fit(sentences, form="yisi")
    idf.save(tmp_path / "idf.json")
    loaded = Idf.load(tmp_path / "idf.json")
    assert loaded == idf
    assert loaded.fingerprint == idf.fingerprint
    assert {type(token) for token in loaded.frequencies} == {type(token) for token in idf.frequencies}


def test_the_fingerprint_covers_all_fields():
    same = Idf.fit([["b", "a"], ["a"]])
    others = [Idf.fit([["a", "b"], ["b"]]), Idf.fit([["a", "b"], ["a"]], form="yisi"), Idf.fit([["a", "b"], ["a"], []])]
    assert same.fingerprint == Idf.fit([["a", "b", "b"], ["a"]]).fingerprint
    assert len({idf.fingerprint for idf in (same, *others)}) == 4
    assert Idf.fit([[1]]).fingerprint != Idf.fit([["1"]]).fingerprint


def test_invalid_input_raises_errors(tmp_path):
    with pytest.raises(ValueError, match="form='bert' is none of bertscore, yisi"):
        Idf.fit(SENTENCES, form="bert")
    with pytest.raises(ValueError, match="no sentences"):
        Idf.fit([])
    with pytest.raises(TypeError, match="not a single string"):
        Idf.fit(["the cat"])
    with pytest.raises(ValueError, match="between 1 and the number of sentences, 2"):
        Idf({"a": 3}, 2)
    path = tmp_path / "idf.json"
    for content in (
        "",
        "[]",
        "{}",
        json.dumps({"form": "bertscore", "num_documents": 1, "tokens": ["a"], "frequencies": []}),
    ):
        path.write_text(content)
        with pytest.raises(ValueError, match=r"idf\.json: not a file of frequencies that Idf\.save wrote"):
            Idf.load(path)
    with pytest.raises(ValueError, match="missing"):
        Idf.load(tmp_path / "missing")
