"""The keys of a config as text: for `nmt-jax train --help`, and as the page docs/reference/config-keys.md."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from nmt_jax.schema import leaves, schema
from nmt_jax.schema.key import LARGEST, Key
from nmt_jax.schema.models import MODELS
from nmt_jax.schema.phrase import NAME as PHRASE
from nmt_jax.schema.phrase import PHRASE_KEYS
from nmt_jax.schema.run import RUN, TOP
from nmt_jax.schema.tasks import TASKS

INTRODUCTION = """# Config keys

All keys of the configs, with their defaults and the values they may have. `nmt-jax train` refuses other values before
it reads any data. [Configs and workdirs](configs.md) explains config files and overrides. This page is generated from
`nmt_jax/schema/`:

    python -m nmt_jax.schema docs/reference/config-keys.md

Integers are at most 2,147,483,647 where no other bound is given. Help such as "text: folder of the files" is about keys
that apply only to that value of `data.corpus`. All text files may be plain or gzipped (`.gz`).
"""
BAR = r"\|"  # within a table


def markdown() -> str:
    """Returns the reference page."""
    parts = [INTRODUCTION, "## All configs\n", *_table({**TOP, **RUN})]
    parts += ["\n## Tasks\n\nKeys by `config.task`; those of `train` replace the ones above."]
    for name, tree in TASKS.items():
        parts += [f"\n### Task {name}\n", *_table(tree)]
    parts += ["\n## Models\n\nKeys by `config.model_name`."]
    for name, keys in MODELS.items():
        parts += [f"\n### Model {name}\n", *_table({"model": keys})]
    parts += [f"\n## Task and model {PHRASE}\n\nAll keys of a phrase-based model.\n", *_table(PHRASE_KEYS)]
    return "\n".join(parts) + "\n"


def help_entries(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the flag and the description of every key of a config; values without a dotted name are the defaults."""
    for name, key in schema(config["model_name"], config["task"]).items():
        value = config.get(name, key.default)
        default = f"[{str(value).lower() if key.type is bool else value}]" if value not in ("", []) else ""
        yield f"--config.{name}", " ".join(filter(None, [key.help, f"({values_in_words(key)})", default]))


def values_in_words(key: Key) -> str:
    """The values of a key: "an integer, at least 1, in steps"."""
    limits = key.limits.removesuffix(f" and at most {LARGEST:,}")
    return ", ".join(filter(None, [key.kind if not key.choices else "", limits, key.unit and f"in {key.unit}"]))


def _table(tree: Mapping[str, Any]) -> Iterator[str]:
    """Yields the lines of a table of keys."""
    yield "| key | default | values | meaning |"
    yield "|---|---|---|---|"
    for name, key in leaves(tree):
        cells = [f"`{name}`", f"`{json.dumps(key.default)}`", values_in_words(key), key.help.replace("<", "&lt;")]
        yield f"| {' | '.join(cell.replace('|', BAR) for cell in cells)} |"
