"""Training: expected counts, devices, corpora whose alignment is known."""

import json
import random
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import digamma

from nmt_jax.alignment import translation_table
from nmt_jax.alignment.aligner import Aligner
from nmt_jax.alignment.bitext import Bitext
from nmt_jax.alignment.translation_table import Rows, Table
from nmt_jax.distributed.sharding import make_mesh
from tests.conftest import ROOT, with_devices

SOURCE = ["das haus", "das buch", "ein buch", "das haus ist ein haus"]
TARGET = ["the house", "the book", "a book", "the house is a house"]


def words(lines):
    return [line.split() for line in lines]


def one_device():
    return make_mesh(devices=jax.devices()[:1])


def dictionary_corpus(size, reordered):
    """Sentences whose words are translated one by one, with blocks in exchanged order; and their alignments."""
    rng = random.Random(0)
    source, target, links = [], [], []
    for _ in range(size):
        sentence = rng.sample(range(20), rng.randint(3, 6))
        order = list(range(len(sentence)))
        if reordered:
            cut = rng.randrange(len(order))
            order = order[cut:] + order[:cut]
        source.append([f"s{word}" for word in sentence])
        target.append([f"t{sentence[i]}" for i in order])
        links.append(sorted((i, j) for j, i in enumerate(order)))
    return source, target, links


@pytest.mark.slow
@pytest.mark.parametrize(("model", "reordered"), [("ibm1", True), ("diagonal", False), ("hmm", True)])
def test_a_one_to_one_corpus_is_aligned(model, reordered):
    source, target, links = dictionary_corpus(200, reordered)
    aligner = Aligner(source, target, one_device(), model=model, alpha=0.0)
    found = aligner.align(source, target)
    right = [one.links == gold for one, gold in zip(found, links, strict=True)]
    assert np.mean(right) > 0.98
    assert {(s[1:], t[1:]) for s, t, p in aligner.lexicon(0.5)} == {(str(n), str(n)) for n in range(20)}


def test_one_iteration_of_ibm1_by_hand():
    aligner = Aligner(words(SOURCE), words(TARGET), one_device(), model="ibm1", iterations=2, alpha=0.0)
    table = {}
    for _ in range(2):
        counts = {}
        for one, other in zip(words(SOURCE), words(TARGET), strict=True):
            for f in other:
                total = sum(table.get((e, f), 1.0) for e in ["NULL", *one])
                for e in ["NULL", *one]:
                    counts[e, f] = counts.get((e, f), 0.0) + table.get((e, f), 1.0) / total
        table = {
            (e, f): count / sum(value for (other, _), value in counts.items() if other == e)
            for (e, f), count in counts.items()
        }
    found = {(e, f): p for e, f, p in aligner.lexicon(1e-9)}
    assert found == pytest.approx({pair: p for pair, p in table.items() if pair[0] != "NULL"}, abs=1e-6)


@pytest.mark.slow
def test_likelihood_does_not_fall():
    source, target, _ = dictionary_corpus(50, True)
    for model in ("diagonal", "hmm"):  # the HMM begins with IBM model 1
        aligner = Aligner(source, target, one_device(), model=model, alpha=0.0, fit_tension=True)
        values = np.array(aligner.log_likelihoods)
        stages = values.reshape(-1, 5, 2)
        assert (np.diff(stages, axis=1) > -1e-3).all(), model


@pytest.mark.parametrize("reverse", [False, True])
def test_variational_bayes_by_hand(reverse):
    bitext = Bitext(words(SOURCE), words([*TARGET[:-1], TARGET[-1] + " plus"]))
    rows = Rows.of(bitext, reverse)
    source = bitext.pair_words[reverse]
    counts = np.linspace(0.0, 3.0, len(source)).astype(np.float32)
    counts[0] = 0.0
    sizes = len(bitext.target_words), len(bitext.source_words)
    assert sizes[0] != sizes[1]
    null = jnp.zeros(max(sizes)).at[2 : sizes[reverse]].set(1.0)
    found = translation_table.maximized(Table(jnp.asarray(counts), null), rows, 0.01)
    for pair in range(1, len(source)):
        row = source == source[pair]
        expected = np.exp(digamma(counts[pair] + 0.01) - digamma(counts[row].sum() + 0.01 * row.sum()))
        np.testing.assert_allclose(found.pairs[pair], expected, rtol=1e-4, atol=1e-30)
    number = sizes[reverse] - 2
    expected = np.exp(digamma(1.01) - digamma(1.01 * number))
    np.testing.assert_allclose(found.null[2 : sizes[reverse]], expected, rtol=1e-4)


def test_memory_is_for_pairs_that_occur():
    bitext = Bitext([["a", "b"], ["c"]], [["x"], ["y", "y"]])
    source, target = bitext.pair_words
    numbers = zip(source[1:], target[1:], strict=True)
    pairs = {(bitext.source_words.words[s - 2], bitext.target_words.words[t - 2]) for s, t in numbers}
    assert pairs == {("a", "x"), ("b", "x"), ("c", "y")}
    assert len(source) == 4


@pytest.fixture(scope="module")
def aligner():
    """Trained on a few pairs, one of which has an empty side."""
    source, target, _ = dictionary_corpus(40, True)
    return Aligner([*source, []], [*target, ["x"]], one_device())


@pytest.mark.slow
def test_a_pair_does_not_depend_on_others_of_the_batch(aligner):
    source, target, _ = dictionary_corpus(40, True)
    alone = [aligner.align([one], [other])[0] for one, other in zip(source[:5], target[:5], strict=True)]
    for one, other in zip(aligner.align(source, target), alone, strict=False):
        assert one.links == other.links
        assert one.posteriors == pytest.approx(other.posteriors, abs=1e-6)


@pytest.mark.slow
def test_lines_do_not_depend_on_how_they_are_asked_for(aligner):
    source, target, _ = dictionary_corpus(40, True)
    whole = aligner.align_lines(0, 41)
    assert whole == aligner.align([*source, []], [*target, ["x"]])
    assert whole == [one for first in range(0, 41, 15) for one in aligner.align_lines(first, min(15, 41 - first))]


@pytest.mark.slow
def test_empty_sentences_and_unknown_words(aligner):
    assert [one.links for one in aligner.align([[], ["new"]], [["x"], []])] == [[], []]
    (one,) = aligner.align([["new", "s1"]], [["other", "t1"]])
    assert set(one.links) <= {(i, j) for i in range(2) for j in range(2)}


PROGRAM = """
import json
from nmt_jax.alignment.aligner import Aligner
from nmt_jax.distributed.sharding import make_mesh
from tests.nmt_jax.alignment.test_aligner import dictionary_corpus
source, target, _ = dictionary_corpus(37, True)
aligner = Aligner(source, target, make_mesh(), iterations=3)
print(json.dumps([len(make_mesh().devices), list(aligner.lexicon(1e-6)), aligner.align(source, target)]))
"""


@pytest.mark.slow
def test_eight_devices_equal_one():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, env=with_devices(8), check=True, capture_output=True, text=True
    )
    count, lexicon, aligned = json.loads(done.stdout)
    assert count == 8
    source, target, _ = dictionary_corpus(37, True)
    aligner = Aligner(source, target, one_device(), iterations=3)
    assert {(s, t): p for s, t, p in lexicon} == pytest.approx(
        {(s, t): p for s, t, p in aligner.lexicon(1e-6)}, abs=1e-6
    )
    assert [[tuple(link) for link in links] for links, _ in aligned] == [
        one.links for one in aligner.align(source, target)
    ]
