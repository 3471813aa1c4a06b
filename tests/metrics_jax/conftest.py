"""The WordNet databases that several rooms are tested with."""

import pathlib

import pytest

from metrics_jax.surface.synonyms import WordNet
from tests.fixtures import wordnet


@pytest.fixture(scope="session")
def database(tmp_path_factory) -> WordNet:
    """The database of a few words that `wordnet` writes."""
    return WordNet(wordnet.write(tmp_path_factory.mktemp("wordnet")))


@pytest.fixture(scope="session")
def princeton(shared) -> pathlib.Path:
    """The folder of Princeton's WordNet 3.0; skips loudly without it."""
    folder = shared / "data" / "wordnet3.0"
    if not folder.is_dir():
        pytest.skip(f"no WordNet at {folder}")
    return folder
