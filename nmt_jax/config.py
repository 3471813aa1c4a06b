"""Experiment pages in, resolved configs out: every key is known, typed and written down.

A config is plain data. `configs/common.py` names every key, a page changes values, the command line overrides a few;
nothing is looked up with a default far away. What was resolved is saved as `config.json` beside the run.
"""

import dataclasses
import difflib
import importlib.util
import json
import os
import pathlib
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from ml_collections import ConfigDict

from nmt_jax.errors import UserError

# What the parameters of a started workdir were made for.
SAME_MODEL = ("task", "model_name", "model", "vocab", "encoder", "encoders")
ABSENT = "(absent)"
Model = TypeVar("Model")


def load(spec: str, overrides: Mapping[str, str] | None = None) -> ConfigDict:
    """Resolved, locked config of the page `spec` = `FILE.py[:ARGUMENT]`; `overrides` are like {"model.d_model": "512"}.

    ARGUMENT goes to the page's `get_config`; modules beside the page are importable while it loads. UserError for a
    missing or broken page, an argument or a key it does not know, and a value of the wrong type.
    """
    path, argument = _find_page(spec)

    def get_config(page: Any) -> Any:
        if not hasattr(page, "get_config"):
            raise UserError(f"{path}: a config file defines get_config() (or get_config(arg)); this one does not")
        return page.get_config(argument) if argument else page.get_config()

    config = _run_page(path, get_config)
    if not isinstance(config, ConfigDict):
        raise UserError(f"{path}: get_config() returns a {type(config).__name__}, not an ml_collections.ConfigDict")
    return override(config, overrides or {})


def load_sweep(spec: str) -> list[dict[str, str]]:
    """The points that the page's `sweep(add)` adds: of each the keys it changes, as `load` takes them.

    UserError for a page without a sweep, a point that is no dict, or one that stands there twice.
    """
    path, _ = _find_page(spec)
    points: list[dict[str, str]] = []

    def add(point: Mapping[str, Any]) -> None:
        changes = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in point.items()}
        if changes in points:
            raise ValueError(f"the sweep has this point twice: {changes}")
        points.append(changes)

    def sweep(page: Any) -> None:
        if not hasattr(page, "sweep"):
            raise UserError(f'{path}: no sweep: define sweep(add), which calls add({{"model.d_model": 512}}) per point')
        page.sweep(add)

    _run_page(path, sweep)
    return points


def override(config: ConfigDict, overrides: Mapping[str, str]) -> ConfigDict:
    """A locked copy of `config` with `overrides`, each text read as the type its key has, or UserError."""
    changed = ConfigDict(config)
    for key, text in overrides.items():
        _override(changed, key, text)
    return changed.copy_and_resolve_references().lock()


def split_override(text: str) -> tuple[str, str]:
    """`model.d_model=512` -> its key and its value."""
    key, equals, value = text.partition("=")
    if not equals:
        raise UserError(f"--override={text}: write --config.{key}=VALUE")
    return key, value


def save(config: ConfigDict, path: pathlib.Path) -> None:
    """Write `config` as JSON to `path`, whole or not at all."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(config.to_dict(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(partial, path)


def read(path: pathlib.Path) -> ConfigDict:
    """The locked config that `save` wrote to `path`; UserError where there is none or it is not JSON."""
    try:
        return ConfigDict(json.loads(path.read_text(encoding="utf-8"))).lock()
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (ValueError, TypeError) as error:
        line = getattr(error, "lineno", 1)
        raise UserError(f"{path}:{line}: not a saved config ({error}); restore the file from a copy") from None


def flatten(config: ConfigDict) -> dict[str, Any]:
    """{"model.d_model": 512, …}: every leaf of `config` by its dotted key."""
    return dict(_leaves(config, ""))


def nearest_key(key: str, known: Iterable[str]) -> str:
    """`; did you mean …?` for a misspelt dotted `key`, the empty string where nothing known is near."""
    known = list(known)
    tails = [name for name in known if name.endswith("." + key)]  # the group was forgotten: steps for train.steps
    return f"; did you mean {tails[0]}?" if tails else _did_you_mean(key, known)


def check_same_model(old: ConfigDict, new: ConfigDict) -> None:
    """UserError naming the keys of task, model and vocabulary in which `new` differs from a workdir's `old` config."""
    before, after = flatten(old), flatten(new)
    keys = [key for key in {**before, **after} if key.partition(".")[0] in SAME_MODEL]
    differing = [
        f"{key} was {before.get(key, ABSENT)!r}, now {after.get(key, ABSENT)!r}"
        for key in keys
        if before.get(key, ABSENT) != after.get(key, ABSENT)
    ]
    if differing:
        raise UserError(
            f"this workdir holds another model: {'; '.join(differing)}; give the old values back or use a new --workdir"
        )


def build_model(model: Callable[..., Model], fields: Mapping[str, Any], **sizes: int) -> Model:
    """`model(**sizes, **fields)`; UserError naming the key of `config.model` that the linen module refuses."""
    known = [field.name for field in dataclasses.fields(model) if field.name not in sizes]  # type: ignore[arg-type]
    for name in fields:
        if name not in known:
            raise UserError(
                f"unknown config key 'model.{name}'{_did_you_mean('model.' + name, map('model.{}'.format, known))}"
            )
    try:
        return model(**sizes, **fields)
    except (TypeError, ValueError) as error:
        raise UserError(f"config.model: {error}") from None


def _find_page(spec: str) -> tuple[pathlib.Path, str]:
    """`FILE.py[:ARGUMENT]` -> the file and the argument."""
    file, _, argument = spec.partition(".py:")
    path = pathlib.Path(file + ".py" if argument else spec.removesuffix(":"))
    if not path.is_file():
        raise UserError(f"{path}: no such config file{_did_you_mean(str(path), _pages_near(path))}")
    return path, argument


def _run_page(path: pathlib.Path, call: Callable[[Any], Any]) -> Any:
    """What `call` makes of the page's module; mistakes become one line with the page's own line number."""
    with _importable(path.parent):
        try:
            page = importlib.util.spec_from_file_location(path.stem, path)
            assert page is not None
            assert page.loader is not None
            module = importlib.util.module_from_spec(page)
            page.loader.exec_module(module)
            return call(module)
        except UserError:
            raise
        except Exception as error:
            raise UserError(f"{path}:{_line_in(path, error)}: {_explain(error)}") from None


@contextmanager
def _importable(folder: pathlib.Path) -> Iterator[None]:
    """`import common` finds the page's neighbour, and a page of another folder loaded later finds its own."""
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
    """The line of the page on which `error` arose."""
    if isinstance(error, SyntaxError) and error.lineno:
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if pathlib.Path(frame.filename) == path.absolute()]
    return (lines[-1] if lines else None) or 1


def _explain(error: Exception) -> str:
    """One line; of the dump with which ml_collections answers an unknown key only the nearest key helps."""
    text = str(error)
    if isinstance(error, AttributeError | KeyError) and 'Key "' in text:
        key = text.split('"')[1]
        return f"unknown config key {key!r}" + (
            f"; did you mean {text.rsplit('Did you mean ')[-1].split(chr(34))[1]!r}?" if "Did you mean" in text else ""
        )
    return text if isinstance(error, ValueError) and text else f"{type(error).__name__}: {text}".splitlines()[0]


def _override(config: ConfigDict, key: str, text: str) -> None:
    """Set the leaf `key` of `config` to `text`, read as the type the leaf has."""
    group, _, name = key.rpartition(".")
    node: Any = config
    for part in filter(None, group.split(".")):
        node = node[part] if isinstance(node, ConfigDict) and part in node else None
    if not isinstance(node, ConfigDict) or name not in node:
        raise UserError(f"unknown config key {key!r}{nearest_key(key, flatten(config))}")
    if isinstance(node[name], ConfigDict):
        keys = ", ".join(f"--config.{key}.{child}" for child in node[name])
        raise UserError(f"config.{key} is a group of keys, set one of them: {keys}")
    node[name] = _parse(key, node[name], text)


def _parse(key: str, old: Any, text: str) -> Any:
    """`text` as a value of the type of `old`: true/false, an integer, a number, a string, or a JSON list."""
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
        kinds = {
            bool: "true or false",
            int: "a whole number",
            float: "a number",
            list: "a JSON list",
            tuple: "a JSON list",
        }
        raise UserError(f"--config.{key} takes {kinds[type(old)]} (now {old!r}), not {text!r}") from None


def _leaves(node: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """Dotted key and value of everything below `node`."""
    if isinstance(node, ConfigDict):
        for name, child in node.items():
            yield from _leaves(child, f"{prefix}.{name}" if prefix else name)
    else:
        yield prefix, node


def _pages_near(path: pathlib.Path) -> list[str]:
    """The other config files of the folder of `path`."""
    return [str(page) for page in sorted(path.parent.glob("*.py"))] if path.parent.is_dir() else []


def _did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean …?` naming the nearest of `known`, or the empty string."""
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""
