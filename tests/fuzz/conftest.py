"""The workplace of the fuzzer, made once per test session."""

import pathlib

import pytest

from nmt_jax.__main__ import main
from tests.fuzz.workplace import prepare


@pytest.fixture(scope="session")
def workplace(tmp_path_factory) -> pathlib.Path:
    """Valid inputs of all verbs."""
    folder = tmp_path_factory.mktemp("workplace")
    prepare(folder)
    return folder


@pytest.fixture(scope="session")
def nmt_jax_once():
    """Run `nmt-jax` with arguments; it must succeed."""

    def run(*arguments: object) -> None:
        assert main([str(argument) for argument in arguments]) == 0

    return run
