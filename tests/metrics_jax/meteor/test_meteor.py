import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics_jax import Meteor, parse
from metrics_jax.meteor.alignment import count_chunks
from metrics_jax.surface.wordnet import WordNet
from tests.fixtures import golden, texts, wordnet
from tests.metrics_jax.meteor.test_alignment import count_crossings

STEMS = Meteor(modules=("exact", "stem"))


def align(metric, hypothesis, reference):
    return metric.align(hypothesis.split(), reference.split())


def test_worked_example():
    result = STEMS(["the boy running in the street"], ["the boy was running in the street"])
    # P 6/6, R 6/7, two chunks; published as 0.8534
    assert result.score == pytest.approx((6 / 7) / (0.9 + 0.1 * 6 / 7) * (1 - 0.5 * (2 / 6) ** 3), abs=1e-12)
    assert result.score == pytest.approx(0.8534621578099838, abs=1e-12)
    assert result.segments.tolist() == [result.score]
    assert result.parts == {
        "precision": 1.0,
        "recall": pytest.approx(6 / 7),
        "f_mean": pytest.approx(10 * (6 / 7) / (6 / 7 + 9)),
        "penalty": pytest.approx(0.5 * (2 / 6) ** 3),
        "matches": 6,
        "chunks": 2,
        "hypothesis_length": 6,
        "reference_length": 7,
    }


@given(st.integers(1, 50), st.integers(1, 50), st.integers(1, 50), st.integers(1, 50))
def test_the_formula_of_2005(matches, chunks, length, reference_length):
    matches, chunks = min(matches, length, reference_length), min(chunks, matches, length, reference_length)
    precision, recall = matches / length, matches / reference_length
    expected = 10 * precision * recall / (recall + 9 * precision) * (1 - 0.5 * (chunks / matches) ** 3)
    assert STEMS.score(np.array([matches, chunks, length, reference_length])) == pytest.approx(expected, abs=1e-12)


def test_weights():
    hypothesis, reference = ["b a x"], ["a b y z"]  # P 2/3, R 2/4, two chunks
    score = Meteor(alpha=0.5, beta=1.0, gamma=0.25, modules=("exact",))(hypothesis, reference).score
    assert score == pytest.approx(2 * (2 / 3) * (1 / 2) / (2 / 3 + 1 / 2) * (1 - 0.25))
    assert Meteor(alpha=1.0, gamma=0.0, modules=("exact",))(hypothesis, reference).score == pytest.approx(1 / 2)
    assert Meteor(alpha=0.0, gamma=0.0, modules=("exact",))(hypothesis, reference).score == pytest.approx(2 / 3)


def test_stages_match_words_left_by_earlier_stages(database):
    # "run" could match "running" without a crossing, but its exact match comes first.
    assert align(STEMS, "run fast running", "running slow run") == {0: 2, 2: 0}
    assert align(Meteor(modules=("stem",)), "run fast running", "running slow run") == {0: 0, 2: 2}
    everything = Meteor(wordnet=database)
    assert align(everything, "lad jog", "boy boys run") == {0: 1, 1: 2}  # one chunk
    assert align(everything, "boys lad", "lad boy") == {0: 1, 1: 0}
    assert align(Meteor(modules=("synonym",), wordnet=database), "boys lad", "lad boy") == {0: 0, 1: 1}


def test_stems_are_those_of_porter_1980():
    assert align(STEMS, "relational hopping", "hop relate") == {0: 1, 1: 0}
    assert align(STEMS, "skies", "sky") == {}  # an extension by nltk
    assert align(Meteor(modules=("exact",)), "hopping", "hop") == {}


def test_synonyms_share_a_synset_as_base_forms(database):
    metric = Meteor(wordnet=database)
    assert align(metric, "cars", "automobiles") == {0: 0}
    assert align(metric, "bikes", "bicycle") == {0: 0}
    assert align(metric, "was", "exists") == {0: 0}
    assert metric(["USA"], ["America"]).parts["matches"] == 1
    assert align(metric, "car", "bike") == {}
    assert align(Meteor(modules=("exact", "stem")), "car", "automobile") == {}


class Graph:
    """A stand-in for a database, in which two words share a synset if they are joined by an edge."""

    fingerprint = "graph"

    def __init__(self, edges):
        self.edges = edges

    def synsets(self, word):
        return frozenset(edge for edge in self.edges if word in edge)


def test_synonym_matches_are_optimal():
    rng = random.Random(0)
    for _ in range(200):
        hypothesis = [f"h{rng.randrange(4)}" for _ in range(rng.randint(1, 5))]
        reference = [f"r{rng.randrange(4)}" for _ in range(rng.randint(1, 5))]
        pairs = list(itertools.product(sorted(set(hypothesis)), sorted(set(reference))))
        edges = set(rng.sample(pairs, rng.randint(0, len(pairs))))
        found = Meteor(modules=("synonym",), wordnet=Graph(edges)).align(hypothesis, reference)
        options = [[None, *(j for j, other in enumerate(reference) if (word, other) in edges)] for word in hypothesis]
        ranks = []
        for choices in itertools.product(*options):
            matches = {i: j for i, j in enumerate(choices) if j is not None}
            if len(set(matches.values())) == len(matches):
                ranks.append((-len(matches), count_crossings(matches), count_chunks(matches)))
        assert (-len(found), count_crossings(found), count_chunks(found)) == min(ranks)


@pytest.mark.slow
def test_as_many_exact_matches_as_nltk_with_no_more_crossings(shared):
    inputs = golden.read(shared, "meteor_nltk")["inputs"]
    fewer = 0
    for name in ("edge", "en_general", "multiref", "permutations"):
        for hypothesis, group in zip(inputs[name]["hypotheses"], inputs[name]["references"], strict=True):
            words, others = hypothesis.lower().split(), group[0].lower().split()
            greedy, free = {}, list(range(len(others)))  # from the end, always the last free word
            for i in reversed(range(len(words))):
                fitting = [j for j in free if others[j] == words[i]]
                if fitting:
                    greedy[i] = fitting[-1]
                    free.remove(fitting[-1])
            found = Meteor(modules=("exact",)).align(words, others)
            assert len(found) == len(greedy)
            assert count_crossings(found) <= count_crossings(greedy)
            fewer += count_crossings(found) < count_crossings(greedy)
    assert fewer > 10


def test_a_corpus_is_scored_on_summed_counts_of_the_best_references():
    hypotheses, references = ["a b c", "d e"], [["a x y z", "a b c d"], ["d e"]]
    result = STEMS(hypotheses, references)
    assert STEMS.statistics(hypotheses, references).tolist() == [[3, 1, 3, 4], [2, 1, 2, 2]]
    assert result.score == STEMS.score(np.array([5.0, 2, 5, 6])) != result.segments.mean()
    assert result.parts["precision"] == 1
    assert result.parts["recall"] == 5 / 6
    single = [STEMS([hypothesis], [group]).score for hypothesis, group in zip(hypotheses, references, strict=True)]
    assert result.segments.tolist() == single


def test_ties_prefer_the_shorter_reference():
    for group in itertools.permutations(["x y z", "x", "y z"]):
        assert STEMS.statistics(["a"], [group]).tolist() == [[0, 0, 1, 1]]


def test_empty_texts_score_0():
    result = STEMS(["", "a", "", " "], ["a", "", "", [" ", "b"]])
    assert result.score == 0
    assert result.segments.tolist() == [0, 0, 0, 0]
    assert result.parts["penalty"] == result.parts["f_mean"] == 0
    assert STEMS.score(np.zeros((3, 2, 4))).tolist() == [[0, 0]] * 3


def test_case_and_tokenizer():
    assert STEMS(["The Cat"], ["the cat"]).score == STEMS(["the cat"], ["the cat"]).score
    assert Meteor(modules=("exact",), lowercase=False)(["The cat"], ["the cat"]).parts["matches"] == 1
    assert STEMS(["the cat."], ["the cat ."]).parts["matches"] == 1
    assert Meteor(modules=("exact",), tokenize="13a")(["the cat."], ["the cat ."]).parts["matches"] == 3


@settings(deadline=None, max_examples=100)
@given(texts.segments(texts.spaced("a", "b", "runs", "run"), max_size=4))
def test_properties(database, pairs):
    metric = Meteor(wordnet=database)
    hypotheses, references = [text for text, _ in pairs], [group for _, group in pairs]
    result = metric(hypotheses, references)
    assert 0 <= result.score <= 1
    assert ((result.segments >= 0) & (result.segments <= 1)).all()
    for hypothesis, group, segment in zip(hypotheses, references, result.segments, strict=True):
        assert metric([hypothesis], [group]).score == segment
        assert metric([hypothesis], [group[::-1]]).score == segment
        assert segment == max(metric([hypothesis], [one]).score for one in group)
        length = len(hypothesis.lower().split())
        best = metric([hypothesis], [hypothesis]).score
        assert best == pytest.approx(1 - 0.5 / length**3 if length else 0, abs=1e-12)
        assert segment <= best + 1e-12
    backwards = metric(hypotheses[::-1], [group[::-1] for group in references[::-1]])
    assert backwards.score == pytest.approx(result.score, abs=1e-12)
    assert np.allclose(
        metric.pairwise(hypotheses[:1], references[0]), [metric.pairwise([hypotheses[0]], references[0])[0]]
    )


def test_pairwise():
    scores = STEMS.pairwise(["a b", "c"], ["a b", "a", "c"])
    assert scores.shape == (2, 3)
    assert scores[1].tolist() == [0, 0, 0.5]
    assert scores[0, 1] == STEMS(["a b"], ["a"]).score


def test_signature(database):
    metric = Meteor(alpha=0.81, wordnet=database)
    assert f"|modules:exact+stem+synonym|wordnet:{database.fingerprint[:16]}|" in metric.signature
    assert parse(metric.signature, wordnet=database) == metric
    assert "|modules:exact+stem|wordnet:none|" in STEMS.signature
    assert parse(STEMS.signature) == STEMS == Meteor(modules=("exact", "stem"), wordnet=database)
    assert Meteor(modules=["exact"]) == parse("meteor|modules:exact")


def test_a_signature_with_another_database_is_an_error(database, tmp_path):
    other = WordNet(wordnet.write(tmp_path, {**wordnet.SYNSETS, "adv": [["slowly"]]}))
    with pytest.raises(ValueError, match="wordnet"):
        parse(Meteor(wordnet=database).signature, wordnet=other)


def test_the_default_database_is_needed_only_for_synonyms(database, tmp_path, monkeypatch):
    monkeypatch.setenv("WNSEARCHDIR", str(database.directory))
    assert Meteor() == Meteor(wordnet=database)
    monkeypatch.setenv("WNSEARCHDIR", str(tmp_path))
    assert Meteor(modules=("stem",)).wordnet is None
    with pytest.raises(ValueError, match="wordnet-base"):
        Meteor()


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"alpha": 1.5}, "alpha=1.5"),
        ({"alpha": float("nan")}, "alpha=nan"),
        ({"beta": -1.0}, "beta=-1.0"),
        ({"beta": float("inf")}, "beta=inf"),
        ({"gamma": 2.0}, "gamma=2.0"),
        ({"tokenize": "14a"}, "tokenize='14a'"),
        ({"modules": ("exact", "paraphrase")}, "one or more of exact, stem, synonym, each at most once"),
        ({"modules": ("exact", "exact")}, "at most once"),
        ({"modules": ()}, "one or more"),
        ({"modules": "exact"}, "one or more"),
    ],
)
def test_invalid_options(options, line):
    with pytest.raises(ValueError, match=line):
        Meteor(**{"modules": ("exact",), **options})
