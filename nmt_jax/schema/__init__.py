"""The keys of a config: their defaults, types, ranges and meanings, and what is wrong with a given config.

The declarations are in `run`, `models` and `tasks`; rules about several keys are in `rules`. Everything here is plain
data, so that a config can be checked before anything else is loaded.
"""

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from nmt_jax.schema.key import Key
from nmt_jax.schema.models import MODELS
from nmt_jax.schema.phrase import NAME as PHRASE
from nmt_jax.schema.phrase import PHRASE_KEYS
from nmt_jax.schema.rules import RULES
from nmt_jax.schema.run import RUN, TOP
from nmt_jax.schema.tasks import TASKS as NEURAL_TASKS

TASKS = (*NEURAL_TASKS, PHRASE)
REQUIRED = ("model", "optimizer", "train", "data")  # groups that the configs of all versions have
MISSING = "config.{} is missing: not the config of an experiment; use another file or workdir"


def schema(model_name: str = "transformer", task: str = "translate") -> dict[str, Key]:
    """Returns all keys of the configs of a model and a task, by dotted name. Raises KeyError if there is none."""
    return dict(leaves(_tree(model_name, task)))


def defaults(model_name: str = "transformer", task: str = "translate") -> dict[str, Any]:
    """Returns the default config of a model and a task. Raises KeyError if there is none of that name."""
    return {"task": task, "model_name": model_name, **_values(_tree(model_name, task))}


def problem(config: Mapping[str, Any], trained: bool = False) -> str:
    """Returns what is wrong with a config, in one line, or "" if nothing is.

    Keys that the schema does not have are ignored, and keys may be missing, but not whole groups of them. trained: a
    model was trained with it, perhaps by an older version, which had no rules about several keys; they do not apply.
    """
    for name, known in (("task", TASKS), ("model_name", (PHRASE,) if config.get("task") == PHRASE else MODELS)):
        if name not in config:
            return MISSING.format(name)
        if not isinstance(config[name], str) or config[name] not in known:
            return f"config.{name}={_shown(config[name])}: use one of {', '.join(known)}"
    tree = _tree(config["model_name"], config["task"])
    if missing := [name for name in REQUIRED if name in tree and name not in config]:
        return MISSING.format(missing[0])
    if wrong := next(_problems(tree, config), ""):
        return wrong
    if trained:
        return ""
    values = dict(leaves(config))
    broken = (rule.problem(values) for rule in RULES if values.keys() >= set(rule.keys))
    return next(filter(None, broken), "")


def renamed(config: Mapping[str, Any]) -> dict[str, str]:
    """Returns the values of a config, by dotted key, that have another name now: the new ones."""
    name, task = config.get("model_name"), config.get("task")
    if not isinstance(name, str) or not isinstance(task, str) or name not in MODELS or task not in NEURAL_TASKS:
        return {}
    keys, values = schema(name, task), dict(leaves(config))
    changes = {key: keys[key].renamed.get(str(value).lower()) for key, value in values.items() if key in keys}
    return {key: new for key, new in changes.items() if new is not None}


def leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yields the dotted name and the value of every leaf of nested mappings."""
    for name, node in tree.items():
        if isinstance(node, Mapping):
            yield from leaves(node, f"{prefix}{name}.")
        else:
            yield prefix + name, node


def _tree(model_name: str, task: str) -> dict[str, Any]:
    """The keys of a model and a task, nested as in the config."""
    if task == PHRASE:
        return PHRASE_KEYS
    return _merged({**TOP, "model": MODELS[model_name], **RUN}, NEURAL_TASKS[task])


def _merged(tree: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """`tree` with the keys of `changes` added or replaced."""
    merged = dict(tree)
    for name, node in changes.items():
        merged[name] = _merged(tree.get(name, {}), node) if isinstance(node, dict) else node
    return merged


def _values(tree: dict[str, Any]) -> dict[str, Any]:
    """The defaults of a tree of keys."""
    return {name: copy.copy(node.default) if isinstance(node, Key) else _values(node) for name, node in tree.items()}


def _problems(tree: dict[str, Any], values: Mapping[str, Any], prefix: str = "config.") -> Iterator[str]:
    """Yields what is wrong with the value of every key, as in "config.train.steps=0: must be at least 1"."""
    for name, node in tree.items():
        if name not in values:
            continue
        value = values[name]
        if isinstance(node, Key):
            if wrong := node.problem(value):
                yield f"{prefix}{name}={_shown(value)}: {wrong}"
        elif isinstance(value, Mapping):
            yield from _problems(node, value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}={_shown(value)}: must be a group of keys"


def _shown(value: Any) -> str:
    """A value as it appears in a message; long ones are cut."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
