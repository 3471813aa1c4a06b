"""The scripts in benchmarks/ import names that exist, also those imported in functions."""

import ast
import importlib
import pkgutil

import pytest

from tests.conftest import ROOT

SCRIPTS = sorted((ROOT / "benchmarks").glob("*.py"))
OURS = ("nmt_jax", "metrics_jax", "benchmarks")


def missing(text: str) -> list[str]:
    """The imported names of this project that do not exist."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] in OURS:
            module = importlib.import_module(node.module)
            modules = {one.name for one in pkgutil.iter_modules(getattr(module, "__path__", ()))}
            names = (alias.name for alias in node.names if alias.name not in modules)
            found += [f"{node.module}.{name}" for name in names if not hasattr(module, name)]
    return found


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_imports_names_that_exist(script):
    assert missing(script.read_text(encoding="utf-8")) == []


def test_a_wrong_name_is_seen():
    text = "def main():\n    from nmt_jax.training.train_step import make_train_step, no_such\n"
    assert missing(text) == ["nmt_jax.training.train_step.no_such"]
