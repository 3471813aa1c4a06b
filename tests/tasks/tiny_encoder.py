"""A folder with a tiny random encoder, as pretrained ones come, and its tokenizer."""

import pathlib

import jax
import numpy as np

from nmt_jax.models.bert import Bert
from nmt_jax.pretrained import Pretrained, save
from nmt_jax.pretrained.tokenizer import Tokenizer

TEXT = "the good bad film was dull great a man in paris and bonn sees anna , karl . who where ? jérôme 's"


def write(folder: pathlib.Path, kind: str = "bert", **fields) -> pathlib.Path:
    """Saves an encoder of two layers of width 16; `fields` are Bert's."""
    tokenizer = Tokenizer.train([TEXT] * 3, size=120)
    sizes = {"num_layers": 2, "d_model": 16, "d_ff": 32, "num_heads": 2, "max_positions": 48, "init_stddev": 0.2}
    model = Bert(vocab_size=len(tokenizer), **sizes | fields)
    params = jax.jit(model.init)(jax.random.key(7), np.zeros((1, 1), np.int32), np.ones((1, 1), bool))["params"]
    save(Pretrained(kind, model, jax.tree.map(np.asarray, params), tokenizer, 48), folder)
    return folder
