"""Recurrent network R of the speed benchmarks: an LSTM with general attention and input feeding, on Multi30k."""

import pathlib

from benchmarks import measure
from nmt_jax import config as configs
from nmt_jax import platforms
from nmt_jax.distributed import sharding
from nmt_jax.tasks.translate import Translate

D_EMBEDDING, D_HIDDEN, VOCABULARY = 256, 512, 8000


def task(dtype: str, workdir: str) -> Translate:
    """Return the task of R: bi-LSTM encoder 2 x 256, LSTM decoder 512, dropout 0.2, 2048 target tokens per batch."""
    platforms.configure_compilation()
    config = configs.load(str(measure.ROOT / "configs" / "rnn_luong.py"))
    config.data.directory = str(measure.SHARED / "data" / "multi30k")
    config.vocab.size = VOCABULARY
    config.model.update(d_embedding=D_EMBEDDING, d_hidden=D_HIDDEN, dropout=0.2, tie_embeddings="none", dtype=dtype)
    config.train.batch_tokens = 2048
    return Translate(config, pathlib.Path(workdir), sharding.make_mesh())


def operations(batch: dict) -> float:
    """Return the multiplications and additions of a forward and backward pass (twice the forward) over real tokens."""
    source, target = (batch["source"] != 0).sum(1), (batch["target"] != 0).sum(1)
    half = D_HIDDEN // 2
    encoder = 2 * 4 * half * (D_EMBEDDING + half) + D_HIDDEN * D_HIDDEN  # both directions; the keys
    decoder = 4 * D_HIDDEN * (D_EMBEDDING + 2 * D_HIDDEN) + 2 * D_HIDDEN * D_HIDDEN + D_HIDDEN * VOCABULARY
    attention = 2 * D_HIDDEN * (target * source).sum()
    return 3 * 2 * float(encoder * source.sum() + decoder * target.sum() + attention)
