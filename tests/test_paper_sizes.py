"""Pages with `size=paper` have the shapes of their papers, and the parameter counts where the paper prints them."""

import functools

import flax
import jax
import jax.numpy as jnp
import pytest

from nmt_jax import config as configs
from nmt_jax.models import rnn
from nmt_jax.models.transformer import Model
from tests.conftest import ROOT

PAGE = str(ROOT / "configs" / "ablation.py")

# The paper's vocabulary has "about 37000 tokens". Its counts, rounded to millions, fit sizes from 41,003 to 41,208.
VOCABULARY = 41_100

BASE = {
    "model.num_encoder_layers": 6,
    "model.num_decoder_layers": 6,
    "model.d_model": 512,
    "model.d_ff": 2048,
    "model.num_heads": 8,
    "model.d_k": 0,  # 0 = d_model / num_heads
    "model.d_v": 0,
    "model.dropout": 0.1,
    "loss.label_smoothing": 0.1,
    "model.positions": "sinusoidal",
    "train.steps": 100_000,
}


def heads(number):
    return {"model.num_heads": number, "model.d_k": 512 // number, "model.d_v": 512 // number}


def layers(number):
    return {"model.num_encoder_layers": number, "model.num_decoder_layers": number}


def width(d_model, d_head):
    return {"model.d_model": d_model, "model.d_k": d_head, "model.d_v": d_head}


# Name, changes to the base model, the paper's count in millions, and ours where it differs from the paper's.
ROWS = [
    ("base", {}, 65, None),
    ("A 1", heads(1), 65, None),
    ("A 4", heads(4), 65, None),
    ("A 16", heads(16), 65, None),
    ("A 32", heads(32), 65, None),
    ("B 16", {"model.d_k": 16}, 58, None),
    ("B 32", {"model.d_k": 32}, 60, None),
    ("C 2 layers", layers(2), 36, None),
    ("C 4 layers", layers(4), 50, None),
    ("C 8 layers", layers(8), 80, None),
    ("C d_model 256", width(256, 32), 28, None),
    ("C d_model 1024", width(1024, 128), 168, None),
    ("C d_ff 1024", {"model.d_ff": 1024}, 53, None),
    ("C d_ff 4096", {"model.d_ff": 4096}, 90, None),
    ("D dropout 0", {"model.dropout": 0.0}, 65, None),
    ("D dropout 0.2", {"model.dropout": 0.2}, 65, None),
    ("D smoothing 0", {"loss.label_smoothing": 0.0}, 65, None),
    ("D smoothing 0.2", {"loss.label_smoothing": 0.2}, 65, None),
    # The paper prints no count for this row. Two tables of 1,024 positions have 1.05 million parameters.
    ("E", {"model.positions": "learned"}, 65, 66),
    # 213 fits vocabularies from 35,367 to 36,344 tokens only, and with those the base model would have 62 or 63.
    (
        "big",
        {"model.d_model": 1024, "model.d_ff": 4096, "model.num_heads": 16, "model.dropout": 0.3}
        | {"train.steps": 300_000},
        213,
        218,
    ),
]


@functools.cache
def parameters_of_parts(fields):
    """Parameters of one encoder layer and one decoder layer, and of everything else; only shapes are computed."""
    model = Model(VOCABULARY, VOCABULARY, num_encoder_layers=1, num_decoder_layers=1, **dict(fields))
    tokens = jnp.ones((1, 2), jnp.int32)
    params = jax.eval_shape(model.init, jax.random.key(0), tokens, tokens)["params"]
    sizes = {name: sum(leaf.size for leaf in jax.tree.leaves(part)) for name, part in params.items()}
    layers = sizes.pop("encoder_0") + sizes.pop("decoder_0")
    return layers, sum(sizes.values())


def parameters(model):
    """Number of parameters of a Transformer with the hyperparameters `model`, all layers being equal."""
    without_effect = ("num_encoder_layers", "num_decoder_layers", "dropout")
    layer, rest = parameters_of_parts(tuple((key, value) for key, value in model.items() if key not in without_effect))
    return rest + model.num_encoder_layers * layer


@pytest.fixture(scope="module")
def points():
    """Every point of the sweep, as `configs.load` takes it."""
    return configs.load_sweep(f"{PAGE}:size=paper")


@pytest.mark.parametrize(("row", "name"), list(enumerate(row[0] for row in ROWS)))
def test_each_row_is_the_row_of_the_paper(points, row, name):
    _, changes, paper, ours = ROWS[row]
    assert len(points) == len(ROWS)
    config = configs.load(f"{PAGE}:size=paper", points[row])
    flat = configs.flatten(config)
    assert {key: flat[key] for key in BASE} == BASE | changes
    assert round(parameters(config.model) / 1e6) == (ours or paper), name


def test_the_small_sweep_is_the_one_that_was_measured():
    points = configs.load_sweep(PAGE)
    assert points == configs.load_sweep(f"{PAGE}:size=small")
    assert points[0] == {"model.num_heads": "4"}
    assert [point["model.num_heads"] for point in points[1:5]] == ["1", "2", "8", "16"]
    assert points[5:7] == [{"model.d_k": "4"}, {"model.d_k": "8"}]
    assert [point["model.num_encoder_layers"] for point in points[7:10]] == ["1", "3", "4"]
    assert points[10] == {"model.d_model": "32", "model.d_k": "8", "model.d_v": "8"}
    assert points[-1] == {
        "model.d_model": "128",
        "model.d_ff": "512",
        "model.num_heads": "8",
        "model.dropout": "0.3",
    }
    assert len(points) == 20


def test_the_paper_size_of_luong_is_four_unidirectional_layers_of_a_thousand_cells():
    config = configs.load(f"{ROOT}/configs/rnn_luong.py:size=paper")
    model = rnn.Model(source_vocab_size=50_000, target_vocab_size=50_000, **config.model)
    tokens = jnp.ones((1, 2), jnp.int32)
    params = jax.eval_shape(model.init, jax.random.key(0), tokens, tokens)["params"]
    shapes = {".".join(path): leaf.shape for path, leaf in flax.traverse_util.flatten_dict(params).items()}
    tables = {name for name, shape in shapes.items() if shape == (50_000, 1000)}
    assert tables == {"source_embedding.table", "target_embedding.table", "output_table.table"}
    assert not any("layers_0_1" in name for name in shapes)  # no second direction
    layer = 2 * 1000 * 4000 + 2 * 4000
    input_feeding, general, attentional_state = 1000 * 4000, 1000 * 1000, 2000 * 1000 + 1000
    expected = 3 * 50_000 * 1000 + 8 * layer + input_feeding + general + attentional_state
    assert sum(leaf.size for leaf in jax.tree.leaves(params)) == expected
    assert config.data.max_length == 51
    assert config.model.dropout == 0.2
