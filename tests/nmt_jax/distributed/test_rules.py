"""RULES cover the parameters of every model, and split them so that 4 devices hold a quarter each.

This file is also the program that trains on eight devices, of which four share a copy of the model.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import AbstractMesh, PartitionSpec

from nmt_jax import config as configs
from nmt_jax.checkpoints.train_state import new_state
from nmt_jax.distributed.sharding import RULES, make_mesh, matches, replicated, shard_batch, shard_state
from nmt_jax.models import gpt
from nmt_jax.models.layers.bert_stack import Bert
from nmt_jax.models.layers.features import Features, Mixed
from nmt_jax.models.registry import MODELS, model_class
from nmt_jax.tasks.registry import make_task
from nmt_jax.training.optimizers import make_optimizer, make_schedule
from nmt_jax.training.train_step import make_train_step
from tests.conftest import ROOT, with_devices

PAGES = ROOT / "configs"


def pair(vocab_size: int) -> dict[str, int]:
    """Vocabularies of this size for source and target."""
    return {"source_vocab_size": vocab_size, "target_vocab_size": vocab_size}


def layers(number: int) -> dict[str, int]:
    """This number of layers in the encoder and in the decoder."""
    return {"num_encoder_layers": number, "num_decoder_layers": number}


TOKENS, MASK = np.ones((1, 3), np.int32), np.ones((1, 3), bool)
ROWS = Features(np.ones((1, 4, 48), np.float32), np.ones(1, np.int32))
IMAGES = {"source_columns": (2, 2), "num_sources": 2}
SOURCES, CHARACTERS = np.ones((1, 2, 3), np.int32), np.ones((1, 3, 50), np.int32)
ENCODER = Bert(8, num_layers=1, d_model=8, d_ff=8, num_heads=2, parent=None)
GPT = gpt.Model(8, num_layers=1, d_model=8, d_ff=8, num_heads=2, norm="pre", parent=None)
FACTORED = ENCODER.clone(embedding_width=4, relative_buckets=8, parent=None)
PAIR, ONE_LAYER = pair(8), {"vocab_size": 8, "num_layers": 1}
UNTIED = {"activation": "swiglu", "positions": "learned", "tie_embeddings": "none"}

# Name of a model, its fields, and the arguments of a call: all options that add parameters.
VARIANTS: list[tuple[str, dict[str, Any], tuple[Any, ...]]] = [
    ("transformer", PAIR | layers(1), (TOKENS, TOKENS)),
    ("transformer", PAIR | layers(1) | UNTIED, (TOKENS, TOKENS)),
    ("transformer", PAIR | layers(1) | {"copying": "pointer"}, (TOKENS, TOKENS)),
    ("transformer", PAIR | layers(1) | {"num_sources": 2, "combination": "hierarchical"}, (SOURCES, TOKENS)),
    ("transformer", PAIR | layers(1) | {"num_sources": 2, "combination": "serial"}, (SOURCES, TOKENS)),
    ("transformer", PAIR | layers(1) | {"subsampling_layers": 1}, (ROWS, TOKENS)),
    ("transformer", PAIR | layers(1) | IMAGES, (Mixed((ROWS, ROWS)), TOKENS)),
    ("transformer", PAIR | layers(1) | IMAGES | {"image_encoder": "convolution"}, (Mixed((ROWS, ROWS)), TOKENS)),
    ("rnn", PAIR, (TOKENS, TOKENS)),
    ("rnn", PAIR | {"context_gate": True}, (TOKENS, TOKENS)),
    ("rnn", {**PAIR, "decoder": "bahdanau", "cell": "gru", "score": "concat", "copying": "pointer"}, (TOKENS, TOKENS)),
    ("rnn", {**PAIR, "cell": "lstmn", "attention": "local-p", "copying": "copynet"}, (TOKENS, TOKENS)),
    ("rnn", {**PAIR, "cell": "rnn", "score": "reduced_rank", "context_every_step": True}, (TOKENS, TOKENS)),
    ("rnn", {**PAIR, "score": "location", "num_sources": 2, "combination": "hierarchical"}, (SOURCES, TOKENS)),
    ("dual_encoder", PAIR | {"num_layers": 1}, (TOKENS, TOKENS)),
    ("gpt", {**ONE_LAYER, "activation": "swiglu"}, (TOKENS,)),
    ("rnn_lm", {**ONE_LAYER, "d_embedding": 8, "pointer_window": 2}, (TOKENS,)),
    ("rnn_lm", {**ONE_LAYER, "tie_embeddings": False}, (TOKENS,)),
    ("rnn_lm", {**ONE_LAYER, "cell": "lstmn"}, (TOKENS,)),
    ("bert", ONE_LAYER, (TOKENS, MASK, TOKENS, TOKENS)),
    ("elmo", {**ONE_LAYER, "num_highways": 1}, (CHARACTERS,)),
    ("word_vectors", {"vocab_size": 8, "num_buckets": 8}, (np.ones((1, 12), np.int32), np.ones((1, 2)), TOKENS)),
    ("han", {"vocab_size": 8, "num_classes": 2}, (SOURCES,)),
    ("sentence_classifier", {"vocab_size": 8, "num_classes": 2}, (SOURCES,)),
    ("sentence_head", {"encoder": ENCODER, "num_outputs": 2, "layers": "mixture"}, (TOKENS, MASK)),
    ("siamese_head", {"encoder": ENCODER, "num_outputs": 2}, (SOURCES, SOURCES > 0)),
    ("estimator_head", {"encoder": ENCODER, "num_outputs": 1}, (SOURCES, SOURCES > 0)),
    ("piece_head", {"encoder": ENCODER, "num_outputs": 2}, (TOKENS, MASK)),
    ("piece_head", {"encoder": FACTORED, "num_outputs": 2}, (TOKENS, MASK)),
    ("causal_head", {"encoder": GPT, "num_outputs": 2}, (TOKENS, MASK)),
    ("feature_tagger", {"vocab_size": 8, "num_outputs": 2}, (TOKENS, MASK, None, np.ones((1, 3, 2, 8)))),
    ("mlp", {}, (np.ones((1, 8)),)),
]


def parameters(name: str, fields: dict[str, Any], arguments: tuple[Any, ...]) -> Any:
    """The shapes of the parameters of a model."""
    model = model_class(name)(**fields)
    ngram = {"subwords": (np.zeros(1, np.int32),) * 2} if name == "word_vectors" else {}
    return jax.eval_shape(lambda *all: model.init(*all, **ngram), jax.random.key(0), *arguments)["params"]


def names(tree: Any) -> dict[str, Any]:
    """The leaves of a tree by their names."""
    leaves = jax.tree.leaves_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="/"): leaf for path, leaf in leaves}


def test_every_matrix_of_every_model_has_one_rule_and_every_rule_a_parameter():
    assert {name for name, _, _ in VARIANTS} == set(MODELS)
    used = set()
    for model, fields, arguments in VARIANTS:
        for name, leaf in names(parameters(model, fields, arguments)).items():
            rules = [end for end, _ in RULES if matches(end, name)]
            assert len(rules) == 1 or (leaf.ndim < 2 and not rules), f"{model}: {name} {leaf.shape} has rules {rules}"
            used.update(rules)
    assert used == {end for end, _ in RULES}


BASE = {"num_layers": 12, "d_model": 768, "d_ff": 3072, "num_heads": 12}
LARGE = {"num_layers": 24, "d_model": 1024, "d_ff": 4096, "num_heads": 16}
TRANSFORMER_BASE = pair(37_000) | layers(6) | {"d_model": 512, "d_ff": 2048, "num_heads": 8}
TRANSFORMER_BIG = pair(37_000) | layers(6) | {"d_model": 1024, "d_ff": 4096, "num_heads": 16}
LUONG = pair(50_000) | layers(4) | {"d_embedding": 1000, "d_hidden": 1000, "bidirectional": False}
BAHDANAU = pair(30_000) | {"decoder": "bahdanau", "cell": "gru", "score": "additive"}
BAHDANAU |= {"d_embedding": 620, "d_hidden": 1000, "d_attention": 1000}
ZAREMBA = {"vocab_size": 10_000, "num_layers": 2, "d_embedding": 1500, "d_hidden": 1500, "tie_embeddings": False}
ELMO = {"vocab_size": 793_471, "d_hidden": 4096, "d_projection": 512}
ELMO |= {"max_characters": 50, "widths": range(1, 8), "filters": (32, 32, 64, 128, 256, 512, 1024)}

# Sizes of the papers: model, fields, arguments, and the largest share of the parameters that one of 4 devices may hold.
PUBLISHED: dict[str, tuple[str, dict[str, Any], tuple[Any, ...], float]] = {
    "Transformer base": ("transformer", TRANSFORMER_BASE, (TOKENS, TOKENS), 0.27),
    "Transformer big": ("transformer", TRANSFORMER_BIG, (TOKENS, TOKENS), 0.27),
    "BERT base": ("bert", {**BASE, "vocab_size": 30_522}, (TOKENS, MASK, TOKENS, TOKENS), 0.27),
    "BERT large": ("bert", {**LARGE, "vocab_size": 30_522}, (TOKENS, MASK, TOKENS, TOKENS), 0.27),
    "GPT": ("gpt", {**BASE, "vocab_size": 40_478}, (TOKENS,), 0.27),
    "GPT-2": ("gpt", {**BASE, "vocab_size": 50_257, "max_positions": 1024, "norm": "pre"}, (TOKENS,), 0.27),
    "RNN of Luong et al. (2015)": ("rnn", LUONG, (TOKENS, TOKENS), 0.3),
    "RNN of Bahdanau et al. (2015)": ("rnn", BAHDANAU, (TOKENS, TOKENS), 0.3),
    "LSTM of Zaremba et al. (2014)": ("rnn_lm", ZAREMBA, (TOKENS,), 0.3),
    "ELMo": ("elmo", ELMO, (CHARACTERS,), 0.27),
}


def share(params: Any) -> float:
    """The share of the bytes that each of four devices holds."""
    shardings = shard_state(params, AbstractMesh((1, 4), ("data", "model")))
    parts = jax.tree.map(lambda leaf, sharding: np.prod(sharding.shard_shape(leaf.shape)), params, shardings)
    return float(sum(jax.tree.leaves(parts)) / sum(leaf.size for leaf in jax.tree.leaves(params)))


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLISHED)
def test_four_devices_hold_a_quarter_of_the_parameters_each(name):
    *model, most = PUBLISHED[name]
    assert 0.25 <= share(parameters(*model)) <= most


def test_a_vocabulary_that_does_not_divide_is_split_by_width_and_moments_follow():
    params = {"embeddings": {"word": jax.ShapeDtypeStruct((30_522, 768), np.float32)}}
    optimizer = make_optimizer(configs.load(f"{PAGES}/bert_base.py").optimizer)
    state = jax.eval_shape(lambda params: new_state(params, optimizer, 0.9), params)
    for model, spec in ((2, PartitionSpec("model")), (4, PartitionSpec(None, "model")), (5, PartitionSpec())):
        shardings = names(shard_state(state, AbstractMesh((1, model), ("data", "model"))))
        specs = [sharding.spec for name, sharding in shardings.items() if name.endswith("word")]
        assert specs == [spec] * 4  # parameter, two moments and average


def train(page: str, workdir: Path, model: int) -> list[float]:
    """The losses of two steps of a config page, with small sizes, on all devices."""
    changes = {"model.dtype": "float32", "model.dropout": "0.1", "mesh.model": str(model)}
    config = configs.load(f"{PAGES}/{page}.py:smoke=true", changes)
    mesh = make_mesh(model)
    task, optimizer = make_task(config, workdir / page, mesh), make_optimizer(config.optimizer)
    params = jax.jit(task.init, out_shardings=replicated(mesh))(jax.random.key(0))
    shardings = shard_state(jax.eval_shape(lambda: new_state(params, optimizer, 0.9)), mesh)
    state = jax.jit(lambda params: new_state(params, optimizer, 0.9), out_shardings=shardings)(params)
    held = sum(leaf.addressable_shards[0].data.nbytes for leaf in jax.tree.leaves(state.params))
    assert held <= (0.35 if model > 1 else 1.0) * sum(leaf.nbytes for leaf in jax.tree.leaves(state.params))
    schedule = make_schedule(config.optimizer, 2, config.model.get("d_model"))
    options = {"accumulate": 1, "ema_decay": 0.9, "seed": 0, "shardings": shardings}
    step = make_train_step(task.loss_fn, optimizer, schedule, **options)
    losses, batches = [], task.batches(2)
    for number in range(2):
        state, metrics = step(state, shard_batch(batches[number], mesh))
        losses.append(float(metrics["loss"]))
    return losses


TRAINED = ("rnn_luong", "rnn_bahdanau", "elmo", "bert_tiny")

if __name__ == "__main__":
    assert jax.device_count() == 8
    print(json.dumps({page: train(page, Path(sys.argv[1]), 4) for page in TRAINED}))


@pytest.fixture(scope="module")
def eight(tmp_path_factory):
    """The losses on eight devices, of which four share a copy of the model."""
    command = [sys.executable, "-m", "tests.nmt_jax.distributed.test_rules", str(tmp_path_factory.mktemp("workdirs"))]
    process = subprocess.run(command, cwd=ROOT, env=with_devices(8), capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("page", TRAINED)
def test_a_model_split_over_four_devices_has_the_losses_of_one(eight, page, tmp_path):
    np.testing.assert_allclose(eight[page], train(page, tmp_path, 1), rtol=0, atol=1e-5)
