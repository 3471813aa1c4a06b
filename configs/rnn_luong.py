"""Effective approaches to attention (Luong et al., 2015): LSTMs, general attention, input feeding, on Multi30k.

    nmt-jax train --config=configs/rnn_luong.py --config.data.directory=DIRECTORY --workdir=runs/rnn_luong
    nmt-jax translate --workdir=runs/rnn_luong < test_2016_flickr.en > test.hypothesis
    nmt-jax score test.hypothesis --reference=test_2016_flickr.de

Every score with every window, with and without input feeding, and then only some of it:

    nmt-jax sweep --config=configs/rnn_luong.py --config.data.directory=DIRECTORY --workdir=runs/luong
    nmt-jax sweep … --only=model.attention=global --only=model.input_feeding=true

BLEU on test_2016_flickr (2026-11-21, CPU, one seed, beam 5): general 34.55, dot 34.35, additive 36.69; the table is in
docs/recurrent.md. 26 minutes for `general` on a busy core.
"""

import itertools
from collections.abc import Callable

import common
from ml_collections import ConfigDict


def get_config(arg: str = "") -> ConfigDict:
    """The experiment; `:smoke=true` is a one-step version for tests."""
    arguments = common.parse_arg(arg, smoke=False)
    config = common.base("rnn")
    config.data.update(corpus="text", source="en", target="de", test="test_2016_flickr", max_length=128, num_buckets=5)
    config.vocab.update(algorithm="bpe", size=8000)
    config.model.update(cell="lstm", decoder="luong", score="general", attention="global", input_feeding=True)
    config.model.update(d_embedding=256, d_hidden=256, dropout=0.2, tie_embeddings="three-way")
    config.model.dtype = "bfloat16"  # products only; sums and state are float32
    config.loss.label_smoothing = 0.1
    config.optimizer.update(schedule="cosine", learning_rate=2e-3, warmup_steps=300, clip_norm=1.0)
    config.train.update(steps=2500, batch_tokens=2048, eval_every=250, checkpoint_every=250, keep_last=2)
    return common.smoke(config) if arguments.smoke else config


def sweep(add: Callable[[dict[str, str | bool]], None]) -> None:
    """Six scores, looking everywhere or at a window, with and without input feeding: 36 runs."""
    scores = ("dot", "scaled_dot", "general", "reduced_rank", "additive", "concat")
    for score, attention, feeding in itertools.product(scores, ("global", "local-m", "local-p"), (True, False)):
        add({"model.score": score, "model.attention": attention, "model.input_feeding": feeding})
