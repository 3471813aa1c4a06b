import pathlib

import pytest

from tests.fuzz.workplace import prepare


@pytest.fixture(scope="session")
def workplace(tmp_path_factory) -> pathlib.Path:
    """Valid inputs and trained workdirs for all verbs."""
    folder = tmp_path_factory.mktemp("workplace")
    prepare(folder)
    return folder
