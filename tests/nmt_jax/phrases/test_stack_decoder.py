"""Stack decoding with unlimited stacks against the enumeration of all derivations."""

import itertools

import numpy as np
import pytest

from nmt_jax.ngram.counts import count
from nmt_jax.ngram.kneser_ney import estimate
from nmt_jax.ngram.trie import NONE
from nmt_jax.phrases import features
from nmt_jax.phrases.future_cost import best_scores
from nmt_jax.phrases.options import COPIED, COPY_SCORE, collect
from nmt_jax.phrases.stack_decoder import Limits, decode
from tests.nmt_jax.phrases.conftest import FALLBACK, TARGET

UNLIMITED = 10**6
SENTENCES = [np.array([0, 1, 2, 3]), np.array([3]), np.array([2, NONE, 0]), np.array([1, 0, 2])]


@pytest.fixture(scope="module")
def weights():
    rng = np.random.default_rng(1)
    return features.initial_weights() * rng.uniform(0.5, 1.5, len(features.NAMES))


def derivations(table, model, sentence, limit):
    """All derivations: (target words, features), one word order after the other, by the definitions."""
    start, end, row = (one.tolist() for one in table.find(sentence))
    alone = {i for i, k in zip(start, end, strict=True) if k == i + 1}
    options = list(zip(start, end, row, strict=True))
    options += [(i, i + 1, COPIED) for i in range(len(sentence)) if i not in alone]

    def translations(option):
        row = option[2]
        return [0] if row == COPIED else table.words[table.word_start[row] : table.word_start[row + 1]].tolist()

    def extend(done, covered):
        if len(covered) == len(sentence):
            yield done
        last = done[-1][1] if done else 0
        gap = min(set(range(len(sentence))) - covered, default=0)
        for option in options:
            span = set(range(option[0], option[1]))
            if span & covered or abs(option[0] - last) > limit or (option[0] != gap and option[1] - gap > limit):
                continue
            yield from extend([*done, option], covered | span)

    for done in extend([], set()):
        total = np.zeros(len(features.NAMES))
        previous = (-1, 0, None)
        for option in done:
            row = option[2]
            total[:4] += COPY_SCORE if row == COPIED else table.scores[row]
            total[4:6] += 1, len(translations(option))
            total[features.DISTORTION] -= abs(option[0] - previous[1])
            side = 0 if option[0] == previous[1] else 1 if option[1] == previous[0] else 2
            copied = np.full(6, np.log(1 / 3))
            total[features.FIRST_REORDERING + side] += (copied if row == COPIED else table.orientations[row])[side]
            if previous[2] is not None:
                after = copied if previous[2] == COPIED else table.orientations[previous[2]]
                total[features.FIRST_REORDERING + 3 + side] += after[3 + side]
            previous = option
        words = [word for option in done for word in translations(option)]
        text = " ".join(model.vocabulary.words[word] for word in words)
        total[features.LANGUAGE_MODEL] = np.log(10) * model.score([text]).log_probabilities.sum()
        yield tuple(words), total


@pytest.mark.parametrize(("limit", "order"), [(0, 3), (2, 3), (6, 3), (6, 1)])
def test_unlimited_stacks_find_all_derivations_in_order(table, language_model, weights, limit, order):
    if order == 1:  # hypotheses that differ only in the orientations of what follows have the same state
        language_model = estimate(count(TARGET, 1), FALLBACK)[0]
    lattice = decode(table, language_model, SENTENCES, weights, Limits(UNLIMITED, UNLIMITED, limit))
    for number, sentence in enumerate(SENTENCES):
        expected = list(derivations(table, language_model, sentence, limit))
        assert len(expected) > (len(sentence) > 1)
        paths = list(itertools.islice(lattice.paths(number), len(expected) + 1))
        assert len(paths) == len(expected)
        scores = sorted((total @ weights for _, total in expected), reverse=True)
        np.testing.assert_allclose([path.score for path in paths], scores, rtol=1e-6)
        best = max(expected, key=lambda one: one[1] @ weights)
        options = lattice.arcs.option[paths[0].arcs]
        words = [w for o in options for w in lattice.options.words[o][: lattice.options.lengths[o]].tolist()]
        assert tuple(words) == best[0]


def test_features_of_paths_are_those_of_the_definitions(table, language_model, weights):
    lattice = decode(table, language_model, SENTENCES, weights, Limits(UNLIMITED, UNLIMITED, 6))
    expected = list(derivations(table, language_model, SENTENCES[2], 6))
    found = [lattice.features(np.array(path.arcs)).sum(0) for path in lattice.paths(2)]
    np.testing.assert_allclose(
        np.sort(np.array(found), axis=0), np.sort(np.array([total for _, total in expected]), axis=0), rtol=1e-5
    )
    np.testing.assert_allclose([one @ weights for one in found], [path.score for path in lattice.paths(2)], rtol=1e-6)


def test_small_stacks_lose_little_and_a_batch_changes_nothing(table, language_model, weights):
    exact = decode(table, language_model, SENTENCES, weights, Limits(UNLIMITED, UNLIMITED, 6))
    small = decode(table, language_model, SENTENCES, weights, Limits(5, 10, 6))
    for number, sentence in enumerate(SENTENCES):
        alone = decode(table, language_model, [sentence], weights, Limits(5, 10, 6))
        best, fast, single = (
            next(one.paths(place)).score for one, place in ((exact, number), (small, number), (alone, 0))
        )
        assert fast == pytest.approx(single)
        assert best - 2.0 < fast <= best + 1e-9


def test_the_future_score_is_that_of_the_best_division(table, language_model, weights):
    options = collect(table, language_model, SENTENCES[:1])
    estimates = np.random.default_rng(0).normal(size=len(options.row))
    found = best_scores(options.start, options.end, estimates, 4)
    for i, k in itertools.combinations(range(5), 2):
        inner = range(i + 1, k)
        best = -np.inf
        for size in range(len(inner) + 1):
            for cuts in itertools.combinations(inner, size):
                parts = list(itertools.pairwise([i, *cuts, k]))
                one = [
                    max(
                        (e for s, t, e in zip(options.start, options.end, estimates, strict=True) if (s, t) == part),
                        default=-np.inf,
                    )
                    for part in parts
                ]
                best = max(best, sum(one))
        assert found[i, k] == pytest.approx(best)
