"""Character n-grams: worked examples, and hashes equal to those of the published program."""

import numpy as np
import pytest

from nmt_jax.data.vocabulary.words import bucket, buckets, ngrams


def test_example_of_the_paper():
    """Bojanowski et al. (2017), section 3.2: where, n = 3."""
    assert ngrams("where", 3, 3) == ["<wh", "whe", "her", "ere", "re>"]


def test_all_lengths_of_a_short_word():
    assert ngrams("at", 3, 6) == ["<at", "<at>", "at>"]
    assert ngrams("at", 1, 2) == ["<a", "a", "at", "t", "t>"]  # the markers alone are not n-grams
    assert ngrams("", 3, 6) == []
    assert ngrams("größe", 3, 3) == ["<gr", "grö", "röß", "öße", "ße>"]  # characters, not bytes


@pytest.mark.parametrize(("text", "value"), [("", 0x811C9DC5), ("a", 0xE40C292C), ("foobar", 0xBF9CF968)])
def test_the_hash_is_fnv_1a(text, value):
    """Values published by the authors of the hash (FNV-1a, 32 bits)."""
    assert bucket(text, 1 << 32) == value


def test_bytes_are_signed_as_in_the_published_program():
    value = 2166136261
    for byte in "ö".encode():
        value = (value ^ int(np.uint32(np.int32(np.int8(np.uint8(byte)))))) * 16777619 % 2**32
    assert bucket("ö", 1 << 32) == value
    assert bucket("ö", 10) == value % 10


def test_buckets_are_listed_word_by_word():
    places, numbers = buckets(["at", "", "where"], min_n=3, max_n=3, num_buckets=97)
    assert places.tolist() == [0, 0, 2, 2, 2, 2, 2]
    assert numbers.tolist() == [bucket(n, 97) for n in ["<at", "at>", "<wh", "whe", "her", "ere", "re>"]]
