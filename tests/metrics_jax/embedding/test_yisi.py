import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics_jax import Idf, YiSi1
from tests.fixtures import tiny_encoder

ENCODER = tiny_encoder.make()

short = st.text("ab c", max_size=6)


def expected_score(hypothesis, reference, layer, n_gram, alpha, weigh):
    """Score, precision and recall from their definitions."""
    sides = []
    for text in (hypothesis, reference):
        vectors, ids, special = tiny_encoder.states(ENCODER, text, layer)
        sides.append((vectors[~special], [weigh(int(one)) for one in ids[~special]]))
    (x, weights), (y, others) = sides
    n = min(n_gram, len(x), len(y))
    if not n:
        return 0.0, 0.0, 0.0

    def mean(x, y, weights):
        numerator = denominator = 0.0
        for i in range(len(x) - n + 1):
            run = np.array(weights[i : i + n])
            similar = [run @ [x[i + k] @ y[j + k] for k in range(n)] / run.sum() for j in range(len(y) - n + 1)]
            numerator += run.sum() * max(0.0, *similar)
            denominator += run.sum()
        return numerator / denominator

    precision, recall = mean(x, y, weights), mean(y, x, others)
    mixed = alpha * precision + (1 - alpha) * recall
    return precision * recall / mixed if mixed else 0.0, precision, recall


@given(st.lists(st.tuples(short, short), min_size=1, max_size=6), st.sampled_from([1, 2, 3]), st.booleans())
@settings(max_examples=15, deadline=None)
def test_equals_the_definition(pairs, n_gram, weighted):
    idf = Idf({3 + ord("a"): 3, 3 + ord("b") + 128: 1}, 4, "yisi")
    metric = YiSi1(ENCODER, layer=2, n_gram=n_gram, idf=idf if weighted else "uniform")
    weigh = idf.__getitem__ if weighted else lambda token: 1
    expected = [expected_score(*pair, 2, n_gram, 0.7, weigh) for pair in pairs]
    np.testing.assert_allclose(metric.statistics(*zip(*pairs, strict=True))[:, :3], expected, atol=1e-5)


def test_alpha_weights_recall_against_precision():
    for alpha, part in ((0.0, "precision"), (1.0, "recall")):
        result = YiSi1(ENCODER, alpha=alpha)(["ab c", "c"], ["cab", "b c a"])
        assert result.score == pytest.approx(result.parts[part])
    with pytest.raises(ValueError, match=r"alpha=1\.5"):
        YiSi1(ENCODER, alpha=1.5)
    with pytest.raises(ValueError, match="n_gram=0"):
        YiSi1(ENCODER, n_gram=0)


def test_all_columns_come_from_the_best_reference():
    metric = YiSi1(ENCODER, layer=1, idf="uniform")
    references = ["a b", "ac cab abc", "c"]
    single = metric.statistics(["abc a"] * 3, references)[:, :3]
    together = metric.statistics(["abc a"], [references])[0, :3]
    np.testing.assert_array_equal(together, single[single[:, 0].argmax()])


def test_an_empty_text_scores_0():
    for encoder in (ENCODER, tiny_encoder.plain()):
        np.testing.assert_array_equal(YiSi1(encoder)(["", "a", ""], ["a", "", ""]).segments, 0)


def test_idf_is_counted_in_the_references_of_a_call():
    result = YiSi1(ENCODER)(["ab", "b"], ["ab", "c"])
    idf = YiSi1(ENCODER).count(["ab", "c"])
    assert result.segments.tolist() == YiSi1(ENCODER, idf=idf)(["ab", "b"], ["ab", "c"]).segments.tolist()
    assert idf[3 + ord("z")] == pytest.approx(np.log(1 + 3))
