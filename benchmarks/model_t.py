"""Transformer T of the speed benchmarks: 3+3 layers, 4 heads, a joint vocabulary, on Multi30k."""

import pathlib

from benchmarks import measure
from nmt_jax import config as configs
from nmt_jax import platforms
from nmt_jax.distributed import sharding
from nmt_jax.tasks.translate import Translate

LAYERS, D_MODEL, D_FF, HEADS, VOCABULARY = 3, 256, 1024, 4, 8000


def task(dtype: str, workdir: str) -> Translate:
    """Return the task of T: post-norm, dropout 0.1 everywhere, batches of 2048 target tokens."""
    platforms.configure_compilation()
    config = configs.load(str(measure.ROOT / "configs" / "multi30k.py"))
    config.data.directory = str(measure.SHARED / "data" / "multi30k")
    config.vocab.size = VOCABULARY
    config.model.update(num_encoder_layers=LAYERS, num_decoder_layers=LAYERS, d_model=D_MODEL, d_ff=D_FF)
    config.model.update(num_heads=HEADS, dropout=0.1, attention_dropout=0.1, relu_dropout=0.1, norm="post", dtype=dtype)
    config.train.batch_tokens = 2048
    return Translate(config, pathlib.Path(workdir), sharding.make_mesh())


def operations(batch: dict) -> float:
    """Return the multiplications and additions of a forward and backward pass (twice the forward) over real tokens."""
    source, target = (batch["source"] != 0).sum(1), (batch["target"] != 0).sum(1)
    square, feed_forward = D_MODEL * D_MODEL, 2 * D_MODEL * D_FF
    encoder = LAYERS * (4 * square + feed_forward) * source.sum()
    decoder = (LAYERS * (6 * square + feed_forward) + D_MODEL * VOCABULARY) * target.sum()
    decoder += LAYERS * 2 * square * source.sum()  # keys and values of the source
    attention = LAYERS * 2 * D_MODEL * (source * source + target * target + target * source).sum()
    return 3 * 2 * float(encoder + decoder + attention)
