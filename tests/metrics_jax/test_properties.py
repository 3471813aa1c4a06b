"""Properties of all metrics of surface text."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics_jax import (
    BLEU,
    CDER,
    CER,
    EED,
    GTM,
    PER,
    TER,
    WER,
    CharacTER,
    ChrF,
    Meteor,
    Meteor15,
    Rouge,
    Rouge155,
    WordOverlap,
    parse,
    registry,
)
from tests.fixtures import texts

METRICS = [
    BLEU(),
    BLEU("intl", smooth_method="add-k", effective_order=True),
    BLEU("zh", smooth_method="floor", brevity="ratio", lowercase=True),
    ChrF(),
    ChrF(word_order=2, eps_smoothing=True),
    TER(),
    TER(normalized=True, no_punct=True, asian_support=True, case_sensitive=True),
    CDER(),
    WER(),
    CER(),
    PER(),
    CharacTER(),
    CharacTER(lowercase=True, capped=False),
    EED(),
    EED("ja", alpha=1.0),
    WordOverlap(),
    GTM(),
    GTM(1.5, lowercase=True),
    Rouge("2"),
    Rouge("L", tokenize="unicode"),
    Rouge("Lsum", use_stemmer=True),
    Rouge155("1"),
    Rouge155("L"),
    Rouge155("W"),
    Rouge155("W", weighting="paper"),
    Rouge155("SU", formula="B"),
    Meteor(modules=("exact", "stem")),
    Meteor15(modules=("exact", "stem")),
]
# Best and worst score; None: no bound, since error rates may exceed 100.
RANGES = {
    **dict.fromkeys(("bleu", "chrf"), (100.0, 0.0)),
    **dict.fromkeys(("ter", "cder", "wer", "cer", "per", "character"), (0.0, None)),
    "eed": (0.0, 1.0),
    **dict.fromkeys(("overlap", "gtm", "rouge", "rouge155", "meteor", "meteor15"), (1.0, 0.0)),
}
# Identical texts do not get the best score: ROUGE-W of the script weights recall twice, METEOR counts one chunk, EED
# counts the beginning of the text as not covered.
IMPERFECT = ("rouge155|variant:W", "meteor|", "eed|")

text = st.lists(st.sampled_from(["the", "cat", "sat", ",", "mat.", "1.5", "日本", "é"]), max_size=7).map(" ".join)


def name(metric) -> str:
    """Name of the metric with its options that are not defaults."""
    defaults = type(metric)().signature if metric.name not in ("meteor", "meteor15") else ""
    return "|".join([metric.name, *(item for item in metric.signature.split("|")[1:-1] if item not in defaults)])


each = pytest.mark.parametrize("metric", METRICS, ids=name)


@each
def test_identical_texts_get_the_best_score(metric):
    lines = ["the old man sleeps in the garden .", "nobody here knows it , not even he ."]
    result = metric(lines, lines)
    best, _ = RANGES[metric.name]
    if metric.signature.startswith(IMPERFECT) and "weighting:paper" not in metric.signature:
        assert 0 <= abs(result.score - best) < 0.5
    else:
        np.testing.assert_allclose([result.score, *result.segments], best, atol=1e-9)


@each
@given(texts.segments(text))
@settings(max_examples=15, deadline=None)
def test_segments_are_independent_and_statistics_add(metric, pairs):
    hypotheses, references = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    result = metric(hypotheses, references)
    statistics = metric.statistics(hypotheses, references)
    assert metric.score(statistics.sum(axis=0)) == pytest.approx(result.score, abs=1e-12)
    alone = [metric([hypothesis], [group]) for hypothesis, group in pairs]
    np.testing.assert_array_equal(result.segments, [one.score for one in alone])  # the score of a corpus of one segment
    backwards = metric(hypotheses[::-1], references[::-1])
    np.testing.assert_array_equal(backwards.segments[::-1], result.segments)
    assert backwards.score == pytest.approx(result.score, abs=1e-9)
    best, worst = sorted(RANGES[metric.name], key=lambda bound: bound is None)
    values = np.array([result.score, *result.segments])
    assert np.isfinite(values).all()
    assert (values >= min(best, worst or 0) - 1e-9).all()
    if worst is not None:
        assert (values <= max(best, worst) + 1e-9).all()


# Formula B of ROUGE-1.5.5 takes the first of the references with the best recall, whatever its precision.
ORDERLESS = [metric for metric in METRICS if "formula:B" not in metric.signature]


@pytest.mark.parametrize("metric", ORDERLESS, ids=name)
@given(text, st.lists(text, min_size=2, max_size=3))
@settings(max_examples=15, deadline=None)
def test_the_order_of_references_does_not_matter(metric, hypothesis, references):
    forwards, backwards = metric([hypothesis], [references]).score, metric([hypothesis], [references[::-1]]).score
    assert forwards == pytest.approx(backwards, abs=1e-12)


@each
def test_score_accepts_batches_of_sums(metric):
    statistics = metric.statistics(["a b c d", "e f g", "h i"], ["a b d", "f g e", "x"])
    sums = np.stack([statistics[[0, 0, 1]].sum(axis=0), statistics[[1, 2, 2]].sum(axis=0)])
    np.testing.assert_array_equal(metric.score(sums), [metric.score(one) for one in sums])


@each
def test_pairwise_equals_single_pairs(metric):
    hypotheses, references = ["the cat sat", "", "mat the"], ["the mat", "", "cat the sat", "x"]
    expected = [[metric([h], [r]).score for r in references] for h in hypotheses]
    np.testing.assert_allclose(metric.pairwise(hypotheses, references), expected, rtol=1e-12, atol=1e-12)


@each
def test_parse_inverts_signature(metric):
    assert parse(metric.signature) == metric
    assert parse(metric.signature).signature == metric.signature


@each
def test_any_text_has_a_score(metric):
    generator = np.random.default_rng(0)

    def some_text() -> str:
        kind = generator.integers(4)
        points = generator.integers(
            (0, 0, 0x2000, 0)[kind], (0x80, 0x3000, 0x10000, 0x110000)[kind], generator.integers(9)
        )
        return "".join(map(chr, points))  # lone surrogates, NUL and line separators among them

    hypotheses, references = ([some_text() for _ in range(2000)] for _ in range(2))
    result = metric(hypotheses, references)
    assert np.isfinite(result.segments).all()
    assert np.isfinite(result.score)


@each
def test_bad_input(metric):
    with pytest.raises(ValueError, match="2 hypotheses but 1 references"):
        metric(["a", "b"], ["a"])
    with pytest.raises(TypeError, match="not a single string"):
        metric("a b", ["a", "b", "c"])
    with pytest.raises(TypeError, match="not a single string"):
        metric.pairwise(["a b"], "a b")
    with pytest.raises(ValueError, match="no segments"):
        metric([], [])
    with pytest.raises(ValueError, match="segment 1 has no reference"):
        metric(["a", "b"], [["a"], []])
    with pytest.raises(TypeError, match="segment 0"):
        metric([None], ["a"])


def test_every_registered_metric_is_tested():
    elsewhere = {"nist", "cider", "sari", "meteor_nltk"} | {
        name for name in registry.REGISTRY if registry.needs(name)
    }  # in other tests
    assert {metric.name for metric in METRICS} | elsewhere == set(registry.REGISTRY)


def test_importing_is_cheap():
    heavy = {"flax", "torch", "tensorflow", "matplotlib", "nltk", "sacrebleu", "snowballstemmer", "jax", "regex"}
    modules = [f"metrics_jax.{module}" for module, _ in registry.REGISTRY.values()] + ["metrics_jax.significance"]
    code = f"import sys, metrics_jax, {', '.join(modules)}; print(sorted({heavy!r} & sys.modules.keys()))"
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert finished.stdout == "[]\n"
