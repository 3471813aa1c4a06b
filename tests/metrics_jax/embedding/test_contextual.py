"""Properties of all metrics over contextual vectors."""

import dataclasses
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics_jax import BERTScore, Idf, MoverScore, YiSi1, parse
from metrics_jax.embedding.token_batches import spans
from tests.fixtures import texts, tiny_encoder

ENCODER = tiny_encoder.make()
METRICS = [
    BERTScore(ENCODER, layer=2),
    BERTScore(ENCODER, layer=0, nonnegative=False, idf=Idf({5: 2, 100: 1}, 3)),
    MoverScore(ENCODER),
    MoverScore(ENCODER, n_gram=2, stop_words=("a", "b"), remove_subwords=False),
    MoverScore(ENCODER, variant="v2"),
    pytest.param(MoverScore(ENCODER, variant="v2", transport="sinkhorn"), marks=pytest.mark.slow),
    YiSi1(ENCODER, layer=3, idf="uniform"),
    YiSi1(ENCODER, n_gram=3, idf=Idf({100: 2}, 3, "yisi")),
]
KINDS = [BERTScore, MoverScore, YiSi1]
each = pytest.mark.parametrize(
    "metric", METRICS, ids=lambda metric: re.sub(r"\|encoder:\w+", "", metric.signature)[:40]
)
kind = pytest.mark.parametrize("kind", KINDS)

short = st.text("ab c", max_size=6)


@each
@given(texts.segments(short))
@settings(max_examples=8, deadline=None)
def test_a_segment_score_is_bit_identical_without_other_segments(metric, pairs):
    hypotheses, references = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    statistics = metric.statistics(hypotheses, references)
    alone = [metric.statistics([hypothesis], [group])[0] for hypothesis, group in pairs]
    np.testing.assert_array_equal(statistics, alone)
    np.testing.assert_array_equal(metric.statistics(hypotheses[::-1], references[::-1])[::-1], statistics)
    assert np.isfinite(statistics).all()
    result = metric(hypotheses, references)
    assert result.score == pytest.approx(result.segments.mean(), abs=1e-12)
    assert result.parts["long"] == 0


@each
def test_pairwise_equals_single_scores(metric):
    hypotheses, references = ["ab c", "", "cc", "abc abc ab"], ["ab c", "b", "a b c a b c a b c", " "]
    expected = [[metric([h], [r]).score for r in references] for h in hypotheses]
    np.testing.assert_allclose(metric.pairwise(hypotheses, references), expected, atol=2e-6)
    assert metric.pairwise([], references).shape == (0, 4)


@each
def test_an_identical_text_scores_1(metric):
    lines = ["the old man sleeps", "a", "!? b"]
    np.testing.assert_allclose(metric(lines, lines).segments, 1, atol=2e-2 if "sinkhorn" in metric.signature else 3e-6)


@each
def test_a_signature_restores_the_metric(metric):
    objects = {"encoder": ENCODER} | ({"idf": metric.idf} if isinstance(metric.idf, Idf) else {})
    assert parse(metric.signature, **objects) == metric
    with pytest.raises(ValueError, match="needs encoder"):
        parse(metric.name)
    with pytest.raises(ValueError, match="was computed with encoder aaaa"):
        parse(metric.signature, **objects | {"encoder": dataclasses.replace(ENCODER, fingerprint="b" * 64)})


@pytest.mark.filterwarnings("ignore:.*only tokens of idf weight 0")
@each
@given(st.lists(st.tuples(st.text(max_size=6), st.text(max_size=6)), min_size=1, max_size=20))
@settings(max_examples=5, deadline=None)
def test_any_text_has_a_score(metric, pairs):
    pairs += [(text, other) for text in texts.ODD[:8] for other in ("a", "")]
    assert np.isfinite(metric.statistics(*zip(*pairs, strict=True))).all()


@kind
def test_idf_from_references_can_be_frozen(kind):
    hypotheses, references = ["ab", "b c"], [["a b", "c"], ["c b"]]
    metric = kind(ENCODER, idf="references")
    frozen = metric.fitted(references)
    assert isinstance(frozen.idf, Idf)
    assert frozen.idf.num_documents == 3
    assert frozen.idf.form == metric.idf_form
    assert frozen.idf.frequencies[1] == 3  # [CLS]
    assert frozen.idf.frequencies[3 + ord("c")] == 2
    result = metric(hypotheses, references)
    assert f"|idf:{frozen.idf.fingerprint[:16]}|" in result.signature
    np.testing.assert_array_equal(result.segments, frozen(hypotheses, references).segments)
    np.testing.assert_array_equal(
        frozen.statistics(hypotheses[:1], references[:1])[0], metric.statistics(hypotheses, references)[0]
    )
    assert frozen.fitted(["x"]) == frozen


@pytest.mark.parametrize("kind", [BERTScore, MoverScore])
def test_segments_with_zero_idf_get_equal_weights(kind):
    with pytest.warns(UserWarning, match="only tokens of idf weight 0"):
        score = kind(ENCODER, idf="references")(["ab"], ["ab"]).score
    assert score == pytest.approx(kind(ENCODER)(["ab"], ["ab"]).score, abs=1e-6)


@kind
def test_long_texts(kind):
    encoder = tiny_encoder.make(max_length=10)
    metric = kind(encoder, idf="uniform")
    hypotheses, references = ["abc", "abcdefghijkl", "ab"], ["abc", "abcdefgh", "abcdefghiX"]
    with pytest.warns(UserWarning, match=r"2 of 3 segments were truncated to .* 10 tokens; long:window"):
        result = metric(hypotheses, references)
    assert result.parts["long"] == 2
    assert "|long:truncate|" in result.signature
    assert result.segments[1] == pytest.approx(1, abs=1e-6)  # the differing ends are truncated
    windows = kind(encoder, idf="uniform", long="window")(hypotheses, references)
    assert windows.parts["long"] == 2
    assert windows.segments[1] < 0.999
    with pytest.raises(ValueError, match=r"segment 1 is too long: 14 tokens, but the encoder reads at most 10"):
        kind(encoder, idf="uniform", long="error")(hypotheses, references)
    with pytest.raises(ValueError, match=r"segment 2 is too long"):
        kind(encoder, idf="uniform", long="error")(["a"] * 3, references)
    kind(encoder, idf="uniform", long="error")(["a"], ["abc"])


def test_frequencies_are_counted_after_truncation():
    encoder = tiny_encoder.make(max_length=5)
    assert set(BERTScore(encoder).count(["abcz"]).frequencies) == {
        1,
        2,
        *(3 + ord(one) + 128 * (one != "a") for one in "abc"),
    }
    assert 3 + ord("z") + 128 in BERTScore(encoder, long="window").count(["abcz"]).frequencies


@kind
def test_non_finite_vectors_raise_an_error(kind):
    table = np.full((3 + 2 * tiny_encoder.LETTERS, tiny_encoder.D), np.nan)
    metric = kind(tiny_encoder.make(table=table), idf="uniform")
    for call in (metric, metric.pairwise):
        with pytest.raises(ValueError, match="NaN or infinity"):
            call(["ab"], ["ab"])


@kind
def test_invalid_options_raise_errors(kind):
    with pytest.raises(ValueError, match="long='cut'"):
        kind(ENCODER, long="cut")
    with pytest.raises(ValueError, match="idf='hypotheses'"):
        kind(ENCODER, idf="hypotheses")
    with pytest.raises(ValueError, match="2 hypotheses but 1 references"):
        kind(ENCODER)(["a", "b"], ["a"])
    with pytest.raises(ValueError, match="segment 1 has no reference"):
        kind(ENCODER)(["a", "b"], [["a"], []])


def test_missing_layers_raise_an_error():
    with pytest.raises(ValueError, match=r"layers .*to 5"):
        BERTScore(ENCODER, layer=6)(["a"], ["a"])


@given(st.lists(st.tuples(short, short), max_size=20), st.integers(1, 30))
@settings(max_examples=30, deadline=None)
def test_spans_contain_every_pair_once(pairs, size):
    hypotheses, references = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    found = spans(hypotheses, references, size)
    assert sorted(np.concatenate(found).tolist()) == list(range(len(pairs)))
    sizes = [sum(len(hypotheses[k]) + len(references[k]) for k in span) for span in found]
    assert max(sizes) < 2 * size + 12
