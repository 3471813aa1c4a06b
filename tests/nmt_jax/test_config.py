import pytest
from hypothesis import given
from hypothesis import strategies as st
from ml_collections import ConfigDict

from nmt_jax import config as configs
from nmt_jax.errors import UserError
from nmt_jax.models.transformer import Model as Transformer
from tests.conftest import ROOT

QUICKSTART = str(ROOT / "configs" / "quickstart.py")


@pytest.fixture
def page(tmp_path):
    """Writes a config file with this body of get_config -> its path."""

    def write(body: str, signature: str = "") -> str:
        path = tmp_path / "page.py"
        start = "from ml_collections import ConfigDict\n\n\ndef get_config(" + signature + "):\n"
        path.write_text(start + "".join(f"    {line}\n" for line in body.split("\n")))
        return str(path)

    return write


def test_overrides_are_read_as_the_type_of_their_key():
    config = configs.load(
        QUICKSTART,
        {
            "train.minutes": "30",
            "model.d_model": "64",
            "model.remat": "true",
            "data.directory": "7",
            "model.dropout": "1e-1",
        },
    )
    assert (config.train.minutes, type(config.train.minutes)) == (30.0, float)
    assert (config.model.d_model, config.model.remat, config.data.directory) == (64, True, "7")
    assert config.model.dropout == 0.1


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        ("train.steps", "many", ["train.steps", "whole number", "'many'"]),
        ("train.steps", "2.5", ["whole number"]),
        ("model.dropout", "high", ["a number"]),
        ("model.remat", "1", ["true or false"]),
        ("train.stepz", "3", ["train.stepz", "did you mean train.steps"]),
        ("steps", "3", ["did you mean train.steps"]),
        ("model.d_modle", "3", ["did you mean model.d_model"]),
        ("modle.d_model", "3", ["did you mean model.d_model"]),
        ("seed.x", "3", ["unknown config key 'seed.x'"]),
        ("model", "3", ["group of keys", "--config.model.d_model"]),
    ],
)
def test_a_bad_override_is_one_line_that_says_what_is_wanted(key, text, words):
    with pytest.raises(UserError) as error:
        configs.load(QUICKSTART, {key: text})
    assert "\n" not in str(error.value)
    for word in words:
        assert word in str(error.value)


def test_the_result_is_locked():
    config = configs.load(QUICKSTART)
    with pytest.raises(AttributeError):
        config.model.layers = 3


def test_overrides_reach_what_a_page_derives(page):
    path = page("c = ConfigDict({'width': 4})\nc.inner = c.get_ref('width') * 4\nreturn c")
    assert configs.load(path, {"width": "8"}).to_dict() == {"width": 8, "inner": 32}


def test_the_argument_reaches_the_page_and_a_wrong_one_is_refused():
    assert configs.load(QUICKSTART + ":smoke=true").train.steps == 1
    with pytest.raises(UserError, match=r"quickstart\.py:\d+: unknown argument 'smok'; did you mean smoke\?"):
        configs.load(QUICKSTART + ":smok=true")
    with pytest.raises(UserError, match="true or false"):
        configs.load(QUICKSTART + ":smoke=2")


def test_a_page_that_takes_no_argument_says_so(page):
    with pytest.raises(UserError, match=r"page\.py:\d+:"):
        configs.load(page("return ConfigDict({})") + ":x=1")


def test_missing_files_name_their_neighbour(tmp_path):
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
def test_a_mistake_in_a_page_is_told_with_its_line(page, body, line, words):
    path = page(body)
    with pytest.raises(UserError) as error:
        configs.load(path)
    assert str(error.value).startswith(f"{path}:{line}: ")
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_page_must_define_get_config(tmp_path):
    path = tmp_path / "empty.py"
    path.write_text("")
    with pytest.raises(UserError, match="defines get_config"):
        configs.load(str(path))


def test_a_page_must_return_a_config(page):
    with pytest.raises(UserError, match="returns a dict"):
        configs.load(page("return {}"))


def test_pages_of_two_folders_each_find_their_own_neighbour(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "neighbour.py").write_text(f"NAME = {name!r}\n")
        (tmp_path / name / "page.py").write_text(
            "import neighbour\nfrom ml_collections import ConfigDict\n"
            "def get_config():\n    return ConfigDict({'name': neighbour.NAME})\n"
        )
    for name in ("one", "two"):
        assert configs.load(str(tmp_path / name / "page.py")).name == name


leaves = st.one_of(st.integers(), st.floats(allow_nan=False), st.booleans(), st.text(), st.lists(st.integers()))
keys = st.from_regex(r"[a-z][a-z_]{2,8}", fullmatch=True).filter(lambda key: not hasattr(ConfigDict, key))


@given(st.dictionaries(keys, st.one_of(leaves, st.dictionaries(keys, leaves, min_size=1))))
def test_what_is_saved_is_read_back_equal(tmp_path_factory, tree):
    path = tmp_path_factory.mktemp("config") / "config.json"
    config = ConfigDict(tree)
    configs.save(config, path)
    assert configs.read(path).to_dict() == config.to_dict()
    assert {type(value) for value in configs.flatten(configs.read(path)).values()} == {
        type(value) for value in configs.flatten(config).values()
    }


def test_a_damaged_config_json_is_told_with_its_line(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{\n "seed": 0,\n')
    with pytest.raises(UserError, match=r"config\.json:3: "):
        configs.read(path)


def test_another_model_is_refused_by_its_keys_and_anything_else_may_change():
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


def test_a_model_is_built_from_its_fields_and_a_bad_one_is_named():
    sizes = {"source_vocab_size": 11, "target_vocab_size": 11}
    fields = configs.load(QUICKSTART).model
    assert configs.build_model(Transformer, fields, **sizes).d_model == 128
    with pytest.raises(UserError, match=r"config\.model: d_model=100 is not divisible by num_heads=8"):
        configs.build_model(Transformer, {**fields, "d_model": 100, "num_heads": 8}, **sizes)
    with pytest.raises(UserError, match=r"'model\.num_layers'; did you mean model\.num_encoder_layers"):
        configs.build_model(Transformer, {"num_layers": 2}, **sizes)
