import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics_jax import Baseline, BERTScore, Idf
from metrics_jax.embedding import contextual
from tests.fixtures import golden, minilm, tiny_encoder

ENCODER = tiny_encoder.make()

short = st.text("ab c", max_size=6)


def metric_of(encoder, options) -> BERTScore:
    """The metric of a golden case."""
    layer, baseline = options["num_layers"], None
    if options["rescale"]:
        rows = [(0.0, 0.0, 0.0)] * minilm.LAYERS
        rows[layer] = tuple(options["baseline_prf"])
        baseline = Baseline(tuple(rows))
    return BERTScore(encoder, layer=layer, idf="references" if options["idf"] else "uniform", baseline=baseline)


def check(metric, case, hypotheses, references):
    expected = [[row["f"], row["p"], row["r"]] for row in case["expected"]]
    found = metric.statistics(hypotheses, references)
    np.testing.assert_allclose(found[:, :3], expected, atol=1e-5, rtol=0, err_msg=case["id"])
    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*were truncated")
def test_equals_bert_score(shared, monkeypatch):
    """bert-score 0.3.13 at every layer, with and without idf and rescaling, several references and long texts."""
    encoder = minilm.load()
    monkeypatch.setattr(contextual, "encode", minilm.Read(encoder, shared, "bertscore"))
    count = 0
    for case, hypotheses, references in golden.cases(shared, "bertscore"):
        if case["level"] == "sentence":
            found = check(metric_of(encoder, case["options"]), case, hypotheses, references)
            assert found[:, 3].all() == (case["input"] == "long")
            count += 1
    assert count > 100


@pytest.mark.slow
def test_equals_bert_score_end_to_end(shared):
    encoder = minilm.load()
    for case, hypotheses, references in golden.cases(shared, "bertscore"):
        if case["level"] == "sentence" and case["input"] == "multiref" and case["options"]["num_layers"] == 4:
            check(metric_of(encoder, case["options"]), case, hypotheses, references)


def test_frequencies_equal_bert_score(shared):
    encoder = minilm.load()
    case, _, references = next(one for one in golden.cases(shared, "bertscore") if one[0]["level"] == "idf")
    idf = BERTScore(encoder, idf="references").fitted(references).idf
    expected = case["expected"]["table"]
    assert {encoder.pieces([token])[0] for token in idf.frequencies} == set(expected)
    for token in idf.frequencies:
        assert idf[token] == pytest.approx(expected[encoder.pieces([token])[0]])


def expected_score(hypothesis, reference, layer, weigh, least):
    """F, precision and recall from the paper's equations."""
    (x, ids, special), (y, others, marks) = (
        tiny_encoder.states(ENCODER, text, layer) for text in (hypothesis, reference)
    )
    if special.all() or marks.all():
        return 0.0, 0.0, 0.0

    def mean(similarities, ids, special):
        best = [max(least, max(row)) for row in similarities]
        weights = [0 if mark else weigh(int(one)) for one, mark in zip(ids, special, strict=True)]
        return np.dot(weights, best) / sum(weights)

    precision, recall = mean(x @ y.T, ids, special), mean(y @ x.T, others, marks)
    return 2 * precision * recall / (precision + recall), precision, recall


@given(st.lists(st.tuples(short, short), min_size=1, max_size=6), st.sampled_from([0, 3, 5]), st.booleans())
@settings(max_examples=15, deadline=None)
def test_equals_the_equations(pairs, layer, nonnegative):
    idf = Idf({3 + ord("a"): 3, 3 + ord("b") + 128: 1}, 4)
    hypotheses, references = zip(*pairs, strict=True)
    for given_idf, weigh in (("uniform", lambda token: 1), (idf, idf.__getitem__)):
        metric = BERTScore(ENCODER, layer=layer, idf=given_idf, nonnegative=nonnegative)
        expected = [expected_score(*pair, layer, weigh, 0 if nonnegative else -1) for pair in pairs]
        np.testing.assert_allclose(metric.statistics(hypotheses, references)[:, :3], expected, atol=1e-5)


@given(st.lists(st.tuples(short, short), min_size=1, max_size=6))
@settings(max_examples=10, deadline=None)
def test_swapping_the_texts_swaps_precision_and_recall(pairs):
    left, right = zip(*pairs, strict=True)
    forwards, backwards = BERTScore(ENCODER).statistics(left, right), BERTScore(ENCODER).statistics(right, left)
    np.testing.assert_allclose(forwards[:, [0, 1, 2]], backwards[:, [0, 2, 1]], atol=1e-6)


def test_precision_recall_and_f_are_maximized_separately_over_references():
    metric = BERTScore(ENCODER, layer=1)
    references = ["a b", "ac cab abc", "c"]
    single = metric.statistics(["abc a"] * 3, references)[:, :3]
    together = metric.statistics(["abc a"], [references])[0, :3]
    np.testing.assert_array_equal(together, single.max(axis=0))
    assert len(set(single[:, 1:].argmax(axis=0))) == 2  # from different references


def test_an_empty_text_scores_0():
    result = BERTScore(ENCODER)(["", "a", "", " \n"], ["a", "", "", "a"])
    np.testing.assert_array_equal(result.segments, 0)
    assert result.parts == {"f1": 0.0, "precision": 0.0, "recall": 0.0, "long": 0.0}
    plain = BERTScore(tiny_encoder.plain())(["", "a", ""], ["a", "", ""])  # no tokens at all
    np.testing.assert_array_equal(plain.segments, 0)


def test_scores_equal_to_the_baseline_become_0():
    baseline = Baseline(((0.25, 0.5, -1.0),) * 6)
    raw = BERTScore(ENCODER).statistics(["abc", ""], ["ab", "a"])
    found = BERTScore(ENCODER, baseline=baseline).statistics(["abc", ""], ["ab", "a"])
    np.testing.assert_allclose(found[:, 0], (raw[:, 0] + 1) / 2)
    np.testing.assert_allclose(found[:, 1], (raw[:, 1] - 0.25) / 0.75)
    np.testing.assert_allclose(found[:, 2], (raw[:, 2] - 0.5) / 0.5)
    with pytest.raises(ValueError, match="baseline has 7 layers and the encoder 6"):
        BERTScore(ENCODER, baseline=Baseline(((0.0, 0.0, 0.0),) * 7))


def test_by_layer_equals_one_layer_at_a_time():
    hypotheses, references = ["ab c", "", "cc a"], ["abc", "a", "b"]
    found = BERTScore(ENCODER, idf="references").by_layer(hypotheses, references)
    assert found.shape == (6, 3, 3)
    for layer in range(6):
        alone = BERTScore(ENCODER, layer=layer, idf="references").statistics(hypotheses, references)
        np.testing.assert_allclose(found[layer], alone[:, [1, 2, 0]], atol=1e-6)


@pytest.mark.parametrize(
    ("texts", "error", "words"),
    [
        ((["a", "b"], ["a"]), ValueError, "2 hypotheses but 1 references"),
        (("ab", ["a", "b"]), TypeError, "hypotheses must be a sequence of strings"),
    ],
)
def test_invalid_pairs_by_layer(texts, error, words):
    with pytest.raises(error, match=words):
        BERTScore(ENCODER).by_layer(*texts)


def test_fitting_a_baseline(tmp_path):
    texts = ["ab c", "cab", "b", "ab c", "c c a b"]
    metric = BERTScore(ENCODER)
    baseline = metric.fit_baseline(texts, num_pairs=200)
    distinct = sorted(set(texts))
    others = [(a, b) for a in distinct for b in distinct if a != b]
    expected = metric.by_layer(*zip(*others, strict=True)).mean(axis=1)
    np.testing.assert_allclose(baseline.rows, expected, atol=0.05)  # 200 random pairs instead of all pairs
    assert metric.fit_baseline(texts, num_pairs=200) == baseline
    assert metric.fit_baseline(texts, num_pairs=200, seed=1) != baseline
    baseline.save(tmp_path / "x.tsv")
    assert (tmp_path / "x.tsv").read_text().startswith("LAYER,P,R,F\n0,0.")
    assert Baseline.load(tmp_path / "x.tsv") == baseline
    with pytest.raises(ValueError, match="1 different texts"):
        metric.fit_baseline(["a", "a"])


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "x.tsv:1: a baseline file must begin with the line LAYER,P,R,F"),
        ("LAYER,P,R\n0,1,2\n", "x.tsv:1: "),
        ("LAYER,P,R,F\n0,0.1,0.2\n", "x.tsv:2: '0,0.1,0.2' is not"),
        ("LAYER,P,R,F\n0,0.1,0.2,x\n", "x.tsv:2: "),
        ("LAYER,P,R,F\n0,0.1,0.2,0.3\n2,0.1,0.2,0.3\n", "x.tsv:3: expected layer 1, found 2"),
        ("LAYER,P,R,F\n0,0.1,0.2,1\n", "x.tsv: baseline of layer 0: .* below 1"),
        ("LAYER,P,R,F\n0,0.1,nan,0\n", "x.tsv: baseline of layer 0"),
    ],
)
def test_damaged_baselines_raise_errors(tmp_path, text, line):
    (tmp_path / "x.tsv").write_text(text)
    with pytest.raises(ValueError, match=line):
        Baseline.load(tmp_path / "x.tsv")
    with pytest.raises(ValueError, match=r"none\.tsv: cannot read the baseline"):
        Baseline.load(tmp_path / "none.tsv")
