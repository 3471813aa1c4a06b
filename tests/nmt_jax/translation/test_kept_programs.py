"""Programs that are kept on disk compute the same, and are used only for what they were made from."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax import platforms
from nmt_jax.decoding.method import Search
from nmt_jax.models.transformer import Model
from nmt_jax.translation import kept_programs
from nmt_jax.translation.kept_programs import KeptPrograms, description
from tests.conftest import ROOT
from tests.test_imports import Modules


@pytest.fixture
def folder(tmp_path):
    """The folder of kept programs."""
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    yield tmp_path / "programs"
    jax.config.update("jax_compilation_cache_dir", before)


def function(arrays, unused, scale):
    """A product that is large enough for rounding to show."""
    return (jnp.sin(arrays["x"]) @ arrays["y"] * scale,)


ARGUMENTS = {"x": jnp.arange(64.0).reshape(8, 8), "y": jnp.ones((8, 2))}, jnp.zeros(3)


def traced(*found, **options):
    raise AssertionError("traced")


def test_a_kept_program_is_not_traced_and_has_the_same_outputs(folder):
    made = KeptPrograms(function, "definition")(*ARGUMENTS, scale=3.0)
    (file,) = folder.iterdir()
    kept = KeptPrograms(traced, "definition")(*ARGUMENTS, scale=3.0)
    options = platforms.row_by_row_options()  # other options may add in another order, which depends on the processor
    expected = jax.jit(function, static_argnames="scale", compiler_options=options)(*ARGUMENTS, scale=3.0)
    for found in (made, kept):
        np.testing.assert_array_equal(found[0], expected[0])
    assert list(folder.iterdir()) == [file]


def test_a_program_of_the_jax_cache_is_not_kept_in_its_place(folder):
    """JAX reads programs from its cache in a form that cannot be written again."""
    for _ in range(2):
        first = KeptPrograms(function, "definition")(*ARGUMENTS, scale=5.0)
        second = KeptPrograms(traced, "definition")(*ARGUMENTS, scale=5.0)
        np.testing.assert_array_equal(first[0], second[0])
        (file,) = folder.iterdir()
        file.unlink()


@pytest.mark.parametrize("changed", ["definition", "shape", "type", "option", "code", "version", "flags", "processor"])
def test_a_program_of_anything_else_is_not_used(changed, folder, monkeypatch):
    KeptPrograms(function, "definition")(*ARGUMENTS, scale=3.0)
    x, unused = ARGUMENTS[0]["x"], ARGUMENTS[1]
    if changed == "shape":
        x = x[:4]
    if changed == "type":
        unused = unused.astype(jnp.int32)
    if changed == "code":
        monkeypatch.setattr(kept_programs, "code", lambda: "other")
    if changed == "version":
        monkeypatch.setattr("importlib.metadata.version", lambda name: "0")
    if changed == "flags":
        monkeypatch.setenv("XLA_FLAGS", "")
    if changed == "processor":
        monkeypatch.setattr(kept_programs, "_processor", lambda: ["other"])
    definition, scale = ("other" if changed == "definition" else "definition"), (4.0 if changed == "option" else 3.0)
    with pytest.raises(AssertionError, match="traced"):
        KeptPrograms(traced, definition)(ARGUMENTS[0] | {"x": x}, unused, scale=scale)


@pytest.mark.parametrize("damage", [b"", b"{}\n", None])
def test_a_damaged_program_is_one_warning_and_is_compiled_again(damage, folder):
    KeptPrograms(function, "definition")(*ARGUMENTS, scale=3.0)
    (file,) = folder.iterdir()
    content = file.read_bytes()
    file.write_bytes(content[:-9] + b"x" + content[-8:] if damage is None else damage)
    with pytest.warns(UserWarning, match="damaged, and made again") as warned:
        found = KeptPrograms(function, "definition")(*ARGUMENTS, scale=3.0)
    assert len(warned) == 1
    assert found[0].shape == (8, 2)
    assert KeptPrograms(traced, "definition")(*ARGUMENTS, scale=3.0)[0].shape == (8, 2)


def test_models_and_searches_are_described_by_all_their_settings():
    sizes = {"source_vocab_size": 9, "target_vocab_size": 9}
    values = [Search(), Search(beam_size=3), Model(**sizes), Model(**sizes, num_heads=2), (1, "1"), ("1", 1), 1, 1.0]
    found = [description(value) for value in values]
    assert None not in found
    assert len(set(map(str, found))) == len(values)
    assert found[2] == description(Model(**sizes))
    assert description((1, np.zeros(2))) is None  # an array's repr is not its content


def test_all_code_that_decides_a_program_is_in_its_key():
    modules = Modules(ROOT)
    seen, found = set(), {"nmt_jax.translation.programs", *(name for name in modules.paths if "nmt_jax.models" in name)}
    while found - seen:
        seen |= (now := found - seen)
        found = {target for name in now for target in modules.targets(name)}
    hashed = set(kept_programs.modules())
    apart = {name for name in seen if modules.paths[name] not in hashed and modules.paths[name].name != "__init__.py"}
    assert {
        name for name in apart if not name.startswith(("nmt_jax.storage", "nmt_jax.errors", "nmt_jax.data.lines"))
    } == set()
