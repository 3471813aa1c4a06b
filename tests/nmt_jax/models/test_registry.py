"""The models that `config.model_name` may name."""

import pathlib

import pytest

import nmt_jax.models
from nmt_jax import config as configs
from nmt_jax.errors import UserError
from nmt_jax.models.registry import MODELS, model_class
from nmt_jax.training.run import check_model
from tests.conftest import ROOT


def test_models_are_the_modules_of_the_package():
    modules = {path.stem for path in pathlib.Path(nmt_jax.models.__file__).parent.glob("*.py")}
    assert sorted(MODELS) == sorted(modules - {"__init__", "registry"})


@pytest.mark.parametrize("name", MODELS)
def test_every_model_has_a_class(name):
    assert model_class(name).__module__ == f"nmt_jax.models.{name}"


@pytest.mark.parametrize("name", ["layers", "registry", "layers.attention", "", "Transformer"])
def test_other_names_are_user_errors(name):
    config = configs.load(str(ROOT / "configs/quickstart.py"))
    config.model_name = name
    with pytest.raises(UserError, match=f"^config.model_name='{name}': use one of transformer, rnn, "):
        check_model(config)


def test_the_error_names_the_nearest_model():
    with pytest.raises(UserError, match=r"; did you mean transformer\?$"):
        model_class("transfomer")
