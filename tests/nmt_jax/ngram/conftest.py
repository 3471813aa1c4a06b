import functools
import pathlib

import pytest

from nmt_jax.data.lines import read_lines
from nmt_jax.ngram.counts import count
from nmt_jax.ngram.kneser_ney import estimate

FALLBACK = (0.5, 1.0, 1.5)
FOLDER = pathlib.Path(__file__).parent


@functools.cache
def model_of_order(order):
    return estimate(count(text(), order), FALLBACK)[0]


@functools.cache
def text():
    return tuple(read_lines(FOLDER / "text.txt"))


@pytest.fixture(scope="session")
def model():
    return model_of_order(4)
