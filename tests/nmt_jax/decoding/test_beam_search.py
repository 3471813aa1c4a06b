"""Beam search against enumeration, its rules, constraints, groups and stopping criteria."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax.decoding.beam_search import SearchRequest, beam_search
from nmt_jax.decoding.constraints import Phrases
from nmt_jax.decoding.method import Search
from tests.fixtures.markov import BOS, EOS, T, V, log_probability, make, make_cache, make_step, texts, until_end


def length_penalty(length, alpha):
    return ((5 + length) / 6) ** alpha


def search(
    table,
    beam_size,
    alpha=0.0,
    limits=None,
    n_best=None,
    max_length=T,
    prefix=None,
    phrases=None,
    halve=False,
    **options,
):
    batch_size = len(table)
    limits = np.full(batch_size, max_length) if limits is None else np.array(limits)
    if prefix is not None:
        prefix = np.array([[*row, *[0] * (max_length - len(row))] for row in prefix])
    if phrases is not None:
        phrases = Phrases.of(phrases)
    how = Search(beam_size=beam_size, n_best=n_best or beam_size, length_penalty=alpha, **options)
    tokens, scores = compiled(table, SearchRequest(limits, prefix, phrases), how, max_length, halve)
    return np.asarray(tokens), np.asarray(scores)


@functools.partial(jax.jit, static_argnums=(2, 3, 4))
def compiled(table, request, how, max_length, halve):
    """One program for all tables of a shape."""
    step, cache = make_step(table), make_cache(table, how.beam_size)
    return beam_search(step, cache, request, search=how, max_length=max_length, bos=BOS, eos=EOS, halve=halve)


def enumerate_all(table, alpha, length=T):
    """Every translation that ends within `length`, best first, by definition."""
    found = []
    for n in range(length):
        for words in itertools.product([t for t in range(V) if t != EOS], repeat=n):
            tokens = (*words, EOS)
            found.append((log_probability(table, tokens) / float(length_penalty(n + 1, alpha)), tokens))
    return sorted(found, reverse=True)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.5])
def test_a_full_beam_finds_what_enumeration_finds(alpha):
    table = make(0, 3)
    tokens, scores = search(table, V**T, alpha, n_best=5)
    for b in range(3):
        expected = enumerate_all(table[b], alpha)[:5]
        np.testing.assert_allclose(scores[b], [score for score, _ in expected], rtol=1e-5)
        assert [tuple(row[: row.tolist().index(EOS) + 1]) for row in tokens[b]] == [t for _, t in expected]


@pytest.mark.parametrize("beam_size", [1, 2, 5])
def test_scores_are_the_log_probabilities_of_the_tokens(beam_size):
    table = make(1, 2)
    tokens, scores = search(table, beam_size, 0.6)
    for b, k in itertools.product(range(2), range(beam_size)):
        row = tokens[b, k].tolist()
        ended = EOS in row
        words = row[: row.index(EOS) + 1] if ended else row
        penalty = float(length_penalty(len(words), 0.6))
        np.testing.assert_allclose(scores[b, k], log_probability(table[b], words) / penalty, rtol=1e-5)
        assert row[len(words) :] == [0] * (T - len(words))


def test_beam_of_one_is_greedy():
    table = make(2, 20)
    tokens, _ = search(table, 1, max_length=6)
    for b in range(20):
        text, history = [], (BOS, BOS)
        while len(text) < 6 and EOS not in text:
            text.append(int(table[b][history].argmax()))
            history = (history[1], text[-1])
        assert until_end(tokens[b, 0]) == tuple(text)


def test_a_hypothesis_that_never_ends_is_returned_whole():
    table = np.full((2, V, V, V), -1.0, np.float32)
    table[..., EOS] = -1e9
    table[..., 1] = -0.1
    tokens, scores = search(table, 2, 0.6)
    assert tokens[:, 0].tolist() == [[1] * T] * 2
    np.testing.assert_allclose(scores[:, 0], -0.1 * T / length_penalty(T, 0.6), rtol=1e-5)


def test_a_result_does_not_depend_on_other_sentences_or_on_the_maximum_length():
    table = make(3, 3)
    limits = [2, 4, 3]
    tokens, scores = search(table, 3, 0.6, limits)
    for b, limit in enumerate(limits):
        alone, score = search(table[b : b + 1], 3, 0.6, [limit], max_length=limit)
        np.testing.assert_array_equal(tokens[b][:, :limit], alone[0])
        assert (tokens[b][:, limit:] == 0).all()
        np.testing.assert_allclose(scores[b], score[0], rtol=1e-6)


def test_stopping_early_loses_nothing():
    """The n best are the same whether the search stops for one or for all of its results."""
    table = make(4, 20)
    for alpha in (0.0, 1.0):
        all_tokens, _ = search(table, 4, alpha, max_length=8)
        best, _ = search(table, 4, alpha, n_best=1, max_length=8)
        np.testing.assert_array_equal(best[:, 0], all_tokens[:, 0])


def ranked(table, accept, alpha=0.0, length=T, form="wu"):
    """(score, text) of every text that ends and is accepted, best first."""
    how = Search(length_penalty=alpha, normalization=form)
    found = [
        (log_probability(table, text) / float(how.penalty(len(text))), text)
        for text in texts(length)
        if text[-1] == EOS and accept(text)
    ]
    return sorted(found, reverse=True)


def contains(text, phrases):
    """Whether a text contains the phrases without overlap, in any order."""
    if not phrases:
        return True
    return any(
        text[i : i + len(phrase)] == tuple(phrase)
        and any(
            contains(part, rest)
            for rest in [phrases[:n] + phrases[n + 1 :]]
            for part in [(*text[:i], -1, *text[i + len(phrase) :])]
        )
        for n, phrase in enumerate(phrases)
        for i in range(len(text))
    )


def has_repeats(text, n):
    grams = [text[i : i + n] for i in range(len(text) - n + 1)]
    return len(set(grams)) < len(grams)


@pytest.mark.parametrize(
    ("accept", "options"),
    [
        (lambda text: len(text) > 2, {"min_length": 2}),
        (lambda text: not has_repeats(text, 1), {"no_repeat_ngram_size": 1}),
        (lambda text: not has_repeats(text, 2), {"no_repeat_ngram_size": 2}),
        (lambda text: text[:2] == (1, 2), {"prefix": [[1, 2]] * 3}),
        # A prefix may break the rules.
        (
            lambda text: text[:2] == (1, 1) and not has_repeats(text[1:], 1),
            {"prefix": [[1, 1]] * 3, "no_repeat_ngram_size": 1},
        ),
        (lambda text: contains(text, [(1, 1)]), {"phrases": [[[1, 1]]] * 3}),
        (lambda text: contains(text, [(1,), (2, 1)]), {"phrases": [[[1], [2, 1]]] * 3}),
        (lambda text: True, {"stopping": "limit"}),
        (lambda text: True, {"normalization": "length"}),
    ],
)
def test_a_full_beam_under_every_rule_finds_what_enumeration_finds(accept, options):
    table = np.array(make(5, 3))
    table[..., 0] = -30  # padding, which no model generates
    tokens, scores = search(table, V**T, 0.6, n_best=5, **options)
    for b in range(3):
        expected = ranked(table[b], accept, 0.6, form=options.get("normalization", "wu"))
        number = min(5, len(expected))
        np.testing.assert_allclose(scores[b, :number], [score for score, _ in expected[:number]], rtol=1e-4)
        assert [until_end(row) for row in tokens[b, :number]] == [text for _, text in expected[:number]]


@pytest.mark.parametrize("beam_size", [1, 2, 3, 7])
def test_constraints_are_always_met(beam_size):
    wanted = [[[1, 1, 2]], [[2], [1]], [[2, 2], [1]], [], [[1, 2], [1, 1]]]
    for seed in range(8):
        table = make(seed, 5)
        tokens, scores = search(table, beam_size, 0.5, max_length=6, phrases=wanted)
        assert (scores[:, 0] > -1e8).all()  # there always is a translation
        for b, k in itertools.product(range(5), range(beam_size)):
            if scores[b, k] < -1e8:
                continue  # fewer texts than beams
            text = until_end(tokens[b, k])
            assert contains(text, [tuple(phrase) for phrase in wanted[b]])
            assert not wanted[b] or text[-1] == EOS


def test_without_constraints_it_is_plain_beam_search():
    table = make(6, 5)
    plain, scores = search(table, 3, 0.5, max_length=6)
    tokens, same = search(table, 3, 0.5, max_length=6, phrases=[[], [[1, 1], [2]], [], [], []])
    for b in (0, 2, 3, 4):
        np.testing.assert_array_equal(tokens[b], plain[b])
        np.testing.assert_allclose(same[b], scores[b], rtol=1e-6)


HALVED = {
    "plain": {},
    "greedy": {"beam_size": 1},
    "to the limit": {"stopping": "limit"},
    "groups": {"beam_size": 4, "num_groups": 2},
    "prefix": {"prefix": [[], [1], [0, 1], [], [1], [], [0]]},
    "phrases": {"phrases": [[], [[1, 1]], [], [[0, 1, 0]], [], [], [[1]]]},
}


@pytest.mark.slow
@pytest.mark.parametrize("case", HALVED)
def test_continuing_with_half_a_batch_changes_nothing(case):
    table = make(16, 7)
    limits = [8, 3, 6, 8, 0, 5, 7]
    options = {"beam_size": 3, "limits": limits, "max_length": 8, **HALVED[case]}
    tokens, scores = search(table, **options)
    halved, same = search(table, **options, halve=True)
    np.testing.assert_array_equal(halved, tokens)
    np.testing.assert_allclose(same, scores, rtol=1e-6)
    assert len({(row[0] != 0).sum() for row in tokens}) > 2  # they end at different steps


def test_constraints_that_the_best_translation_meets_change_nothing():
    number = 0
    for seed in (7, 8):
        table = make(seed, 3)
        plain, scores = (found[:, 0] for found in search(table, V**T, 0.6, n_best=5))
        phrases = [[[token for token in until_end(row) if token != EOS][:2]] for row in plain]
        phrases = [[phrase for phrase in own if phrase] for own in phrases]
        tokens, same = (found[:, 0] for found in search(table, V**T, 0.6, n_best=5, phrases=phrases))
        ended = (plain == EOS).any(axis=-1)  # a translation with constraints always ends
        np.testing.assert_array_equal(tokens[ended], plain[ended])
        np.testing.assert_allclose(same[ended], scores[ended], rtol=1e-6)
        number += ended.sum()
    assert number > 3


@pytest.mark.slow
def test_one_group_is_plain_beam_search_and_more_are_more_diverse():
    table = make(8, 4)
    plain, scores = search(table, 6, max_length=6)
    one, same = search(table, 6, max_length=6, num_groups=1, diversity=5.0)
    np.testing.assert_array_equal(plain, one)
    np.testing.assert_array_equal(scores, same)
    groups, scores = search(table, 3, max_length=6, num_groups=3, diversity=20.0, min_length=1)
    for b in range(4):
        assert {row[0] for row in groups[b]} == {0, 1, 2}  # all there are
        for row, score in zip(groups[b], scores[b], strict=True):
            np.testing.assert_allclose(score, log_probability(table[b], until_end(row)), rtol=1e-4)
    alone, _ = search(table, 2, max_length=6)
    together, scores_together = search(table, 6, max_length=6, num_groups=3, diversity=0.0)
    for b in range(4):  # without a cost every group is the same search, and what it finds comes once
        np.testing.assert_array_equal(together[b, :2], alone[b])
        real = [until_end(row) for row, score in zip(together[b], scores_together[b], strict=True) if score > -1e8]
        assert len(set(real)) == len(real) < 6


def test_repeated_pieces_cost_more_with_a_repetition_penalty():
    table = make(9, 6)
    _, scores = search(table, V**T, repetition_penalty=1.5, n_best=1)
    for b in range(6):

        def penalised(text, table=table[b]):
            return sum(
                (log_probability(table, text[: i + 1]) - log_probability(table, text[:i]))
                * (1.5 if token in text[:i] else 1.0)
                for i, token in enumerate(text)
            )

        best = max((penalised(text), text) for text in texts() if text[-1] == EOS)
        np.testing.assert_allclose(scores[b, 0], best[0], rtol=1e-4)


def test_stopping_at_the_beam_is_early_and_at_the_limit_is_late():
    table = make(10, 20)
    by_rule = {
        rule: search(table, 4, 1.0, n_best=1, max_length=8, stopping=rule)[1] for rule in ("beam", "bound", "limit")
    }
    np.testing.assert_allclose(by_rule["bound"], by_rule["limit"], rtol=1e-6)
    assert (by_rule["beam"] <= by_rule["bound"] + 1e-6).all()
    assert (by_rule["beam"] < by_rule["bound"] - 1e-6).any()


def test_coverage_penalty_is_that_of_wu_et_al():
    weights = np.random.default_rng(0).dirichlet(np.ones(3), size=(V, V)).astype(np.float32)  # by the last two tokens
    table, mask = make(11, 2), np.array([[True, True, True], [True, True, False]])

    def watched(tokens, cache):
        log_probs, new = make_step(table)(tokens, cache[0])
        return log_probs, (new, jnp.asarray(weights)[cache[0]["previous"], tokens])

    size, beta = V**T, 0.8
    how = Search(beam_size=size, n_best=3, coverage_penalty=beta, length_penalty=0.5)

    @jax.jit
    def found():
        return beam_search(
            watched,
            (make_cache(table, size), jnp.zeros((2 * size, 3))),
            SearchRequest(jnp.full(2, T)),
            search=how,
            max_length=T,
            bos=BOS,
            eos=EOS,
            attention=lambda cache: cache[1],
            source_mask=jnp.asarray(mask),
        )

    tokens, scores = map(np.asarray, found())

    def score(b, text):
        history = (BOS, BOS, *text)
        seen = sum(weights[history[i], history[i + 1]] for i in range(len(text)))
        penalty = np.log(np.minimum(seen, 1.0))[mask[b]].sum()
        return log_probability(table[b], text) / length_penalty(len(text), 0.5) + beta * penalty

    for b in range(2):
        best = sorted(((score(b, text), text) for text in texts() if text[-1] == EOS), reverse=True)[:3]
        np.testing.assert_allclose(scores[b], [value for value, _ in best], rtol=1e-4)
        assert [until_end(row) for row in tokens[b]] == [text for _, text in best]


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"beam_size": 0}, "beam_size=0"),
        ({"beam_size": 2, "n_best": 3}, "beam_size=3"),
        ({"beam_size": 4, "num_groups": 3}, "num_groups=3"),
        ({"normalization": "words"}, "one of wu, length"),
        ({"stopping": "now"}, "one of bound, beam, limit"),
        ({"length_penalty": -1.0}, "length_penalty=-1.0"),
        ({"repetition_penalty": 0.5}, "repetition_penalty=0.5"),
    ],
)
def test_invalid_options_are_named(options, line):
    with pytest.raises(ValueError, match=line):
        Search(**options)
