"""Programs for processors are compiled without the level that takes longest, unless the user has chosen one."""

import os
import subprocess
import sys

import jax
import pytest

from nmt_jax import compilation

SCRIPT = """
import jax
from nmt_jax import compilation
compilation.configure()
print(jax.jit(lambda x: x + 1)(1.0))
"""


@pytest.mark.parametrize(("chosen", "level"), [("", 2), ("--xla_backend_optimization_level=1", 1)])
def test_programs_are_compiled_with_that_level(tmp_path, chosen, level):
    environment = os.environ | {
        "XLA_FLAGS": f"{chosen} --xla_dump_to={tmp_path}",
        "JAX_PLATFORMS": "cpu",
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache"),
    }
    finished = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
    )
    assert finished.stdout == "2.0\n"
    options = [path.read_text() for path in tmp_path.glob("*lambda*debug_options")]
    assert len(options) == 1
    assert f"xla_backend_optimization_level: {level}\n" in options[0]


@pytest.mark.parametrize(
    ("platforms", "plugin", "expected"),
    [("cpu", "jax_plugins", True), ("cuda,cpu", "", False), (None, "jax_plugins", False), (None, "libtpu", False)],
)
def test_accelerators_are_left_alone(monkeypatch, platforms, plugin, expected):
    usual = jax.config.values["jax_platforms"]
    monkeypatch.setattr(compilation.importlib.util, "find_spec", lambda name: name == plugin or None)
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=somewhere")
    jax.config.update("jax_platforms", platforms)
    try:
        compilation.configure()
    finally:
        jax.config.update("jax_platforms", usual)
    assert os.environ["XLA_FLAGS"] == "--xla_dump_to=somewhere" + " --xla_backend_optimization_level=2" * expected
