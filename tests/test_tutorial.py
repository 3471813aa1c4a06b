"""The tutorial for contributors can be followed literally."""

import os
import shlex
import shutil
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.fixtures import tutorial

SECTIONS = tutorial.read(ROOT / "docs" / "contributing" / "tutorial.md")
COPIED = ("nmt_jax", "metrics_jax", "configs", "tests", "docs", "pyproject.toml", "CHANGELOG.md")


@pytest.fixture
def clone(tmp_path):
    """A copy of the repository."""
    for name in COPIED:
        source = ROOT / name
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, tmp_path / name, ignore=ignored) if source.is_dir() else shutil.copy(source, tmp_path)
    return tmp_path


def test_no_section_touches_more_than_four_files_beside_its_test():
    titles = [section.title for section in SECTIONS if section.changes]
    assert titles == ["Add a metric", "Add an attention score", "Add a task", "Add a config"]
    for section in SECTIONS:
        files = {change.path for change in section.changes if not change.path.startswith("tests/")}
        assert len(files) <= 4, section.title


def test_all_changes_can_be_made(clone):
    for change in (change for section in SECTIONS for change in section.changes):
        tutorial.apply(change, clone)
    for path in {change.path for section in SECTIONS for change in section.changes if change.path.endswith(".py")}:
        compile((clone / path).read_text(encoding="utf-8"), path, "exec")


@pytest.mark.slow
def test_the_commands_of_the_tutorial_succeed(clone):
    environment = os.environ | {"PYTHONPATH": str(clone), "NMT_JAX_CACHE": str(clone / "cache")}
    for section in SECTIONS:
        for change in section.changes:
            tutorial.apply(change, clone)
        for line in section.commands:
            words = [sys.executable if word == "python" else word for word in shlex.split(line, comments=True)]
            if words[0] == "nmt-jax":
                words[:1] = [sys.executable, "-m", "nmt_jax"]
            done = subprocess.run(words, cwd=clone, env=environment, capture_output=True, text=True, timeout=600)
            assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
