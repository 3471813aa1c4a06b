"""Fixtures: WordNet databases."""

import pathlib

import pytest

from metrics_jax.surface.wordnet import WordNet
from tests.fixtures import wordnet


@pytest.fixture(scope="session")
def database(tmp_path_factory) -> WordNet:
    """A database with the few words of `wordnet.write`."""
    return WordNet(wordnet.write(tmp_path_factory.mktemp("wordnet")))


@pytest.fixture(scope="session")
def princeton(shared) -> pathlib.Path:
    """The folder of Princeton's WordNet 3.0; skips with a message without it."""
    folder = shared / "data" / "wordnet3.0"
    if not folder.is_dir():
        pytest.skip(f"no WordNet at {folder}")
    return folder
