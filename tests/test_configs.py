"""Every config page can be loaded, built and trained."""

import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ml_collections import ConfigDict

from nmt_jax import config as configs
from nmt_jax.distributed import sharding
from nmt_jax.losses.step import Step
from nmt_jax.tasks.registry import make_task
from nmt_jax.training.loop import check_settings
from nmt_jax.training.optimizers import make_optimizer, make_schedule
from nmt_jax.training.run import check_model, train
from tests.fixtures import config_modules
from tests.fixtures.config_modules import FOLDER, PAGES
from tests.fixtures.speech import needs_espeak

SIZES = [f"transformer.py:size={size}" for size in ("tiny", "small", "base", "big")] + ["rnn_luong.py:size=paper"]
SIZES += ["captioning.py:model=transformer"]


@pytest.fixture(scope="module")
def common():
    return config_modules.load("common")


@pytest.mark.parametrize("spec", [f"{page}.py" for page in PAGES] + SIZES)
def test_a_page_has_every_key_and_a_model_that_can_be_built(spec, common):
    config = configs.load(str(FOLDER / spec))
    assert set(configs.flatten(config)) == set(configs.flatten(common.base(config.model_name, config.task)))
    if config.task == "phrase":
        return
    check_model(config)
    assert config.task != "translate" or config.train.keep_last >= config.decode.average


@pytest.mark.parametrize("page", PAGES)
def test_a_page_gives_its_command_and_expected_result(page):
    text = (FOLDER / f"{page}.py").read_text().split('"""')[1]
    assert f"nmt-jax train --config=configs/{page}.py" in text
    assert re.search("BLEU|[Pp]erplexity|[Aa]ccuracy|ROUGE|WER", text)


NEURAL = [page for page in PAGES if page != "phrase"]  # tests/nmt_jax/phrases trains the other one

# One page for each pair of task and model that pages have; the others only build their batches, model and loss.
TRAINED = (
    *("ag_news", "bert_tiny", "comet", "elmo", "elmo_tagger", "glue", "gpt", "han_movie_reviews", "ner", "quickstart"),
    *("retrieval", "rnn_lm", "rnn_luong", "ruse", "squad", "word2vec"),
)


def test_a_page_of_every_task_and_model_is_trained():
    smoke = {page: configs.load(str(FOLDER / f"{page}.py:smoke=true")) for page in NEURAL}
    pairs = {page: (config.task, config.model_name) for page, config in smoke.items()}
    assert sorted(pairs[page] for page in TRAINED) == sorted(set(pairs.values()))


@pytest.mark.slow
@pytest.mark.parametrize("page", TRAINED)
def test_a_page_trains_one_step(page, tmp_path):
    metrics = train(str(FOLDER / f"{page}.py:smoke=true"), tmp_path / "w")
    assert np.isfinite(metrics["loss"])
    assert np.isfinite(metrics["dev/loss"])
    assert configs.read(tmp_path / "w" / "config.json") == configs.load(str(FOLDER / f"{page}.py:smoke=true"))


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=needs_espeak) if page == "listen_attend_spell" else page
        for page in sorted({*NEURAL} - {*TRAINED})
    ],
)
def test_a_page_builds_its_batches_model_and_loss(page, tmp_path):
    config = configs.load(str(FOLDER / f"{page}.py:smoke=true"))
    task = make_task(config, tmp_path / "w", sharding.make_mesh(config.mesh.model))
    batch = task.batches(1)[0]

    def loss(rng):
        return task.loss_fn(task.init(rng), batch, Step(jnp.int32(0), rng))

    for leaf in jax.eval_shape(loss, jax.random.key(0)):
        assert leaf.shape == ()
    assert task.summary()
    make_schedule(config.optimizer, config.train.steps, config.model.get("d_model"))
    make_optimizer(config.optimizer)
    check_settings(config, task)


def test_base_has_plain_values_only_and_is_locked(common):
    config = common.base()
    assert {type(value) for value in configs.flatten(config).values()} <= {bool, int, float, str, list}
    with pytest.raises(AttributeError):
        config.model.num_layers = 3
    assert isinstance(config, ConfigDict)


def test_arguments_are_read_as_the_type_of_their_default(common):
    parsed = common.parse_arg("size=big,n=3,smoke=True", size="base", n=1, smoke=False, rate=0.5)
    assert vars(parsed) == {"size": "big", "n": 3, "smoke": True, "rate": 0.5}
    for wrong in ("sise=big", "smoke=2", "smoke", "n=x", "size"):
        with pytest.raises(ValueError, match=r"argument|literal"):
            common.parse_arg(wrong, size="base", n=1, smoke=False)


def test_pages_leave_nothing_behind():
    configs.load(str(FOLDER / "quickstart.py"))
    assert "common" not in sys.modules
    assert str(FOLDER) not in sys.path
