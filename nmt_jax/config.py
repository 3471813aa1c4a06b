"""Loading, overriding, saving and comparing configs.

A config is plain data. `nmt_jax.schema` declares every key with its default and its range, a config file changes some
values, and the command line overrides a few; no code reads a key with a default of its own. The resolved config is
checked and saved as `config.json` in the workdir.
"""

import copy
import dataclasses
import importlib.util
import inspect
import json
import pathlib
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from ml_collections import ConfigDict

from nmt_jax import schema
from nmt_jax.errors import UserError, did_you_mean
from nmt_jax.schema.models import MODELS
from nmt_jax.storage.files import whole_file
from nmt_jax.storage.paths import local_path_of

# Top-level keys that must not change once a workdir has parameters, and keys of its inputs and its output layers.
SAME_MODEL = ("task", "model_name", "model", "vocab", "encoder", "encoders")
SAME_LAYERS = ("data.kind", "data.feature_width", "data.image_size", "data.patch_size", "data.mels", "loss.ctc")
# Except these, which choose how a model is computed: its parameters are the same.
SAME_PARAMETERS = ("model.remat", "model.scan_layers")
ABSENT = "(absent)"
Model = TypeVar("Model")


def load(spec: str, overrides: Mapping[str, str] | None = None) -> ConfigDict:
    """Returns the resolved, locked config of the config file `spec` = `FILE.py[:ARGUMENT]`.

    ARGUMENT is passed to `get_config` of the file. `overrides` maps dotted keys to text: {"model.d_model": "512"}.
    Modules in the folder of the file can be imported while it loads. Raises UserError if the file is missing or broken,
    if it rejects the argument, if a key is unknown, or if a value is invalid.
    """
    path, argument = _parse_spec(spec)

    def get_config(module: Any) -> Any:
        if not hasattr(module, "get_config"):
            raise UserError(f"{path}: the config file does not define get_config() or get_config(arg)")
        return module.get_config(argument) if argument else module.get_config()

    config = _run_file(path, get_config)
    if not isinstance(config, ConfigDict):
        raise UserError(f"{path}: get_config() returned {type(config).__name__}, not an ml_collections.ConfigDict")
    return override(config, overrides or {})


def load_sweep(spec: str) -> list[dict[str, str]]:
    """Returns the points of the sweep of a config file: for each, the keys it changes, as overrides for `load`.

    The file defines `sweep(add)`, or `sweep(add, arg)` to receive the ARGUMENT of `FILE.py[:ARGUMENT]`. Raises
    UserError if it defines neither, if a point is not a dict, or if a point occurs twice.
    """
    path, argument = _parse_spec(spec)
    points: list[dict[str, str]] = []

    def add(point: Mapping[str, Any]) -> None:
        changes = {key: format_value(value) for key, value in point.items()}
        if changes in points:
            raise ValueError(f"the sweep has this point twice: {changes}")
        points.append(changes)

    def sweep(module: Any) -> None:
        if not hasattr(module, "sweep"):
            example = 'add({"model.d_model": 512})'
            raise UserError(
                f"{path}: the config file has no sweep; define sweep(add), and call {example} for each point"
            )
        takes_argument = len(inspect.signature(module.sweep).parameters) > 1
        module.sweep(add, argument) if takes_argument else module.sweep(add)

    _run_file(path, sweep)
    return points


def override(config: ConfigDict, overrides: Mapping[str, str]) -> ConfigDict:
    """Returns a locked copy of `config` with `overrides`, each parsed as the type of its key; UserError if invalid."""
    changed = copy.deepcopy(config)
    _rename_values(changed)
    for key, text in overrides.items():
        _override(changed, key, text)
    changed = changed.copy_and_resolve_references()
    _rename_values(changed)
    check(changed.lock())
    return changed


def check(config: ConfigDict, file: pathlib.Path | None = None) -> None:
    """Raises UserError if the schema does not allow a value; file: of a saved config, which is named then."""
    if problem := schema.problem(config.to_dict(), trained=file is not None):
        raise UserError(f"{file}: {problem}" if file else problem)


def split_override(text: str) -> tuple[str, str]:
    """Splits `model.d_model=512` into key and value."""
    key, equals, value = text.partition("=")
    if not equals:
        raise UserError(f"--override={text}: expected KEY=VALUE (or use --config.KEY=VALUE)")
    return key, value


def format_value(value: Any) -> str:
    """Returns a value as text that `override` parses: booleans as `true` and `false`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def save(config: ConfigDict, path: pathlib.Path) -> None:
    """Writes `config` as JSON to `path`, atomically."""
    with whole_file(path) as file:
        file.write((json.dumps(config.to_dict(), indent=2, ensure_ascii=False) + "\n").encode())


def read(path: pathlib.Path) -> ConfigDict:
    """Returns the locked config that `save` wrote to `path`. Raises UserError if it is missing or not a config."""
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(tree, dict):
            raise TypeError("it is not a JSON object")
        config = ConfigDict(tree)
        _rename_values(config)
        return config.lock()
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        raise UserError(f"{path}:{line}: not a saved config ({error}); restore the file from a copy") from None


def flatten(config: ConfigDict) -> dict[str, Any]:
    """Returns every leaf of `config` by its dotted key: {"model.d_model": 512, …}."""
    return dict(_leaves(config, ""))


def suggest_key(key: str, known: Iterable[str]) -> str:
    """Returns `; did you mean …?` for a misspelled dotted `key`, or "" if no known key is similar."""
    known = list(known)
    tails = [name for name in known if name.endswith("." + key)]  # the group is missing: steps for train.steps
    return f"; did you mean {tails[0]}?" if tails else did_you_mean(key, known)


def defines_model(key: str) -> bool:
    """Returns whether the key must keep its value once a workdir has parameters."""
    return (key.partition(".")[0] in SAME_MODEL and key not in SAME_PARAMETERS) or key in SAME_LAYERS


def add_missing(config: ConfigDict) -> None:
    """Adds the keys that a valid config lacks, because an older version wrote it, with their defaults."""
    known = flatten(config)
    defaults = flatten(ConfigDict(schema.defaults(config.model_name, config.task)))
    with config.unlocked():
        for key, value in defaults.items():
            if key not in known:
                *parents, name = key.split(".")
                inner = config
                for parent in parents:
                    if parent not in inner:
                        inner[parent] = ConfigDict()
                    inner = inner[parent]
                inner[name] = value


def check_same_model(old: ConfigDict, new: ConfigDict) -> None:
    """Raises UserError if `new` differs from a workdir's `old` config in task, model or vocabulary; names the keys.

    A key that one of them lacks, because an older version wrote it, has its default.
    """
    defaults = flatten(ConfigDict(schema.defaults(new.model_name, new.task)))
    before, after = defaults | flatten(old), defaults | flatten(new)
    keys = [key for key in before | after if defines_model(key)]
    pairs = [(key, before.get(key, ABSENT), after.get(key, ABSENT)) for key in keys]
    differing = "; ".join(f"{key} was {value!r}, now {other!r}" for key, value, other in pairs if value != other)
    if differing:
        raise UserError(
            f"this workdir contains a different model: {differing}; restore these values or use a new --workdir"
        )


def build_model(model: Callable[..., Model], fields: Mapping[str, Any], **sizes: int) -> Model:
    """Returns `model(**sizes, **fields)`. Raises UserError naming the key of `config.model` that the module rejects."""
    known = [field.name for field in dataclasses.fields(model) if field.name not in sizes]  # type: ignore[arg-type]
    for name in fields:
        if name not in known:
            suggestion = did_you_mean(f"model.{name}", map("model.{}".format, known))
            raise UserError(f"unknown config key 'model.{name}'{suggestion}")
    try:
        return model(**sizes, **fields)
    except (TypeError, ValueError) as error:
        raise UserError(f"config.model: {error}") from None


def _parse_spec(spec: str) -> tuple[pathlib.Path, str]:
    """Splits `FILE.py[:ARGUMENT]` into path and argument. Raises UserError if there is no such file."""
    file, _, argument = spec.partition(".py:")
    path = local_path_of(file + ".py" if argument else spec.removesuffix(":"))
    if not path.is_file():
        siblings = sorted(path.parent.glob("*.py")) if path.parent.is_dir() else []
        raise UserError(f"{path}: no such config file{did_you_mean(str(path), map(str, siblings))}")
    return path, argument


def _run_file(path: pathlib.Path, call: Callable[[Any], Any]) -> Any:
    """Returns `call(module)` of a config file. Raises UserError with the line of the file that caused an exception."""
    with _importable(path.parent):
        try:
            spec = importlib.util.spec_from_file_location(path.stem, path)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return call(module)
        except UserError:
            raise
        except Exception as error:
            raise UserError(f"{path}:{_line_in(path, error)}: {_explain(error)}") from None


@contextmanager
def _importable(folder: pathlib.Path) -> Iterator[None]:
    """Makes modules in `folder` importable, and forgets them afterwards: other folders have their own `common`."""
    before = set(sys.modules)
    sys.path.insert(0, str(folder.resolve()))
    try:
        yield
    finally:
        sys.path.remove(str(folder.resolve()))
        for name in set(sys.modules) - before:
            origin = getattr(sys.modules[name], "__file__", None)
            if origin and pathlib.Path(origin).parent == folder.resolve():
                del sys.modules[name]


def _line_in(path: pathlib.Path, error: Exception) -> int:
    """Returns the line of the config file in which `error` was raised."""
    if isinstance(error, SyntaxError) and error.lineno:
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if pathlib.Path(frame.filename) == path.absolute()]
    return (lines[-1] if lines else None) or 1


def _explain(error: Exception) -> str:
    """Returns one line about `error`; ml_collections reports an unknown key by printing the whole config."""
    text = str(error)
    if isinstance(error, AttributeError | KeyError) and 'Key "' in text:
        key = text.split('"')[1]
        _, found, suggestion = text.rpartition("Did you mean ")
        return f"unknown config key {key!r}" + (f"; did you mean {suggestion.split(chr(34))[1]!r}?" if found else "")
    return text if isinstance(error, ValueError) and text else f"{type(error).__name__}: {text}".splitlines()[0]


def _tasks_with(key: str, config: ConfigDict) -> str:
    """Returns a remark that other tasks have this key, or "" if none has."""
    task, model_name = config.get("task"), config.get("model_name")
    if task not in schema.TASKS or model_name not in MODELS:
        return ""
    others = [other for other in schema.TASKS if key in schema.schema(model_name, other)]
    return f": task {task!r} does not have it, only {', '.join(others)}" if others else ""


def _override(config: ConfigDict, key: str, text: str) -> None:
    """Sets the leaf `key` of `config` to `text`, parsed as the type of the leaf."""
    group, _, name = key.rpartition(".")
    node: Any = config
    for part in filter(None, group.split(".")):
        node = node[part] if isinstance(node, ConfigDict) and part in node else None
    if not isinstance(node, ConfigDict) or name not in node:
        raise UserError(f"unknown config key {key!r}{_tasks_with(key, config) or suggest_key(key, flatten(config))}")
    if isinstance(node[name], ConfigDict):
        keys = ", ".join(f"--config.{key}.{child}" for child in node[name])
        raise UserError(f"config.{key} is a group of keys; set one of them: {keys}")
    node[name] = _parse(key, node[name], text)


def _rename_values(config: ConfigDict) -> None:
    """Replaces values that an older version had by what they are called now."""
    for key, value in schema.renamed(config.to_dict()).items():
        group, _, name = key.rpartition(".")
        node: Any = config
        for part in group.split("."):
            node = node[part]
        with node.ignore_type():
            node[name] = value


def _parse(key: str, old: Any, text: str) -> Any:
    """Parses `text` as the type of `old`: true/false, an integer, a number, a string, or a JSON list."""
    try:
        if isinstance(old, bool):
            return {"true": True, "false": False}[text.lower()]
        if isinstance(old, int | float):
            return type(old)(text)
        if isinstance(old, list | tuple):
            values = json.loads(text)
            return type(old)(values if isinstance(values, list) else [values])
        return text
    except (KeyError, ValueError):
        kinds = {bool: "true or false", int: "an integer", float: "a number", list: "a JSON list", tuple: "a JSON list"}
        raise UserError(f"--config.{key} must be {kinds[type(old)]} (it is {old!r} now), not {text!r}") from None


def _leaves(node: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """Yields the dotted key and the value of every leaf of `node`."""
    if isinstance(node, ConfigDict):
        for name, child in node.items():
            yield from _leaves(child, f"{prefix}.{name}" if prefix else name)
    else:
        yield prefix, node
