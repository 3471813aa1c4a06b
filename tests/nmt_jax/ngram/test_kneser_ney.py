"""Estimates equal those of the equations with dictionaries and fractions, and those of KenLM's lmplz."""

import collections
from fractions import Fraction

import numpy as np
import pytest

from nmt_jax.errors import UserError
from nmt_jax.ngram import counts as counts_module
from nmt_jax.ngram.arpa import read_arpa
from nmt_jax.ngram.counts import count
from nmt_jax.ngram.kneser_ney import closed_form_discounts, estimate
from nmt_jax.ngram.vocabulary import BOS, UNK
from tests.nmt_jax.ngram.conftest import FALLBACK, FOLDER, model_of_order, text

UNKNOWN_WORDS = ("a <unk> b a", "<unk> a", "b <unk> <unk> a", "c")  # <unk> counts like a word


class Restated:
    """Chen and Goodman (1999), section 3, and equation 26, one n-gram at a time."""

    def __init__(self, lines, order):
        sentences = [["<s>", *line.split(), "</s>"] for line in lines]
        occurrences = collections.Counter(
            tuple(words[end - n : end])
            for words in sentences
            for n in range(1, order + 1)
            for end in range(n, len(words) + 1)
        )
        before = collections.Counter(gram[1:] for gram in occurrences if len(gram) > 1)
        self.counts = {
            gram: number if len(gram) == order or gram[0] == "<s>" else before[gram]
            for gram, number in occurrences.items()
        }
        del self.counts["<s>",]
        self.words = sorted({word for gram in self.counts for word in gram} - {"<s>"} | {"<unk>"})
        self.discounts = [self.discounts_of(n) for n in range(1, order + 1)]
        self.followers = collections.defaultdict(list)
        for gram, number in self.counts.items():
            self.followers[gram[:-1]].append(number)

    def discounts_of(self, n):
        number = collections.Counter(c for gram, c in self.counts.items() if len(gram) == n)
        if not all(number[k] for k in (1, 2, 3)):
            return [Fraction(one) for one in FALLBACK]
        y = Fraction(number[1], number[1] + 2 * number[2])
        found = [k - (k + 1) * y * Fraction(number[k + 1], number[k]) for k in (1, 2, 3)]
        return found if all(0 <= d <= k for k, d in enumerate(found, start=1)) else [Fraction(one) for one in FALLBACK]

    def discount(self, gram, number):
        return self.discounts[len(gram) - 1][min(number, 3) - 1]

    def gamma(self, context):
        numbers = self.followers[context]
        held_back = sum(self.discount((*context, ""), number) for number in numbers)
        return Fraction(held_back, sum(numbers)) if numbers else Fraction(1)

    def p(self, gram):
        if not gram:
            return Fraction(1, len(self.words))
        number, context = self.counts.get(gram, 0), gram[:-1]
        own = Fraction(number - self.discount(gram, number), sum(self.followers[context])) if number else 0
        return own + self.gamma(context) * self.p((*context[1:], gram[-1]) if context else ())


@pytest.mark.parametrize("lines", [text(), UNKNOWN_WORDS], ids=["text", "unknown words"])
@pytest.mark.parametrize("order", [1, 2, 4, 6])
def test_probabilities_equal_the_equations(lines, order):
    restated = Restated(lines, order)
    counts = count(lines, order)
    model, discounts = estimate(counts, FALLBACK)
    np.testing.assert_allclose(discounts, np.array(restated.discounts, float), rtol=1e-12)
    words = model.vocabulary.words
    assert sorted(words) == sorted([*restated.words, "<s>"])
    for n in range(1, order + 1):
        grams = [tuple(words[one] for one in gram) for gram in model.trie.spelled(n).tolist()]
        assert set(grams) >= {gram for gram in restated.counts if len(gram) == n}
        expected = [0.0 if gram == ("<s>",) else float(restated.p(gram)) for gram in grams]
        found = 10.0 ** model.log_probabilities[n - 1]
        own = np.array([gram != ("<s>",) for gram in grams])
        np.testing.assert_allclose(found[own], np.array(expected)[own], rtol=1e-9)
        if n < order:
            gamma = [float(restated.gamma(gram)) for gram in grams]
            np.testing.assert_allclose(10.0 ** model.backoffs[n - 1], gamma, rtol=1e-9)


def test_probabilities_of_all_words_sum_to_one_in_every_state(model):
    states = np.unique(model.start(1), axis=0)
    words = np.array([number for number in range(len(model.vocabulary)) if number != BOS])
    for _ in range(3):  # states that the model can reach, and through an unknown word
        log_p, following = model.advance(np.repeat(states, len(words), axis=0), np.tile(words, len(states)))
        np.testing.assert_allclose((10.0**log_p).reshape(len(states), -1).sum(axis=1), 1, rtol=1e-12)
        states = np.unique(following, axis=0)
    assert len(states) > 100


def test_values_equal_those_of_lmplz():
    """lmplz.arpa: lmplz -o 4 --discount_fallback < text.txt, of the source distribution of kenlm 0.3.0."""
    golden, model = read_arpa(FOLDER / "lmplz.arpa"), model_of_order(4)
    ours, theirs = (
        {
            tuple(one.vocabulary.words[word] for word in gram): (n, number)
            for n in range(1, 5)
            for number, gram in enumerate(one.trie.spelled(n).tolist())
        }
        for one in (model, golden)
    )
    assert ours.keys() == theirs.keys()
    for gram, (n, number) in ours.items():
        other = theirs[gram][1]
        assert model.log_probabilities[n - 1][number] == pytest.approx(golden.log_probabilities[n - 1][other], abs=1e-6)
        if n < 4:
            assert model.backoffs[n - 1][number] == pytest.approx(golden.backoffs[n - 1][other], abs=1e-6)


def test_counts_do_not_depend_on_the_size_of_blocks(monkeypatch):
    whole = count(text(), 5)
    monkeypatch.setattr(counts_module, "BLOCK", 7)
    parts = count(text(), 5)
    for one, other in zip((*whole.trie.keys, *whole.occurrences), (*parts.trie.keys, *parts.occurrences), strict=True):
        np.testing.assert_array_equal(one, other)


def test_occurrences_and_an_empty_line():
    counts = count(["a b", "", "a\tb  c\u00a0d "], 3)
    assert counts.vocabulary.words[3:] == ["a", "b", "c\u00a0d"]
    assert counts.occurrences[0].tolist() == [0, 3, 3, 2, 2, 1]
    bigrams = zip(counts.trie.spelled(2).tolist(), counts.occurrences[1].tolist(), strict=True)
    assert list(bigrams) == [([1, 2], 1), ([1, 3], 2), ([3, 4], 2), ([4, 2], 1), ([4, 5], 1), ([5, 2], 1)]


def test_unknown_words_of_the_text_have_a_larger_probability():
    model, _ = estimate(count(UNKNOWN_WORDS, 2), FALLBACK)
    zero = estimate(count([line.replace("<unk>", "x") for line in UNKNOWN_WORDS], 2), FALLBACK)[0]
    assert model.log_probabilities[0][UNK] > zero.log_probabilities[0][UNK]


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ([1, 1, 3], "no 2-gram has the adjusted count 2: .*--discount_fallback"),
        ([2, 3, 4], "no 2-gram has the adjusted count 1"),
        ([1, 2, 3] + 9 * [4], "the discount -9 for 2-grams with adjusted count 3 is not in"),
    ],
)
def test_too_little_text(numbers, message):
    with pytest.raises(UserError, match=message):
        closed_form_discounts(np.array(numbers), 2)


def test_lines_shorter_than_the_order():
    model, _ = estimate(count(["a", "b a"], 6), FALLBACK)
    assert model.trie.sizes == [5, 4, 3, 1, 0, 0]
    assert model.score(["a b a"]).log_probabilities.shape == (4,)


@pytest.mark.parametrize("fallback", [(0, 1, 1), (0.5, 2.5, 1), (0.5, 1, float("nan"))])
def test_discounts_out_of_range(fallback):
    with pytest.raises(ValueError, match="at most 1, 2 and 3"):
        estimate(count(["a"], 1), fallback)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "text: the text has no words"),
        (["", " "], "text: the text has no words"),
        (["a <s>"], "text:1: the word <s> marks"),
        (["a", "b </s>"], "text:2: the word </s>"),
    ],
)
def test_texts_that_cannot_be_counted(lines, message):
    with pytest.raises(UserError, match=message):
        count(lines, 2)


def test_marks_within_words_are_allowed():
    assert count(["a<s> </s>b"], 1).vocabulary.words[3:] == ["a<s>", "</s>b"]


def test_suffixes_are_the_ngrams_without_their_first_words():
    trie = count(text(), 4).trie
    all_suffixes = trie.suffixes()
    assert len(all_suffixes) == 3
    for n, suffixes in enumerate(all_suffixes, start=2):
        assert len(suffixes) > 0
        np.testing.assert_array_equal(trie.spelled(n - 1)[suffixes], trie.spelled(n)[:, 1:])
