"""The schema: its defaults are valid, values outside a range are refused, and the reference page is up to date."""

import json
import math

import pytest
from ml_collections import ConfigDict

from nmt_jax import config as configs
from nmt_jax import schema
from nmt_jax.errors import UserError
from nmt_jax.schema.key import Key
from nmt_jax.schema.models import MODELS
from nmt_jax.schema.reference import markdown
from nmt_jax.schema.tasks import TASKS
from nmt_jax.training.run import train
from nmt_jax.workdir import Workdir
from tests.conftest import ROOT
from tests.fixtures.config_modules import FOLDER, PAGES

QUICKSTART = str(FOLDER / "quickstart.py")
PAIRS = [("transformer", task) for task in TASKS] + [(model, "translate") for model in MODELS if model != "transformer"]
PAIRS.append(("phrase", "phrase"))


def outside(key: Key) -> list[float]:
    """Values just outside the range of a numeric key, and far from it."""
    step = 1 if key.type is int else 1e-6
    wrong = [] if key.type is int else [math.nan, math.inf, -math.inf]
    wrong += [bound for bound in (key.above, key.below) if bound is not None]
    wrong += [] if key.low is None else [key.type(key.low - step), key.type(-(10**20))]
    return wrong + ([] if key.high is None else [key.type(key.high + max(step, key.high * step)), key.type(10**20)])


@pytest.mark.parametrize(("model", "task"), PAIRS)
def test_the_defaults_are_valid_and_every_number_is_bounded_on_both_sides(model, task):
    assert schema.problem(schema.defaults(model, task)) == ""
    for name, key in schema.schema(model, task).items():
        if key.type in (int, float):
            assert key.low is not None or key.above is not None, name
            assert key.high is not None or key.below is not None, name
        assert key.help[-1] in ".…", name


def numeric_keys():
    """The numeric keys of each pair of model and task that no pair before it has with the same range."""
    seen = set()
    for pair in PAIRS:
        numeric = {name: key for name, key in schema.schema(*pair).items() if key.type in (int, float)}
        new = {name: key for name, key in numeric.items() if (name, key.type, key.limits) not in seen}
        seen |= {(name, key.type, key.limits) for name, key in new.items()}
        if new:
            yield pytest.param(*pair, new, id="-".join(pair))


@pytest.mark.parametrize(("model", "task", "keys"), [*numeric_keys()])
def test_a_value_outside_the_range_of_any_number_is_refused_before_data_is_read(model, task, keys):
    config = ConfigDict(schema.defaults(model, task))
    for name, key in keys.items():
        for value in outside(key):
            text = json.dumps([value]) if isinstance(key.default, list) else str(value)
            with pytest.raises(UserError) as error:
                configs.override(config, {name: text})
            assert str(error.value).startswith(f"config.{name}=")
            assert key.limits in str(error.value)


@pytest.mark.parametrize(
    "override",
    [
        *("optimizer.learning_rate=nan", "optimizer.learning_rate=-1", "optimizer.learning_rate=0"),
        *("optimizer.learning_rate=1e30", "optimizer.beta1=1", "optimizer.beta2=nan", "optimizer.epsilon=-1"),
        *("optimizer.warmup_steps=-1", "optimizer.clip_norm=-1", "optimizer.clip_norm=nan"),
        *("optimizer.ema_decay=1.5", "optimizer.ema_decay=nan", "optimizer.name=sgd", "optimizer.weight_decay=0.1"),
        *("data.upsample=0", "data.upsample=2", "data.synthetic_ratio=-1", "data.synthetic_ratio=1"),
        *(
            'vocab.symbols=["a b"]',
            'vocab.symbols=["<s>"]',
            'vocab.symbols=["<0x0A>"]',
            'vocab.symbols=["<BT>", "<BT>"]',
            'vocab.symbols=[""]',
        ),
        *("loss.label_smoothing=-0.1", "loss.label_smoothing=1", "loss.label_smoothing=nan"),
        *("loss.risk.num_samples=0", "data.num_buckets=0", "data.num_buckets=-1", "data.source=xx", "data.source=de"),
        *("decode.beam_size=0", "decode.beam_size=-1", "decode.average=0", "decode.average=-1"),
        *("decode.max_length_ratio=-1", "decode.max_length_ratio=nan", "decode.max_length_ratio=inf"),
        *("decode.max_length_offset=1000000000", "train.patience=-1", "train.keep_best=-1", "train.keep_last=0"),
        *("train.minutes=-1", "train.minutes=nan", "eval.batch_tokens=0", "eval.batch_tokens=-8"),
        *("vocab.size=0", "vocab.size=3", "vocab.size=-1", "model.d_k=-1", "model.d_model=1048576"),
        *("model.num_encoder_layers=1000000", "seed=-1", f"seed={2**63}", f"seed={2**64}"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused(override, tmp_path):
    key, _, value = override.partition("=")
    with pytest.raises(UserError) as error:
        train(QUICKSTART, tmp_path / "w", {key: value})
    named = "data.target" if override == "data.source=de" else key
    assert str(error.value).startswith(f"config.{named}=")
    assert not (tmp_path / "w").exists()


@pytest.mark.parametrize(
    ("page", "override"),
    [
        *(("gpt", f"{key}=1") for key in ("loss.activation_penalty", "loss.temporal_penalty")),
        *(("gpt", "data.carry_state=true"), ("glue", "loss.language_model=0.5")),
    ],
)
def test_a_key_of_another_model_is_refused(page, override):
    key, _, value = override.partition("=")
    with pytest.raises(UserError, match=f"^config.{key}=.*: needs .*model_name='(rnn_lm|causal_head)'"):
        configs.load(f"{ROOT}/configs/{page}.py", {key: value})


def test_minimum_risk_does_not_train_hard_attention():
    changes = {"model.attention": "hard", "loss.risk.metric": "chrf"}
    with pytest.raises(UserError, match=r"minimum risk does not train hard attention; set model\.attention=global"):
        configs.load(f"{ROOT}/configs/rnn_luong.py", changes)


def test_hidden_words_are_not_copied():
    changes = {"data.source_word_dropout": "0.1", "model.copying": "pointer", "loss.label_smoothing": "0"}
    with pytest.raises(UserError, match=r"source_word_dropout=0\.1: a hidden word cannot be copied"):
        configs.load(f"{ROOT}/configs/rnn_luong.py", changes)


def test_a_state_that_grows_is_not_carried():
    with pytest.raises(UserError, match=r"^config\.data\.carry_state=True: the state of model\.cell='lstmn' grows"):
        configs.load(f"{ROOT}/configs/awd_lstm.py", {"model.cell": "lstmn", "model.weight_dropout": "0"})


def test_a_message_names_key_value_and_range(tmp_path):
    with pytest.raises(UserError) as error:
        configs.load(QUICKSTART, {"optimizer.beta1": "1"})
    assert str(error.value) == "config.optimizer.beta1=1.0: must be at least 0 and less than 1"
    tree = schema.defaults()
    tree["train"]["steps"] = "x" * 1000
    file = tmp_path / "config.json"
    file.write_text(json.dumps(tree))
    with pytest.raises(UserError) as error:
        Workdir(tmp_path).config()
    assert str(error.value) == f"{file}: config.train.steps='{'x' * 76}...: must be an integer"


@pytest.mark.parametrize("smoke", ["", ":smoke=true"])
@pytest.mark.parametrize("page", PAGES)
def test_all_pages_are_valid(page, smoke):
    configs.load(f"{FOLDER / page}.py{smoke}")


def broken(**changes: object) -> str:
    """A config as JSON, with other values of some top-level keys; None removes one."""
    tree = schema.defaults() | changes
    return json.dumps({name: value for name, value in tree.items() if value is not None})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[1]", "config.json:1: not a saved config (it is not a JSON object)"),
        *[(text, "config.json:1: not a saved config") for text in ("3", '"x"', "null", "[" * 100_000)],
        ('{"a":' * 100_000, "config.json:1: not a saved config"),
        ("{}", "config.json: config.task is missing"),
        (broken(model=None), "config.json: config.model is missing"),
        (broken(data=None), "config.json: config.data is missing"),
        (broken(model_name=None), "config.json: config.model_name is missing"),
        (broken(model_name="transformr"), "config.json: config.model_name='transformr': use one of transformer, "),
        (broken(task=[]), "config.json: config.task=[]: use one of "),
        (broken(model=7), "config.json: config.model=7: must be a group of keys"),
        (broken(seed={"a": 1}), "config.json: config.seed={'a': 1}: must be an integer"),
        (broken(seed=True), "config.json: config.seed=True: must be an integer"),
        (broken(seed=None, init_from=3), "config.json: config.init_from=3: must be a string"),
    ],
)
def test_a_damaged_config_of_a_workdir_is_an_error_of_one_line(tmp_path, text, words):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(UserError) as error:
        Workdir(tmp_path).config()
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_config_of_an_older_version_may_lack_keys_and_have_others(tmp_path):
    tree = schema.defaults()
    del tree["mesh"], tree["optimizer"]["ema_decay"]
    tree["model"]["gone"] = {"x": None}
    (tmp_path / "config.json").write_text(json.dumps(tree))
    expected = schema.defaults()
    expected["model"]["gone"] = {"x": None}
    assert Workdir(tmp_path).config().to_dict() == expected


def test_rules_about_several_keys_do_not_apply_to_a_trained_model(tmp_path):
    tree = schema.defaults()
    tree["optimizer"]["weight_decay"] = 0.1
    (tmp_path / "config.json").write_text(json.dumps(tree))
    config = Workdir(tmp_path).config()
    with pytest.raises(UserError, match=r"config\.optimizer\.weight_decay=0\.1: has no effect on 'adam'"):
        configs.override(config, {})


def test_lists_are_checked_item_by_item():
    key = Key([1, 2], "Widths.", low=1, high=10)
    assert [key.problem(value) for value in ([], [10], (1,))] == [""] * 3
    assert key.problem([1, 0]) == "must be at least 1 and at most 10"
    assert key.problem([1.0]) == key.problem("x") == key.problem(3) == "must be a list of integers"
    assert Key([], "Names.").problem([3]) == "must be a list of strings"


def test_the_reference_page_is_up_to_date():
    page = ROOT / "docs" / "reference" / "config-keys.md"
    assert page.read_text(encoding="utf-8") == markdown(), "run: python -m nmt_jax.schema docs/reference/config-keys.md"
