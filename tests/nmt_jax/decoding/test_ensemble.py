import jax.numpy as jnp
import numpy as np

from nmt_jax.decoding.beam_search import SearchRequest, beam_search
from nmt_jax.decoding.method import Search
from nmt_jax.decoding.next_logits import ensemble
from tests.fixtures.markov import BOS, EOS, T, V, log_probability, make, make_cache, make_step, texts, until_end


def search(step, cache, count):
    tokens, scores = beam_search(
        step,
        cache,
        SearchRequest(jnp.full(count, T)),
        search=Search(beam_size=V**T, n_best=3),
        max_length=T,
        bos=BOS,
        eos=EOS,
    )
    return np.asarray(tokens), np.asarray(scores)


def test_of_one_it_is_that_one_to_the_bit():
    table = make(0, 2)
    cache = make_cache(table, V**T)
    alone, of_one = search(make_step(table), cache, 2), search(ensemble([make_step(table)]), (cache,), 2)
    for expected, found in zip(alone, of_one, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_of_several_it_is_the_mean_of_their_probabilities():
    tables = [make(seed, 2) for seed in (1, 2, 3)]
    mean = np.log(np.mean(np.exp(tables), axis=0)).astype(np.float32)
    caches = tuple(make_cache(table, V**T) for table in tables)
    tokens, scores = search(ensemble([make_step(table) for table in tables]), caches, 2)
    for b in range(2):
        expected = sorted(((log_probability(mean[b], text), text) for text in texts() if text[-1] == EOS), reverse=True)
        np.testing.assert_allclose(scores[b], [score for score, _ in expected[:3]], rtol=1e-5)
        assert [until_end(row) for row in tokens[b]] == [text for _, text in expected[:3]]
