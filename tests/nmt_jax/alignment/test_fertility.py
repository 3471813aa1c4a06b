"""The sampler's conditional distributions, draws and counts against slow restatements of the equations."""

import collections
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax.alignment import fertility
from nmt_jax.alignment.fertility import FERTILITIES, LONGEST_JUMP, UNDRAWN, Prior, Sentences, Stage, Vocabulary

PRIOR = Prior(null_probability=0.15, pair=0.05, null=0.1, jump=0.5, fertility=0.4)
FULL = Stage(1.0, 1.0)
S, T, V = 4, 5, 12  # padded lengths; words of each side are 2 to V - 1, 0 is padding
TEXT = (  # source, target, links: a source position, or None for NULL
    ([2, 3, 4], [2, 3, 4, 5], [0, 1, None, 1]),
    ([3, 5, 6, 7], [3, 6], [0, 3]),
    ([2, 5, 6], [2, 2, 6, 4, 9], [0, 0, 2, None, 1]),
    ([4], [4, 8, 8], [None, 0, 0]),
)
KEYS = np.unique([0, *(e * V + f for source, target, _ in TEXT for e in source for f in target)])

resampled = jax.jit(fertility.resampled, static_argnames="prior")
changes, added = jax.jit(fertility.changes), jax.jit(fertility.added)


def padded(text, rows=None):
    """Sentences and links as arrays; source positions S in `links` are NULL."""
    rows = rows or len(text)
    source, target, links = np.zeros((rows, S), int), np.zeros((rows, T), int), np.full((rows, T), S)
    for row, (one, other, found) in enumerate(text):
        source[row, : len(one)], target[row, : len(other)] = one, other
        links[row, : len(other)] = [S if i is None else i for i in found]
    pairs = np.searchsorted(KEYS, source[:, None, :] * V + target[:, :, None]).clip(max=len(KEYS) - 1)
    pairs[(source[:, None, :] == 0) | (target[:, :, None] == 0)] = 0
    return Sentences(*map(jnp.int32, (source, target, pairs))), jnp.int32(links)


VOCABULARY = Vocabulary(jnp.float32(np.bincount(KEYS // V, minlength=V)), jnp.float32(V - 2))


def counted(text):
    sentences, links = padded(text)
    return added(fertility.empty(len(KEYS), V), changes(sentences, links, 1))


def jumps_of(source, links):
    path = [-1, *(i for i in links if i is not None), len(source)]
    return [after - before for before, after in itertools.pairwise(path)]


def jump_probabilities():
    counts = np.full(2 * LONGEST_JUMP + 1, PRIOR.jump)
    for source, _, links in TEXT:
        for jump in jumps_of(source, links):
            counts[jump + LONGEST_JUMP] += 1
    return counts / counts.sum()


def log_joint(text, jumps):
    """log p(links, target words | source words) with integrated distributions; those of jumps are given."""
    translations = collections.defaultdict(collections.Counter)
    fertilities = collections.defaultdict(collections.Counter)
    total = 0.0
    for source, target, links in text:
        for f, i in zip(target, links, strict=True):
            translations[None if i is None else source[i]][f] += 1
            total += math.log(PRIOR.null_probability if i is None else 1 - PRIOR.null_probability)
        for i, e in enumerate(source):
            fertilities[e][links.count(i)] += 1
        total += sum(math.log(jumps[jump + LONGEST_JUMP]) for jump in jumps_of(source, links))

    def dirichlet(counts, alpha, size):
        number = sum(counts.values())
        value = math.lgamma(alpha * size) - math.lgamma(alpha * size + number)
        return value + sum(math.lgamma(alpha + count) - math.lgamma(alpha) for count in counts.values())

    for e, counts in translations.items():
        alpha, size = (PRIOR.null, V - 2) if e is None else (PRIOR.pair, int(VOCABULARY.partners[e]))
        total += dirichlet(counts, alpha, size)
    return total + sum(dirichlet(counts, PRIOR.fertility, FERTILITIES) for counts in fertilities.values())


@pytest.mark.parametrize("row", range(len(TEXT)))
def test_the_conditional_distribution_of_a_link_follows_from_the_joint_distribution(row):
    source, target, links = TEXT[row]
    values = []
    for i in [*range(len(source)), None]:
        changed = [*TEXT[:row], (source, target, [i, *links[1:]]), *TEXT[row + 1 :]]
        values.append(log_joint(changed, jump_probabilities()))
    expected = np.exp(np.array(values) - max(values))
    sentences, links = padded(TEXT)
    _, found = resampled(counted(TEXT), sentences, links, jnp.zeros((len(TEXT), T)), VOCABULARY, FULL, prior=PRIOR)
    np.testing.assert_allclose(found[row, 0, : len(source)], expected[:-1] / expected.sum(), rtol=1e-4)


def test_draws_have_the_probabilities_of_an_enumeration():
    """Both words of a sentence are drawn many times; the second given the jump and the fertility after the first."""
    row, many = 1, 20_000
    source, target, old = TEXT[row]
    counts, jumps = counted(TEXT), jump_probabilities()
    pairs, words, null, _, fertilities = map(np.asarray, counts)

    def weight(j, i, before, after, fertility):
        if i is None:
            own = old[j] is None
            word = (null[target[j]] - own + PRIOR.null) / (null.sum() - own + PRIOR.null * (V - 2))
            return PRIOR.null_probability * word * jumps[after - before + LONGEST_JUMP]
        e, own = source[i], old[j] == i
        word = pairs[np.searchsorted(KEYS, e * V + target[j])] - own + PRIOR.pair
        word /= words[e] - own + PRIOR.pair * float(VOCABULARY.partners[e])
        tokens = fertilities[e] - (np.arange(FERTILITIES) == old.count(i)) + PRIOR.fertility
        growth = tokens[fertility + 1] / tokens[fertility]
        jump = jumps[i - before + LONGEST_JUMP] * jumps[after - i + LONGEST_JUMP]
        return (1 - PRIOR.null_probability) * word * jump * growth

    expected = collections.Counter()
    choices = [*range(len(source)), None]
    first = [weight(0, i, -1, old[1], int(i == old[1])) for i in choices]
    for i, one in zip(choices, first, strict=True):
        second = [weight(1, k, -1 if i is None else i, len(source), int(i == k)) for k in choices]
        for k, other in zip(choices, second, strict=True):
            expected[i, k] = one / sum(first) * other / sum(second)
    sentences, links = padded([TEXT[row]] * many)
    uniform = np.random.default_rng(0).random((many, T), np.float32)
    drawn, _ = resampled(counts, sentences, links, uniform, VOCABULARY, FULL, prior=PRIOR)
    found = collections.Counter(
        tuple(None if i == S else i for i in pair) for pair in np.asarray(drawn)[:, :2].tolist()
    )
    for pair, probability in expected.items():
        assert found[pair] / many == pytest.approx(probability, abs=4 * math.sqrt(probability / many) + 1e-4), pair


def test_counts_of_changed_links_are_those_of_a_recount():
    sentences, links = padded(TEXT)
    changed = [(source, target, links[::-1]) for source, target, links in TEXT]
    changed = [(s, t, [i if i is None or i < len(s) else 0 for i in links]) for s, t, links in changed]
    _, new = padded(changed)
    found = counted(TEXT)
    for some, sign in ((links, -1), (new, 1)):
        found = added(found, changes(sentences, some, sign))
    expected = collections.Counter()
    for source, target, some in changed:
        for f, i in zip(target, some, strict=True):
            names = [("null", f)] if i is None else [("pair", source[i], f), ("word", source[i])]
            expected.update(names)
        expected.update(("fertility", e, some.count(i)) for i, e in enumerate(source))
        expected.update(("jump", jump) for jump in jumps_of(source, some))
    kinds = {
        "pair": {("pair", int(KEYS[k]) // V, int(KEYS[k]) % V): n for k, n in enumerate(found.pairs.tolist())},
        "word": {("word", e): n for e, n in enumerate(found.words.tolist())},
        "null": {("null", f): n for f, n in enumerate(found.null.tolist())},
        "jump": {("jump", k - LONGEST_JUMP): n for k, n in enumerate(found.jumps.tolist())},
        "fertility": {
            ("fertility", e, k): n for e, row in enumerate(found.fertilities.tolist()) for k, n in enumerate(row)
        },
    }
    assert {name: n for kind in kinds.values() for name, n in kind.items() if n} == dict(expected)


def test_the_first_draw_is_uniform_and_adds_all_counts():
    sentences, links = padded(TEXT)
    undrawn = jnp.full_like(links, UNDRAWN)
    empty = fertility.empty(len(KEYS), V)
    uniform = np.random.default_rng(1).random(links.shape, np.float32)
    new, found = resampled(empty, sentences, undrawn, uniform, VOCABULARY, Stage(0.0, 0.0), prior=PRIOR)
    for row, (source, target, _) in enumerate(TEXT):
        np.testing.assert_allclose(found[row, : len(target), : len(source)], 1 / len(source), rtol=1e-5)
    assert not any(np.asarray(part[-1]).any() for part in changes(sentences, undrawn, 1))
    assert int(added(empty, changes(sentences, new, 1)).words.sum()) == 14


def test_padding_has_no_influence():
    sentences, links = padded(TEXT)
    more = Sentences(
        jnp.pad(sentences.source, ((0, 2), (0, 3))),
        jnp.pad(sentences.target, ((0, 2), (0, 1))),
        jnp.pad(sentences.pairs, ((0, 2), (0, 1), (0, 3))),
    )
    wide = jnp.pad(jnp.where(links == S, S + 3, links), ((0, 2), (0, 1)), constant_values=S + 3)
    uniform = np.random.default_rng(2).random(links.shape, np.float32)
    counts = counted(TEXT)
    new, found = resampled(counts, sentences, links, uniform, VOCABULARY, FULL, prior=PRIOR)
    padded_uniform = np.pad(uniform, ((0, 2), (0, 1)), constant_values=0.5)
    other, probabilities = resampled(counts, more, wide, padded_uniform, VOCABULARY, FULL, prior=PRIOR)
    np.testing.assert_allclose(probabilities[:-2, :T, :S], found, rtol=1e-6)
    assert float(probabilities.sum()) == pytest.approx(float(found.sum()))
    assert jnp.where(other == S + 3, S, other)[:-2, :T].tolist() == new.tolist()
    for one, two in zip(counts, added(counts, changes(more, other, 1)), strict=True):
        assert (one <= two).all()
    again = added(counts, changes(sentences, new, 1))
    for one, two in zip(again, added(counts, changes(more, other, 1)), strict=True):
        np.testing.assert_array_equal(one, two)
