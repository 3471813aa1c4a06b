"""Minimum-Bayes-risk decoding against its definition, one pair at a time."""

import collections
import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics_jax import BLEU, TER, BERTScore, ChrF, WordOverlap, YiSi1
from nmt_jax.decoding.minimum_bayes_risk import MinimumBayesRisk, Utility
from nmt_jax.errors import UserError
from tests.fixtures import tiny_encoder

ENCODER = tiny_encoder.make()
SENTENCE_BLEU = BLEU(effective_order=True)
METRICS = [ChrF(), SENTENCE_BLEU, TER(), BERTScore(ENCODER), YiSi1(ENCODER)]
WORDS = ["der", "alte", "Mann", "geht", "heute", "langsam", "durch", "den", "Garten", "nach", "Hause"]


def decide(*metrics, evaluated=None, **options):
    return MinimumBayesRisk(tuple(Utility(metric) for metric in metrics), evaluated or WordOverlap(), **options)


def samples(count, seed=0, length=9):
    """Candidates of one line that have much in common, some of them equal."""
    generator = np.random.default_rng(seed)
    lines = []
    for _ in range(count):
        words = [word for word in WORDS[:length] if generator.random() > 0.2]
        lines.append(" ".join(words or WORDS[:1]))
    return lines


def naive(metric, candidates, references, weights):
    """The expected utility of each candidate: a mean of scores of single pairs."""
    sign, scale = 1 if metric.higher_is_better else -1, 100 if metric.name in ("bleu", "chrf", "ter") else 1
    scores = [[metric([text], [reference]).score for reference in references] for text in candidates]
    return sign * np.array(scores) @ weights / scale


@pytest.mark.slow
@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_exact_is_the_mean_over_all_pairs(metric):
    candidates = [samples(7), ["ein Hund", "ein Hund", "zwei", ""], ["allein"]]
    metric = metric if metric.name != "yisi1" else dataclasses.replace(metric, idf="uniform")
    for group, choice in zip(candidates, decide(metric)(candidates), strict=True):
        expected = naive(metric, group, group, np.full(len(group), 1 / len(group)))
        np.testing.assert_allclose(choice.utilities, expected, atol=2e-6)
        best = np.flatnonzero(choice.utilities == choice.utilities.max())[0]
        assert (choice.index, choice.chosen.utility) == (best, pytest.approx(choice.utilities[best]))
        assert choice.first.utility == pytest.approx(expected[0], abs=2e-6)
        evaluated = naive(WordOverlap(), group, group, np.full(len(group), 1 / len(group)))
        assert choice.chosen.evaluated == pytest.approx(evaluated[choice.index])
        assert choice.first.evaluated == pytest.approx(evaluated[0])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["exact", "prune"])
def test_weights_learnt_from_references_are_those_of_the_line(method):
    """idf:references counts in all pseudo-references of one line, whatever the other lines and the first rounds are."""
    metric, groups = YiSi1(ENCODER), [samples(20, 1), samples(6, 2, length=4)]
    for group, choice in zip(groups, decide(metric, method=method)(groups), strict=True):
        fitted, known = dataclasses.replace(metric, idf=metric.count(group)), ~np.isnan(choice.utilities)
        expected = naive(fitted, group, group, np.full(len(group), 1 / len(group)))
        np.testing.assert_allclose(choice.utilities[known], expected[known], atol=2e-6)
        evaluated = decide(ChrF(), evaluated=metric, method=method)(groups)[groups.index(group)].first.evaluated
        assert evaluated == pytest.approx(expected[0], abs=2e-6)


def test_several_utilities_are_mixed_on_one_scale():
    group = samples(8)
    mixed = MinimumBayesRisk((Utility(ChrF(), 3), Utility(TER(), 1)), WordOverlap())([group])[0]
    chrf, ter = (decide(metric)([group])[0].utilities for metric in (ChrF(), TER()))
    np.testing.assert_allclose(mixed.utilities, 0.75 * chrf + 0.25 * ter)
    assert chrf.max() <= 1
    assert ter.max() <= 0


def test_weights_are_the_models_probabilities():
    group, scores = ["a b c d e", "a b c d f", "x y z"], np.array([-2.0, -1.5, -1.0])
    for temperature in (1.0, 0.5):
        choice = decide(ChrF(), weights="probability", temperature=temperature)([group], [scores])[0]
        weights = np.exp(scores) ** (1 / temperature)
        np.testing.assert_allclose(choice.utilities, naive(ChrF(), group, group, weights / weights.sum()))
    likely = [np.array([-1000.0, -1000.0, 0.0])]
    assert decide(ChrF(), weights="probability")([group], likely)[0].index == 2
    assert decide(ChrF())([group], likely)[0].index < 2  # samples count alike, whatever their probability


@pytest.mark.parametrize("method", ["exact", "aggregate", "prune"])
def test_equal_texts_count_as_often_as_they_occur(method):
    """Twice a text is twice its weight, and its pairs are compared once."""
    group = ["a b c", "a b d", "x y z", "x y z", "x y z"]
    choice = decide(ChrF(), method=method)([group])[0]
    assert group[choice.index] == "x y z"
    assert choice.index == 2
    assert choice.num_pairs <= 9
    np.testing.assert_equal(choice.utilities[2:], choice.utilities[2])


def test_pseudo_references_may_be_others():
    candidates, references = [["a b c d", "e f g h"], ["i j"]], [["e f g x", "e f h"], ["k"]]
    choices = decide(ChrF())(candidates, references=references)
    assert [choice.index for choice in choices] == [1, 0]
    expected = naive(ChrF(), candidates[0], references[0], np.array([0.5, 0.5]))
    np.testing.assert_allclose(choices[0].utilities, expected)


def ngrams(items, n):
    return collections.Counter(tuple(items[i : i + n]) for i in range(len(items) - n + 1))


def expected_counts(groups, weights):
    total = collections.Counter()
    for group, weight in zip(groups, weights, strict=True):
        for item, count in group.items():
            total[item] += weight * count
    return total


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text("ab ä", max_size=9), min_size=2, max_size=4), st.integers(0, 9))
def test_aggregation_is_a_comparison_with_expected_counts(texts, seed):
    """Of chrF, written out."""
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(texts) - 1))
    hypothesis, *references = ["".join(text.split()) for text in texts]
    precisions, recalls = [], []
    for n in range(1, 7):
        own, other = ngrams(hypothesis, n), expected_counts([ngrams(text, n) for text in references], weights)
        matches = sum(min(count, other[gram]) for gram, count in own.items())
        if own and other:
            precisions.append(matches / sum(own.values()))
            recalls.append(matches / sum(other.values()))
    p, r = np.mean(precisions or [0]), np.mean(recalls or [0])
    expected = 100 * 5 * p * r / (4 * p + r) if p + r else 0
    assert ChrF().aggregated(texts[:1], texts[1:], weights)[0] == pytest.approx(expected)


def test_aggregated_bleu_is_fast_consensus_decoding():
    """Against the formula of DeNero et al. (2009): expected clipped counts and the expected length."""
    texts, weights = ["a b c d a b", "a b c d e f g h i", "b c d a b a b a", "a a b c d"], np.array([0.5, 0.2, 0.3])
    hypothesis, *references = [text.split() for text in texts]
    logs = []
    for n in range(1, 5):
        own, other = ngrams(hypothesis, n), expected_counts([ngrams(words, n) for words in references], weights)
        logs.append(np.log(sum(min(count, other[gram]) for gram, count in own.items()) / sum(own.values())))
    length = weights @ [len(words) for words in references]
    expected = 100 * np.exp(min(0, 1 - length / len(hypothesis)) + np.mean(logs))
    assert BLEU().aggregated(texts[:1], texts[1:], weights)[0] == pytest.approx(expected)


@pytest.mark.parametrize("metric", [ChrF(), ChrF(word_order=2), SENTENCE_BLEU], ids=["chrf", "chrf++", "bleu"])
def test_the_aggregate_of_one_reference_is_that_reference(metric):
    texts = [*samples(5), "", "a"]
    for reference in texts:
        expected = metric.pairwise(texts, [reference])[:, 0]
        np.testing.assert_allclose(metric.aggregated(texts, [reference], np.ones(1)), expected)
        np.testing.assert_allclose(metric.aggregated(texts, [reference] * 3, np.full(3, 1 / 3)), expected)


def test_the_aggregate_of_embeddings_is_the_cosine_with_their_centroid():
    texts, weights = ["ab c", "", "b", "ca a"], np.array([0.7, 0.3])
    metric = BERTScore(ENCODER)
    vectors = []
    for text in texts:
        states, _, special = tiny_encoder.states(ENCODER, text, -1)
        mean = states[~special].sum(axis=0)
        vectors.append(mean / (np.linalg.norm(mean) or 1))
    centroid = weights @ vectors[2:]
    expected = [vector @ centroid / np.linalg.norm(centroid) for vector in vectors]
    np.testing.assert_allclose(metric.aggregated(texts, texts[2:], weights), expected, atol=1e-6)
    assert expected[1] == 0


def test_finalists_of_an_aggregate_are_compared_exactly():
    group = samples(30)
    exact = decide(ChrF())([group])[0]
    for finalists in (1, 4, 30):
        choice = decide(ChrF(), method="aggregate", finalists=finalists)([group])[0]
        known = ~np.isnan(choice.utilities)
        assert len({text for text, some in zip(group, known, strict=True) if some}) == min(finalists, len(set(group)))
        np.testing.assert_allclose(choice.utilities[known], exact.utilities[known])
        assert choice.chosen.utility == pytest.approx(exact.utilities[choice.index])
        assert choice.first == exact.first
    assert choice.index == exact.index


def test_pruning_finds_what_all_pairs_find_with_fewer():
    groups = [samples(64, seed, length=11) for seed in range(20)]
    exact, pruned = decide(ChrF())(groups), decide(ChrF(), method="prune")(groups)
    same = [group[a.index] == group[b.index] for group, a, b in zip(groups, exact, pruned, strict=True)]
    assert np.mean(same) >= 0.9
    assert sum(one.num_pairs for one in pruned) < 0.6 * sum(one.num_pairs for one in exact)
    for one, other in zip(exact, pruned, strict=True):
        known = ~np.isnan(other.utilities)
        np.testing.assert_allclose(other.utilities[known], one.utilities[known])
        assert one.first.utility == pytest.approx(other.first.utility)
    pairs = [sum(one.num_pairs for one in decide(ChrF(), method="prune", confidence=c)(groups)) for c in (0.5, 0.9999)]
    assert pairs[0] < sum(one.num_pairs for one in pruned) < pairs[1]  # who wants to be surer drops fewer


@pytest.mark.slow
@pytest.mark.parametrize("method", ["exact", "aggregate", "prune"])
@pytest.mark.parametrize("metric", [ChrF(), BERTScore(ENCODER)], ids=["chrf", "bertscore"])
def test_order_and_neighbours_do_not_matter(method, metric):
    groups = [samples(16, seed) for seed in range(2)]
    scores = [np.random.default_rng(len(group)).normal(size=len(group)) for group in groups]
    call = decide(metric, method=method, weights="probability")
    together = call(groups, scores)
    for group, own, choice in zip(groups, scores, together, strict=True):
        alone = call([group], [own])[0]
        assert (alone.index, alone.chosen) == (choice.index, choice.chosen)
        np.testing.assert_array_equal(alone.utilities, choice.utilities)
        order = np.random.default_rng(1).permutation(len(group))
        other = call([[group[k] for k in order]], [own[order]])[0]
        assert group[order[other.index]] == group[choice.index]
        assert other.chosen.utility == pytest.approx(choice.chosen.utility, abs=1e-12)


def test_of_equals_the_first_is_chosen():
    assert decide(ChrF(beta=1))([["a b", "b a", "c"]])[0].index == 0
    assert decide(ChrF(beta=1))([["b a", "a b", "c"]])[0].index == 0


class Unpaired:
    name = "unpaired"


def test_bad_input_is_one_line():
    mistakes = {
        "unpaired cannot be a utility": lambda: decide(Unpaired()),
        "chrf is one of the utilities": lambda: decide(ChrF(), evaluated=ChrF(word_order=2)),
        "ter cannot aggregate references: use one of bleu, chrf": lambda: decide(TER(), method="aggregate"),
        "method='fast': use one of exact, aggregate": lambda: decide(ChrF(), method="fast"),
        "weights='even': use one of": lambda: decide(ChrF(), weights="even"),
        "at least one": lambda: decide(),
        "confidence between 0 and 1": lambda: decide(ChrF(), confidence=1.0),
        "list 2 has no candidates": lambda: decide(ChrF())([["a"], []]),
        "1 lists of candidates need as many": lambda: decide(ChrF())([["a"]], references=[["a"], ["b"]]),
        "a log-probability for each of 2 texts": lambda: decide(ChrF(), weights="probability")([["a", "b"]]),
        "a log-probability for each": lambda: decide(ChrF(), weights="probability")([["a", "b"]], [[-1.0, np.nan]]),
    }
    for words, mistake in mistakes.items():
        with pytest.raises(UserError, match=words) as caught:
            mistake()
        assert "\n" not in str(caught.value)
