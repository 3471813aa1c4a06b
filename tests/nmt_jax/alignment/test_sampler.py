"""The sampler: texts whose alignment is known, seeds, devices."""

import json
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from benchmarks.grammar_alignment import noun_links, noun_scores
from nmt_jax.alignment.aligner import Aligner
from nmt_jax.alignment.sampler import Sampler, default_sweeps
from nmt_jax.data import grammar
from tests.conftest import ROOT, with_devices
from tests.nmt_jax.alignment.test_aligner import dictionary_corpus, one_device

OPTIONS: dict[str, Any] = {"sweeps": 8, "chains": 2, "null_probability": 0.01}


@pytest.fixture(scope="module")
def corpus():
    """A corpus with one pair that has an empty side."""
    source, target, links = dictionary_corpus(200, True)
    return [*source, []], [*target, ["x"]], [*links, []]


@pytest.fixture(scope="module")
def sampler(corpus):
    return Sampler(*corpus[:2], one_device(), **OPTIONS)


def test_a_one_to_one_corpus_is_aligned(corpus, sampler):
    found = sampler.align_lines(0, 201)
    assert np.mean([one.links == gold for one, gold in zip(found, corpus[2], strict=True)]) > 0.98
    assert all(0.5 < p <= 1.0001 for one in found for p in one.posteriors)
    assert {(s[1:], t[1:]) for s, t, p in sampler.lexicon(0.5)} == {(str(n), str(n)) for n in range(20)}


def test_lines_do_not_depend_on_how_they_are_asked_for(sampler):
    assert [one for first in range(0, 201, 50) for one in sampler.align_lines(first, min(50, 201 - first))] == (
        sampler.align_lines(0, 201)
    )


def test_seeds_fix_the_result(corpus, sampler):
    again, other = (Sampler(*corpus[:2], one_device(), seed=seed, **OPTIONS) for seed in (0, 1))
    for one, two, three in zip(sampler.posteriors[0], again.posteriors[0], other.posteriors[0], strict=True):
        np.testing.assert_array_equal(one, two)
        assert (one != three).any()


def test_posteriors_are_probabilities(sampler):
    for posteriors in (one for direction in sampler.posteriors for one in direction):
        assert posteriors.min() >= 0
        assert posteriors.sum(-1).max() <= 1.0001


def test_sweeps_for_sizes_of_texts():
    assert [default_sweeps(size) for size in (1, 250, 2_500, 29_000, 10**7)] == [100, 100, 60, 18, 5]


@pytest.mark.slow
def test_nouns_of_the_grammar_find_their_translations():
    """Links of nouns that occur once on both sides follow from the lexicon of the grammar."""
    text = [[re.findall(r"\w+|[^\w\s]", side) for side in pair] for pair in grammar.pairs("train", 300)]
    gold = [*noun_links(text)]
    assert sum(map(len, gold)) > 150
    source, target = zip(*text, strict=True)

    def error_rate(aligner):
        return noun_scores([set(one.links) for one in aligner.align_lines(0, len(text))], gold).error_rate

    sampled, hmm = (
        error_rate(aligner)
        for aligner in (
            Sampler(source, target, one_device(), sweeps=30, chains=2),
            Aligner(source, target, one_device()),
        )
    )
    assert sampled < 0.2
    assert sampled < hmm


PROGRAM = """
import json
from nmt_jax.alignment.sampler import Sampler
from nmt_jax.distributed.sharding import make_mesh
from tests.nmt_jax.alignment.test_aligner import dictionary_corpus
source, target, _ = dictionary_corpus(200, True)
sampler = Sampler([*source, []], [*target, ["x"]], make_mesh(), sweeps=8, chains=2, null_probability=0.01)
print(json.dumps([len(make_mesh().devices), sampler.align_lines(0, 201)]))
"""


@pytest.mark.slow
def test_eight_devices_equal_one(sampler):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, env=with_devices(8), check=True, capture_output=True, text=True
    )
    count, aligned = json.loads(done.stdout)
    assert count == 8
    for (links, posteriors), one in zip(aligned, sampler.align_lines(0, 201), strict=True):
        assert [tuple(link) for link in links] == one.links
        assert posteriors == one.posteriors
