import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ml_collections import ConfigDict

from nmt_jax import config as configs
from nmt_jax.errors import UserError
from nmt_jax.models.transformer import Model as Transformer
from tests.conftest import ROOT

QUICKSTART = str(ROOT / "configs" / "quickstart.py")


@pytest.fixture
def write_page(tmp_path):
    """Returns a function that writes a config file with the given body of get_config, and returns its path."""

    def write(body: str, signature: str = "") -> str:
        path = tmp_path / "page.py"
        start = "from ml_collections import ConfigDict\n\n\ndef get_config(" + signature + "):\n"
        path.write_text(start + "".join(f"    {line}\n" for line in body.split("\n")))
        return str(path)

    return write


def test_overrides_are_parsed_as_the_type_of_their_key():
    config = configs.load(
        QUICKSTART,
        {
            "train.minutes": "30",
            "model.d_model": "64",
            "mesh.fsdp": "true",
            "data.directory": "7",
            "model.dropout": "1e-1",
        },
    )
    assert (config.train.minutes, type(config.train.minutes)) == (30.0, float)
    assert (config.model.d_model, config.mesh.fsdp, config.data.directory) == (64, True, "7")
    assert config.model.dropout == 0.1


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        ("train.steps", "many", ["train.steps", "an integer", "'many'"]),
        ("train.steps", "2.5", ["an integer"]),
        ("model.dropout", "high", ["a number"]),
        ("mesh.fsdp", "1", ["true or false"]),
        ("model.remat", "1", ["one of none, full, dots"]),
        ("train.stepz", "3", ["train.stepz", "did you mean train.steps"]),
        ("steps", "3", ["did you mean train.steps"]),
        ("model.d_modle", "3", ["did you mean model.d_model"]),
        ("modle.d_model", "3", ["did you mean model.d_model"]),
        ("seed.x", "3", ["unknown config key 'seed.x'"]),
        ("model", "3", ["group of keys", "--config.model.d_model"]),
    ],
)
def test_a_bad_override_is_one_line_that_names_key_and_type(key, text, words):
    with pytest.raises(UserError) as error:
        configs.load(QUICKSTART, {key: text})
    assert "\n" not in str(error.value)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(("old", "new"), [(True, "full"), (False, "none")])
def test_values_of_older_versions_are_renamed_in_overrides_pages_and_saved_configs(old, new, tmp_path):
    assert configs.load(QUICKSTART, {"model.remat": configs.format_value(old)}).model.remat == new
    (tmp_path / "common.py").write_text((ROOT / "configs/common.py").read_text())
    page = tmp_path / "page.py"
    page.write_text(
        f"import common\n\n\ndef get_config():\n    c = common.base()\n    c.model.remat = {old}\n    return c\n"
    )
    config = configs.load(str(page))
    assert config.model.remat == new
    assert configs.load(str(page), {"model.remat": "dots"}).model.remat == "dots"
    saved = config.to_dict()
    saved["model"]["remat"] = old
    (tmp_path / "config.json").write_text(json.dumps(saved))
    assert configs.read(tmp_path / "config.json") == config


def test_a_loaded_config_is_locked():
    config = configs.load(QUICKSTART)
    with pytest.raises(AttributeError):
        config.model.layers = 3


def test_overrides_change_values_derived_from_a_key(write_page):
    start = "from nmt_jax import schema\nc = ConfigDict(schema.defaults())\n"
    path = write_page(f"{start}c.model.d_ff = c.model.get_ref('d_model') * 4\nreturn c")
    assert configs.load(path, {"model.d_model": "32"}).model.d_ff == 128


def test_overrides_leave_the_config_as_it_is():
    config = configs.load(QUICKSTART)
    assert configs.override(config, {"model.d_model": "32"}).model.d_model == 32
    assert config == configs.load(QUICKSTART)


def test_the_argument_reaches_the_config_file_and_unknown_ones_are_errors():
    assert configs.load(QUICKSTART + ":smoke=true").train.steps == 1
    with pytest.raises(UserError, match=r"quickstart\.py:\d+: unknown argument 'smok'; did you mean smoke\?"):
        configs.load(QUICKSTART + ":smok=true")
    with pytest.raises(UserError, match="true or false"):
        configs.load(QUICKSTART + ":smoke=2")


def test_an_argument_for_a_config_file_without_arguments_is_an_error(write_page):
    with pytest.raises(UserError, match=r"page\.py:\d+:"):
        configs.load(write_page("return ConfigDict({})") + ":x=1")


def test_a_missing_file_is_an_error_that_suggests_a_similar_name(tmp_path):
    with pytest.raises(UserError, match=r"quickstar\.py: no such config file; did you mean .*quickstart\.py\?"):
        configs.load(QUICKSTART.replace("quickstart", "quickstar"))
    with pytest.raises(UserError, match="no such config file"):
        configs.load(str(tmp_path / "nowhere" / "x.py"))


@pytest.mark.parametrize(
    ("body", "line", "words"),
    [
        ("c = ConfigDict({'a': 1})\nc.a = 'x'\nreturn c", 6, "TypeError"),
        (
            "c = ConfigDict({'train': 1}).lock()\nc.trian = 2\nreturn c",
            6,
            "unknown config key 'trian'; did you mean 'train'",
        ),
        ("return 3 +", 5, "SyntaxError"),
        ("return undefined", 5, "NameError"),
    ],
)
def test_an_error_in_a_config_file_names_its_line(write_page, body, line, words):
    path = write_page(body)
    with pytest.raises(UserError) as error:
        configs.load(path)
    assert str(error.value).startswith(f"{path}:{line}: ")
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_config_file_must_define_get_config(tmp_path):
    path = tmp_path / "empty.py"
    path.write_text("")
    with pytest.raises(UserError, match="does not define get_config"):
        configs.load(str(path))


def test_get_config_must_return_a_config(write_page):
    with pytest.raises(UserError, match="returned dict"):
        configs.load(write_page("return {}"))


def test_config_files_of_two_folders_import_their_own_neighbours(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "neighbour.py").write_text(f"NAME = {name!r}\n")
        (tmp_path / name / "page.py").write_text(
            "import neighbour\nfrom ml_collections import ConfigDict\nfrom nmt_jax import schema\n"
            "def get_config():\n    return ConfigDict(schema.defaults() | {'init_from': neighbour.NAME})\n"
        )
    for name in ("one", "two"):
        assert configs.load(str(tmp_path / name / "page.py")).init_from == name


leaves = st.one_of(st.integers(), st.floats(allow_nan=False), st.booleans(), st.text(), st.lists(st.integers()))
keys = st.from_regex(r"[a-z][a-z_]{2,8}", fullmatch=True).filter(lambda key: not hasattr(ConfigDict, key))


@settings(max_examples=30)
@given(st.dictionaries(keys, st.one_of(leaves, st.dictionaries(keys, leaves, min_size=1))))
def test_a_saved_config_is_read_back_equal(tmp_path_factory, tree):
    path = tmp_path_factory.mktemp("config") / "config.json"
    config = ConfigDict(tree)
    configs.save(config, path)
    assert configs.read(path).to_dict() == config.to_dict()
    assert {type(value) for value in configs.flatten(configs.read(path)).values()} == {
        type(value) for value in configs.flatten(config).values()
    }


def test_a_damaged_config_json_is_an_error_that_names_the_line(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{\n "seed": 0,\n')
    with pytest.raises(UserError, match=r"config\.json:3: "):
        configs.read(path)


def test_a_different_model_is_an_error_that_names_its_keys_and_other_keys_may_change():
    old = configs.load(QUICKSTART)
    configs.check_same_model(old, configs.load(QUICKSTART, {"train.steps": "9", "optimizer.learning_rate": "1"}))
    with pytest.raises(UserError) as error:
        configs.check_same_model(
            old, configs.load(QUICKSTART, {"model.d_model": "64", "vocab.size": "99", "seed": "5"})
        )
    message = str(error.value)
    assert f"model.d_model was {old.model.d_model}, now 64" in message
    assert f"vocab.size was {old.vocab.size}, now 99" in message
    assert "seed" not in message
    assert "new --workdir" in message


def test_a_key_that_an_older_config_lacks_has_its_default():
    new = configs.load(QUICKSTART)
    old = configs.load(QUICKSTART).unlock()
    del old.vocab.sample_lines
    configs.check_same_model(old, new)
    with pytest.raises(UserError, match=rf"vocab\.sample_lines was {new.vocab.sample_lines}, now 7"):
        configs.check_same_model(old, configs.load(QUICKSTART, {"vocab.sample_lines": "7"}))


def test_a_model_is_built_from_its_fields_and_bad_fields_are_named():
    sizes = {"source_vocab_size": 11, "target_vocab_size": 11}
    fields = configs.load(QUICKSTART).model
    assert configs.build_model(Transformer, fields, **sizes).d_model == 128
    with pytest.raises(UserError, match=r"config\.model: d_model=100 is not divisible by num_heads=8"):
        configs.build_model(Transformer, {**fields, "d_model": 100, "num_heads": 8}, **sizes)
    with pytest.raises(UserError, match=r"'model\.encoder_layers'; did you mean model\.num_encoder_layers"):
        configs.build_model(Transformer, {"encoder_layers": 2}, **sizes)
