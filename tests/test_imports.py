"""Imports follow one order of layers and form no cycle, imports inside functions included."""

import ast
import itertools
import pathlib
from collections.abc import Iterator

import pytest

from nmt_jax.__main__ import VERBS
from tests.conftest import ROOT

# From top to bottom. A module may import modules of its own layer and of layers below it, nothing else of the project.
# A name stands for the module or the package and all that is in it; the longest name that fits holds.
LAYERS = (
    ("nmt_jax.__main__", "nmt_jax.api", "nmt_jax.reference"),
    ("nmt_jax.commands",),
    ("nmt_jax.serving",),
    ("nmt_jax.reporting",),
    ("nmt_jax.sweeps", "nmt_jax.launchers", "nmt_jax.planning"),
    ("nmt_jax.training",),
    ("nmt_jax.tasks.registry",),
    ("nmt_jax.tasks",),
    ("nmt_jax.losses",),
    ("nmt_jax.augmentation", "nmt_jax.phrases"),
    ("nmt_jax.translation", "nmt_jax.alignment"),
    ("nmt_jax.export", "nmt_jax.judging", "nmt_jax.retrieval", "nmt_jax.summarization"),
    ("nmt_jax.decoding", "nmt_jax.pretrained"),
    ("nmt_jax.models", "nmt_jax.checkpoints", "nmt_jax.ngram"),
    ("nmt_jax.models.layers",),
    ("nmt_jax.distributed",),
    ("nmt_jax.data",),
    ("nmt_jax.planning.roofline",),  # printed by training
    ("nmt_jax.planning.accelerators", "nmt_jax.planning.program_text", "nmt_jax.planning.arithmetic"),
    ("nmt_jax.planning.replica_groups",),
    ("nmt_jax",),
    ("nmt_jax.schema",),
    ("metrics_jax",),  # the package and its registry
    ("metrics_jax.judging",),
    ("metrics_jax.meteor", "metrics_jax.embedding", "metrics_jax.prediction"),
    ("metrics_jax.surface",),
    tuple(f"metrics_jax.{name}" for name in ("api", "significance", "signature")),
)
LEVEL = {name: level for level, layer in enumerate(LAYERS) for name in layer}

# The public name of the package, imported on first use.
PUBLIC = ("nmt_jax", "nmt_jax.api")

# Packages that some modules must not import, late imports included.
WITHOUT = {
    "": ("tensorflow", "torch", "pickle", "configs", "tests", "benchmarks"),
    "nmt_jax.models": ("ml_collections", "metrics_jax"),
    "nmt_jax.decoding": ("flax",),
    "nmt_jax.data": ("flax",),
    "nmt_jax.sweeps": ("jax",),
    "nmt_jax.launchers": ("jax",),
    "nmt_jax.reporting.plots": ("jax", "flax"),
}


class Modules:
    """The modules below a root folder, and what each imports."""

    def __init__(self, root: pathlib.Path):
        paths = sorted([*root.glob("nmt_jax/**/*.py"), *root.glob("metrics_jax/**/*.py")])
        self.paths = {
            ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path for path in paths
        }
        self.known: dict[str, set[str]] = {}

    def imports(self, module: str) -> set[str]:
        """Full names of all that a module imports, at its top, in functions, for types, or by `import_module`."""
        if module not in self.known:  # parsing takes long
            self.known[module] = self._parsed(module)
        return self.known[module]

    def _parsed(self, module: str) -> set[str]:
        path = self.paths[module]
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        found = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
                name = ".".join([*above, *filter(None, [node.module])])
                found |= {f"{name}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
                found |= self._dynamic(node.args[0])
        return found

    def _dynamic(self, argument: ast.expr) -> Iterator[str]:
        """All modules that `import_module(argument)` may mean: of f"a.b.{name}" those directly in the package a.b."""
        first = argument.values[0] if isinstance(argument, ast.JoinedStr) else argument
        if not isinstance(first, ast.Constant):
            return set()
        if first is argument:
            return {first.value}
        return {name for name in self.paths if name.startswith(first.value)}

    def targets(self, module: str) -> set[str]:
        """The modules of the project that a module imports."""
        found = set()
        for name in self.imports(module):
            while name and name not in self.paths:
                name = name.rpartition(".")[0]
            found |= {name} - {"", module}
        return found


def level_of(module: str) -> int:
    """The layer of a module, by the longest name that fits."""
    parts = module.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next(LEVEL[name] for name in names if name in LEVEL)


def wrong_imports(modules: Modules) -> list[str]:
    """Every import of a layer above, and every package that a module must not import."""
    wrong = [
        f"{module} imports {target}"
        for module in modules.paths
        for target in sorted(modules.targets(module))
        if level_of(target) < level_of(module) and (module, target) != PUBLIC
    ]
    for (room, packages), module in itertools.product(WITHOUT.items(), modules.paths):
        if f"{module}.".startswith(f"{room}." if room else ""):
            roots = {name.partition(".")[0] for name in modules.imports(module)}
            wrong += [f"{module} imports {package}" for package in packages if package in roots]
    return wrong


def a_cycle(modules: Modules) -> list[str]:
    """The modules of one cycle of imports, in order; empty if there is none."""
    done: set[str] = set()

    def visit(module: str, path: list[str]) -> list[str]:
        if module in path:
            return path[path.index(module) :]
        if module in done:
            return []
        for target in sorted(modules.targets(module)):
            if cycle := visit(target, [*path, module]):
                return cycle
        done.add(module)
        return []

    return next(filter(None, (visit(module, []) for module in modules.paths)), [])


@pytest.fixture(scope="module")
def modules() -> Modules:
    return Modules(ROOT)


def test_imports_follow_the_order_of_layers(modules):
    assert wrong_imports(modules) == []


def test_no_module_imports_itself_through_others(modules):
    assert a_cycle(modules) == []


def test_every_layer_exists(modules):
    assert [name for name in LEVEL if name not in modules.paths] == []


def test_no_verb_imports_a_verb(modules):
    verbs = {f"nmt_jax.commands.{verb}" for verb in VERBS}
    assert verbs <= set(modules.paths)
    assert [(verb, target) for verb in sorted(verbs) for target in modules.targets(verb) & verbs] == []


def test_configs_import_no_code_but_the_schema():
    for path in ROOT.glob("configs/*.py"):
        names = {f"{name}." for name in Modules.imports(_only(path), path.stem)}
        ours = {name for name in names if name.partition(".")[0] in ("nmt_jax", "metrics_jax", "jax")}
        assert all(name.startswith("nmt_jax.schema.") for name in ours), path


def _only(path: pathlib.Path) -> Modules:
    modules = Modules(path.parent)
    modules.paths[path.stem] = path
    return modules


@pytest.mark.parametrize(
    ("module", "line", "told"),
    [
        ("nmt_jax/models/layers/wrong.py", "from nmt_jax.commands import train", "nmt_jax.commands.train"),
        ("nmt_jax/models/layers/wrong.py", "from ...commands import train", "nmt_jax.commands.train"),
        ("nmt_jax/models/layers/wrong.py", "import nmt_jax.commands.train", "nmt_jax.commands.train"),
        ("nmt_jax/tasks/wrong.py", 'importlib.import_module(f"nmt_jax.tasks.{name}")', "nmt_jax.tasks.registry"),
        ("metrics_jax/surface/wrong.py", "from nmt_jax.errors import UserError", "nmt_jax.errors"),
        ("metrics_jax/surface/wrong.py", "import torch", "torch"),
    ],
)
def test_a_wrong_import_is_seen(module, line, told, tmp_path):
    for name in ("nmt_jax/commands/train.py", "nmt_jax/tasks/registry.py", "nmt_jax/errors.py", module):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    (tmp_path / module).write_text(f"def f():\n    {line}\n")
    wrong = module.removesuffix(".py").replace("/", ".")
    assert wrong_imports(Modules(tmp_path)) == [f"{wrong} imports {told}"]


def test_a_cycle_is_seen(tmp_path):
    for name, other in (("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")):
        path = tmp_path / "nmt_jax" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"def f():\n    from nmt_jax import {other}\n")
    (tmp_path / "nmt_jax" / "__init__.py").write_text("")
    assert a_cycle(Modules(tmp_path)) == ["nmt_jax.a", "nmt_jax.b", "nmt_jax.c"]


def test_no_module_is_named_for_nothing_in_particular(modules):
    assert [name for name in modules.paths if name.rpartition(".")[2] in ("utils", "util", "helpers", "misc")] == []
