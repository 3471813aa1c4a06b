"""What users rely on stays as it is: flags, resolved configs, metrics and their signatures.

After a deliberate change: python -m tests.test_interface writes fixtures/interface.json anew; CHANGELOG.md names it.
"""

import dataclasses
import importlib
import json
from typing import Any

import pytest
from absl import flags

from metrics_jax import __all__ as public_names
from metrics_jax import registry
from nmt_jax import config as configs
from nmt_jax.__main__ import VERBS
from nmt_jax.errors import UserError
from tests.conftest import ROOT

FILE = ROOT / "tests" / "fixtures" / "interface.json"
PAGES = sorted(page.stem for page in (ROOT / "configs").glob("*.py"))
ARGUMENTS = {
    "transformer": ("size=tiny", "size=small", "size=big"),
    "ablation": ("size=paper",),
    "back_translation": ("stage=reverse", "size=small"),
    "bleurt": ("stage=pretrain",),
    "comet": ("reference=false",),
    "rnn_luong": ("size=paper",),
    "glue": ("task=cola", "task=sst2", "task=mrpc", "task=rte", "task=sick", "task=stsb"),
}


def verb_flags(verb: str) -> dict[str, list[Any]]:
    """Type, default and choices of every flag of a verb."""
    values = flags.FlagValues()
    importlib.import_module(f"nmt_jax.commands.{verb}").define_flags(values)
    return {
        name: [values[name].flag_type(), values[name].default, getattr(values[name].parser, "enum_values", None)]
        for name in sorted(values)
    }


def page_configs() -> dict[str, dict[str, Any]]:
    """The resolved config of every page, with its arguments."""
    found = {}
    for page in PAGES:
        for argument in ("", "smoke=true", *ARGUMENTS.get(page, ())):
            spec = f"{page}.py:{argument}" if argument else f"{page}.py"
            try:
                found[spec] = configs.flatten(configs.load(str(ROOT / "configs" / spec)))
            except UserError:  # a module that pages share
                assert not argument or page not in ARGUMENTS, spec
    return found


def metric_fields(name: str) -> list[list[str]]:
    """The options of a metric, in order, with their defaults."""
    kind = registry.metric_class(name)
    return [
        [field.name, "" if field.default is dataclasses.MISSING else repr(field.default)]
        for field in dataclasses.fields(kind)
    ]


def interface() -> dict[str, Any]:
    """All of it, as JSON has it."""
    names = [*registry.REGISTRY, *registry.SHORTHANDS]
    whole = {
        "verbs": {verb: verb_flags(verb) for verb in VERBS},
        "configs": page_configs(),
        "metrics": {name: metric_fields(name) for name in names},
        "public_names": sorted(public_names),
    }
    return json.loads(json.dumps(whole))


@pytest.fixture(scope="module")
def both() -> tuple[dict[str, Any], dict[str, Any]]:
    return json.loads(FILE.read_text(encoding="utf-8")), interface()


@pytest.mark.parametrize("part", ["verbs", "configs", "metrics", "public_names"])
def test_nothing_has_changed(both, part):
    old, new = (whole[part] for whole in both)
    if isinstance(old, dict):
        assert sorted(new) == sorted(old)
        for name in old:
            assert new[name] == old[name], name
    assert new == old


if __name__ == "__main__":
    rows = [f"  {json.dumps(part)}: {json.dumps(value, ensure_ascii=False)}" for part, value in interface().items()]
    rows = [row.replace('}, "', '},\n    "').replace(']], "', ']],\n    "') for row in rows]  # a line for each name
    FILE.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
