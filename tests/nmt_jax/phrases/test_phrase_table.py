"""The phrase table against the equations, with dictionaries."""

import collections
import math

import numpy as np
import pytest

from nmt_jax.errors import UserError
from nmt_jax.phrases.phrase_table import PhraseTable
from tests.nmt_jax.phrases.conftest import LINKS, SOURCE, TARGET
from tests.nmt_jax.phrases.test_extraction import brute_force, orientation

SOURCES, TARGETS = [line.split() for line in SOURCE], [line.split() for line in TARGET]


def lexical(words, others, links):
    """The counts of links between words, of which one may be NULL, for w(word | other)."""
    counts = collections.Counter()
    for line, other, pairs in zip(words, others, links, strict=True):
        for place, word in enumerate(line):
            linked = [other[t] for s, t in pairs if s == place]
            counts.update((one, word) for one in linked or ["NULL"])
    return counts


def weight(counts, phrase, other, links):
    """Koehn et al. (2003), section 3.2: the product of means of w(word | linked words)."""
    product = 1.0
    for place, word in enumerate(phrase):
        linked = [other[t] for s, t in links if s == place] or ["NULL"]
        shares = [counts[one, word] / sum(n for (given, _), n in counts.items() if given == one) for one in linked]
        product *= sum(shares) / len(shares)
    return product


def expected(longest=3):
    """Each pair of phrases with log p(f|e), lex(f|e), p(e|f), lex(e|f), and the counts of orientations."""
    flipped = [[(t, s) for s, t in pairs] for pairs in LINKS]
    source_counts, target_counts = lexical(SOURCES, TARGETS, LINKS), lexical(TARGETS, SOURCES, flipped)
    counts, weights = collections.Counter(), collections.defaultdict(list)
    sides = collections.defaultdict(lambda: np.zeros((2, 3)))
    for source, target, links in zip(SOURCES, TARGETS, LINKS, strict=True):
        for i, k, j, m in brute_force(links, len(source), len(target)):
            if max(k - i, m - j) > longest:
                continue
            pair = tuple(source[i:k]), tuple(target[j:m])
            inside = [(s - i, t - j) for s, t in links if i <= s < k and j <= t < m]
            counts[pair] += 1
            back = [(t, s) for s, t in inside]
            weights[pair].append((weight(source_counts, *pair, inside), weight(target_counts, *pair[::-1], back)))
            for side, one in enumerate(orientation(links, len(source), len(target), (i, k, j, m))):
                sides[pair][side, one] += 1
    scores = {}
    for (source, target), n in counts.items():
        given_target = sum(other for (_, one), other in counts.items() if one == target)
        given_source = sum(other for (one, _), other in counts.items() if one == source)
        lex = [max(one) for one in zip(*weights[source, target], strict=True)]
        scores[source, target] = [n / given_target, lex[0], n / given_source, lex[1]]
    return scores, sides


def spelled(table, language_model):
    """The rows of a table: source and target words."""
    offsets = np.cumsum([0, *table.trie.sizes])
    rows = {}
    for order, offset in enumerate(offsets[:-1], start=1):
        for number, words in enumerate(table.trie.spelled(order)):
            for row in range(table.first[offset + number], table.first[offset + number + 1]):
                target = table.words[table.word_start[row] : table.word_start[row + 1]]
                rows[tuple("abcd"[one] for one in words), tuple(language_model.vocabulary.words[w] for w in target)] = (
                    row
                )
    return rows


def test_scores_are_those_of_the_equations(table, language_model):
    scores, sides = expected()
    rows = spelled(table, language_model)
    assert rows.keys() == scores.keys()
    for pair, row in rows.items():
        np.testing.assert_allclose(np.exp(table.scores[row]), scores[pair], rtol=1e-5)
        shares = (sides[pair] + 0.5) / (sides[pair].sum(1, keepdims=True) + 1.5)
        np.testing.assert_allclose(np.exp(table.orientations[row]).reshape(2, 3), shares, rtol=1e-5)


def test_a_sentence_finds_the_phrases_that_it_contains(table, language_model):
    sentence = np.array([1, 2, -1, 0])  # b c UNKNOWN a
    rows = {row: pair for pair, row in spelled(table, language_model).items()}
    words = ["b", "c", "?", "a"]
    found = {(start, end, rows[row][0], rows[row][1]) for start, end, row in zip(*table.find(sentence), strict=True)}
    spans = [(i, k) for i in range(4) for k in range(i + 1, 5)]
    assert found == {(i, k, *pair) for i, k in spans for pair in rows.values() if list(pair[0]) == words[i:k]}


def test_a_table_is_read_as_written(table, tmp_path):
    table.save(tmp_path / "table.npz")
    read = PhraseTable.load(tmp_path / "table.npz")
    for name in ("first", "scores", "orientations", "word_start", "words"):
        np.testing.assert_array_equal(getattr(read, name), getattr(table, name))
    assert [keys.tolist() for keys in read.trie.keys] == [keys.tolist() for keys in table.trie.keys]
    content = (tmp_path / "table.npz").read_bytes()
    (tmp_path / "table.npz").write_bytes(content[: len(content) // 2])
    with pytest.raises(UserError, match="damaged phrase table"):
        PhraseTable.load(tmp_path / "table.npz")


def test_the_best_translations_come_first_and_the_others_are_left_out(table, sides):
    from nmt_jax.phrases.building import build_table

    pruned = build_table(*sides, LINKS, num_words=4, longest=3, most=1)
    counts = np.diff(table.first)
    np.testing.assert_array_equal(np.diff(pruned.first), np.minimum(counts, 1))
    firsts = table.first[:-1][counts > 0]
    np.testing.assert_array_equal(pruned.scores, table.scores[firsts])
    for first, last in zip(table.first[:-1], table.first[1:], strict=True):
        assert (np.diff(table.scores[first:last, 2]) <= 0).all()
    assert math.isclose(np.exp(table.scores[table.first[0] : table.first[1], 2]).sum(), 1, rel_tol=1e-5)
