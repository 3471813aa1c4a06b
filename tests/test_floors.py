"""The floors of the house: an import points down, never up."""

import ast
import importlib.util
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parent.parent
SOURCES = sorted([*ROOT.glob("nmt_jax/**/*.py"), *ROOT.glob("metrics_jax/**/*.py"), *ROOT.glob("configs/*.py")])
VERBS = (
    *(
        "train",
        "translate",
        "mbr",
        "generate",
        "perplexity",
        "classify",
        "score",
        "judge",
        "calibrate",
        "corpus",
        "plot",
    ),
    *("sweep", "report", "export", "neighbours", "tag", "answer", "perturb", "launch", "summarize", "__main__"),
)

# What the modules of a room may not import. A room is a folder, or a file of nmt_jax.
FORBIDDEN = {
    "metrics_jax": ("nmt_jax",),
    "nmt_jax.models": (
        *(
            "nmt_jax.tasks",
            "nmt_jax.config",
            "nmt_jax.workdir",
            "nmt_jax.training.loop",
            "nmt_jax.decoding",
            "nmt_jax.losses.cross_entropy",
        ),
        *("ml_collections", "metrics_jax"),
    ),
    "nmt_jax.decoding": (
        "nmt_jax.models",
        "nmt_jax.tasks",
        "nmt_jax.training.loop",
        "nmt_jax.config",
        "nmt_jax.data",
        "flax",
    ),
    "nmt_jax.data": ("nmt_jax.models", "nmt_jax.tasks", "nmt_jax.training.loop", "nmt_jax.decoding", "flax"),
    "nmt_jax.tasks": ("nmt_jax.training.loop", *(f"nmt_jax.{verb}" for verb in VERBS)),
    "nmt_jax.pictures": (
        *("nmt_jax.models", "nmt_jax.decoding", "nmt_jax.tasks", "nmt_jax.training.loop", "jax", "flax"),
        *(f"nmt_jax.{verb}" for verb in VERBS),
    ),
    "nmt_jax.pretrained": ("nmt_jax.tasks", "nmt_jax.training.loop", "nmt_jax.decoding", "nmt_jax.config"),
    "nmt_jax.formats": ("nmt_jax.tasks", "nmt_jax.training.loop", "nmt_jax.decoding", "nmt_jax.config"),
    "nmt_jax.reports": ("nmt_jax.models", "nmt_jax.decoding", "nmt_jax.training.loop"),
    "nmt_jax.distributed": (
        "nmt_jax.tasks",
        "nmt_jax.training.loop",
        "nmt_jax.models",
        "nmt_jax.data",
        "nmt_jax.config",
    ),
    "nmt_jax.sweeps": ("jax", "nmt_jax.tasks", "nmt_jax.training.loop", "nmt_jax.models", "nmt_jax.commands.sweep"),
    "nmt_jax.launchers": (
        "jax",
        "nmt_jax.tasks",
        "nmt_jax.training.loop",
        "nmt_jax.models",
        "nmt_jax.commands.sweep",
        "nmt_jax.commands.train",
    ),
    "nmt_jax.losses.cross_entropy": ("nmt_jax.tasks", "nmt_jax.training.loop", "nmt_jax.config"),
    "nmt_jax.training.loop": ("nmt_jax.models", "nmt_jax.decoding", *(f"nmt_jax.{verb}" for verb in VERBS)),
    "nmt_jax.training.train_step": (
        "nmt_jax.models",
        "nmt_jax.tasks.translate",
        "nmt_jax.training.loop",
        "nmt_jax.config",
    ),
    "nmt_jax.commands.score": ("jax", "flax", "nmt_jax.models", "nmt_jax.tasks", "nmt_jax.training.loop"),
    "configs": ("nmt_jax", "metrics_jax", "jax"),
    "": ("tensorflow", "torch", "pickle", "configs", "tests"),
}


def _module(path: pathlib.Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _imports(path: pathlib.Path) -> set[str]:
    """Every module that a file imports, at its top or inside a function, as a full dotted name."""
    package = _module(path) if path.name == "__init__.py" else _module(path).rpartition(".")[0]
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            name = (
                importlib.util.resolve_name("." * node.level + (node.module or ""), package)
                if node.level
                else node.module
            )
            found |= {f"{name}.{alias.name}" for alias in node.names}  # `from nmt_jax import loop` too
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            first = node.args[0]
            parts = first.values if isinstance(first, ast.JoinedStr) else [first]
            found |= {parts[0].value} if isinstance(parts[0], ast.Constant) else set()
    return found


def _within(name: str, room: str) -> bool:
    return not room or name == room or name.startswith(room + ".")


@pytest.mark.parametrize("path", SOURCES, ids=_module)
def test_imports_point_down(path):
    module = _module(path)
    for room, forbidden in FORBIDDEN.items():
        if _within(module, room):
            wrong = {name for name in _imports(path) for other in forbidden if _within(name, other)}
            assert not wrong, f"{module} imports {', '.join(sorted(wrong))}, which {room or 'every module'} must not"


def test_every_room_of_the_table_exists():
    modules = {_module(path) for path in SOURCES}
    for room in FORBIDDEN:
        assert any(_within(module, room) for module in modules), room


def test_a_wrong_import_is_seen(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.test_floors.ROOT", tmp_path)
    path = tmp_path / "nmt_jax" / "models" / "wrong.py"
    path.parent.mkdir(parents=True)
    for line in (
        "import nmt_jax.training.loop",
        "from nmt_jax import loop",
        "from .. import loop",
        "from ..loop import run",
    ):
        path.write_text(f"def f():\n    {line}\n")
        with pytest.raises(AssertionError, match=r"nmt_jax\.models\.wrong imports nmt_jax\.loop"):
            test_imports_point_down(path)


@pytest.mark.parametrize("path", SOURCES, ids=_module)
def test_no_drawers(path):
    drawers = ("utils", "util", "helpers", "misc", "shared")
    assert path.stem not in drawers
    if not path.is_relative_to(ROOT / "configs"):
        assert path.stem != "common"
