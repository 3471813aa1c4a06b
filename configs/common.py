"""The parts that all configs share: the default config, arguments, and the smoke-test version.

The defaults and the meaning of every key are in `nmt_jax/schema/`, and described in docs/reference/config-keys.md.
"""

import difflib
import types
from typing import Any

from ml_collections import ConfigDict, FieldReference

from nmt_jax import schema
from nmt_jax.schema.models import TINY_MODELS
from nmt_jax.schema.phrase import NAME as PHRASE
from nmt_jax.schema.phrase import TINY_PHRASE
from nmt_jax.schema.run import ONE_STEP
from nmt_jax.schema.smoke import TINY_TASKS


def base(model_name: str = "transformer", task: str = "translate") -> ConfigDict:
    """Return the default config of a model and a task, locked against unknown keys.

    Without arguments, it is a small Transformer that translates the embedded corpus. Raises KeyError if `model_name` is
    no model or `task` is no task.
    """
    config = ConfigDict(schema.defaults(model_name, task))
    if "remat" in config.model:
        config.model.remat = FieldReference(config.model.remat, field_type=object)  # older pages assign true or false
    return config.lock()


def parse_arg(arg: str, **defaults: Any) -> types.SimpleNamespace:
    """Parse the argument of a config such as `size=base,smoke=true`.

    `defaults` gives the known names; each value is converted to the type of its default. Raises ValueError if a name is
    unknown or a value has the wrong type.
    """
    values = dict(defaults)
    for item in filter(None, arg.split(",")):
        name, equals, text = item.partition("=")
        if name not in defaults:
            near = difflib.get_close_matches(name, defaults, n=1) or list(defaults)
            raise ValueError(f"unknown argument {name!r}; did you mean {' or '.join(near)}?")
        if isinstance(defaults[name], bool):
            if text.lower() not in ("true", "false"):
                raise ValueError(f"argument {name} takes true or false, not {text!r}")
            values[name] = text.lower() == "true"
        elif not equals:
            raise ValueError(f"argument {name} needs a value: {name}={defaults[name]}")
        else:
            values[name] = type(defaults[name])(text)
    return types.SimpleNamespace(**values)


def smoke(config: ConfigDict) -> ConfigDict:
    """Shrink `config` in place to a smoke test (one step, tiny model, embedded corpus), and return it."""
    if config.task == PHRASE:
        config.update(TINY_PHRASE)
        return config
    config.model.update(TINY_MODELS[config.model_name])
    config.update(TINY_TASKS.get(config.task, {}))
    config.train.update(ONE_STEP)
    return config
