"""Every default of `config.model` is written twice, in the schema and in the linen module; the two agree."""

import dataclasses

import pytest

from nmt_jax.models.registry import MODELS, model_class
from nmt_jax.schema.models import MODELS as KEYS

DEFAULTS = {name: {key: declared.default for key, declared in keys.items()} for name, keys in KEYS.items()}


@pytest.mark.parametrize("name", MODELS)
def test_the_linen_fields_have_the_defaults_of_the_configs(name):
    fields = {field.name: field.default for field in dataclasses.fields(model_class(name))}
    defaults = {key: list(fields[key]) if isinstance(fields[key], tuple) else fields[key] for key in DEFAULTS[name]}
    assert defaults == DEFAULTS[name]


def test_every_model_has_defaults():
    assert set(DEFAULTS) == set(MODELS)
